#!/usr/bin/env bash
# fuzz.sh TARGET SECONDS: fuzzes one target, or each one in turn if TARGET is empty.
set -euo pipefail
cd "$(dirname "$0")/.."
PATH="$PATH:$HOME/.cargo/bin"
target=${1:-} seconds=${2:-60}
if [ ! -f tests/fuzz/Cargo.toml ]; then
  echo "fuzz: there is no tests/fuzz yet" >&2
  exit 1
fi
if ! cargo +nightly --version >/dev/null 2>&1; then
  echo "fuzz: cargo-fuzz needs the nightly compiler: rustup toolchain install nightly" >&2
  exit 1
fi
targets=${target:-$(cargo +nightly fuzz list --fuzz-dir tests/fuzz)}
for t in $targets; do
  echo "== $t, $seconds s"
  # New finds go to the first folder, which is not committed; the second holds seeds and every crash there was.
  mkdir -p "tests/fuzz/corpus/$t"
  cargo +nightly fuzz run --fuzz-dir tests/fuzz "$t" "tests/fuzz/corpus/$t" "tests/fuzz/seeds/$t" -- \
    -max_total_time="$seconds"
done
