#!/usr/bin/env bash
# fuzz.sh [TARGET [SECONDS]]: fuzzes one target, or each one in turn if TARGET is empty, for 60 seconds unless told.
# Each has a log and a line, `ok NAME: ...` or `FAIL NAME: ...`; a crash of one does not keep the others from running.
set -euo pipefail
cd "$(dirname "$0")/.."
PATH="$PATH:$HOME/.cargo/bin"
target=${1:-} seconds=${2:-60}
logs=target/test-logs
mkdir -p "$logs"
if ! cargo +nightly --version >/dev/null 2>&1; then
  echo "fuzz: cargo-fuzz needs the nightly compiler: rustup toolchain install nightly" >&2
  exit 1
fi
targets=${target:-$(cargo +nightly fuzz list --fuzz-dir tests/fuzz)}
passed=0 failed=0

# Builds, then fuzzes; the output goes to $log, and with V=1 to the screen too.
fuzz() {
  # New finds go to the first folder, which is not committed; the second holds seeds and every crash there was.
  mkdir -p "tests/fuzz/corpus/$1"
  # No input may keep a target busy for 30 seconds; libFuzzer alone would wait for twenty minutes.
  cargo +nightly fuzz run --fuzz-dir tests/fuzz "$1" "tests/fuzz/corpus/$1" "tests/fuzz/seeds/$1" -- \
    -max_total_time="$seconds" -timeout=30 -print_final_stats=1
}

for t in $targets; do
  log=$logs/fuzz-$t.log
  echo "== $t, $seconds s, $log"
  code=0
  if [ -n "${V:-}" ]; then
    fuzz "$t" 2>&1 | tee "$log" || code=$?
  else
    fuzz "$t" >"$log" 2>&1 || code=$?
  fi
  runs=$(sed -nE 's/^stat::number_of_executed_units: *//p' "$log")
  coverage=$(sed -nE 's/^#.* cov: ([0-9]+) .*/\1/p' "$log" | tail -n 1)
  if [ "$code" -eq 0 ]; then
    passed=$((passed + 1))
    echo "ok $t: $runs inputs, $coverage edges"
  else
    failed=$((failed + 1))
    tail -n 40 "$log"
    echo "FAIL $t: after ${runs:-0} inputs, see $log"
  fi
done
echo "fuzz: $passed targets without a finding, $failed failed"
[ "$failed" -eq 0 ]
