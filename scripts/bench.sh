#!/usr/bin/env bash
# Builds the benchmark, always for the same instruction set so that figures of different machines and days compare,
# into a folder of its own so that other builds neither reuse nor disturb it; then runs it with the given arguments.
# BASE=FILE, the results of an earlier run, is compared with.
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
words=()
program=target/bench/release/shoal-lab-graph
json=target/bench.json
for word in "$@"; do
  case $word in
    # Not a run.
    compare | count | tables | -h | --help | -V | --version) exec $program "$@" ;;
  esac
done
while [ $# -gt 0 ]; do
  case $1 in
    --json) json=${2:-$json} ;;
    --json=*) json=${1#--json=} ;;
  esac
  words+=("$1")
  shift
done
if [ -n "${BASE:-}" ] && [ ! -r "$BASE" ]; then
  echo "bench: BASE=$BASE is no file; an earlier run's results are, --json target/before.json writes them" >&2
  exit 2
fi
$program "${words[@]}"
echo
if [ -n "${BASE:-}" ]; then
  $program compare "$BASE" "$json"
else
  echo "to compare two revisions: keep $json (ARGS=\"--json target/before.json\"), change, make bench BASE=target/before.json;"
  echo "in turns, with a verdict: shoal-lab run replay --base-replay OTHER/$program"
fi
