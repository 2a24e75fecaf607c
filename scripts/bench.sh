#!/usr/bin/env bash
# Builds the benchmark, always for the same instruction set so that figures of different machines and days compare,
# into a folder of its own so that other builds neither reuse nor disturb it; then runs it with the given arguments.
set -euo pipefail
cd "$(dirname "$0")/.."
PATH="$PATH:$HOME/.cargo/bin"

# Valgrind, which counts instructions where there are no performance counters, knows AVX2 but not AVX-512.
if [ "$(uname -m)" = x86_64 ]; then
  for flag in avx2 bmi1 bmi2 fma movbe; do
    grep -qw "$flag" /proc/cpuinfo || { echo "bench: this processor has no $flag, figures are for x86-64-v3"; exit 1; }
  done
  export RUSTFLAGS="-C target-cpu=x86-64-v3"
fi
cargo build --locked --quiet --release --target-dir target/bench -p shoal-lab-graph
SHOAL_REVISION=$(git describe --always --dirty 2>/dev/null || true)
export SHOAL_REVISION
exec target/bench/release/shoal-lab-graph "$@"
