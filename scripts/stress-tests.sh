#!/usr/bin/env bash
# The tests again and again beside a busy loop on each core: a test that depends on luck or load fails here.
#
#   ROUNDS=3 STAGES="test" scripts/stress-tests.sh        # as run-tests.sh has them: "test rest", "unit", "netns papi"
#   CRATES="shoal-graph shoal-memif" scripts/stress-tests.sh
#
# The first round that fails ends it, with its logs in target/test-logs.
set -uo pipefail
cd "$(dirname "$0")/.."
PATH="$PATH:$HOME/.cargo/bin"
: "${ROUNDS:=3}" "${STAGES:=test}" "${CRATES:=}"
loops=()
end() { [ ${#loops[@]} -eq 0 ] || kill "${loops[@]}" 2>/dev/null; }
trap end EXIT
trap 'exit 130' INT TERM HUP
crates=()
for crate in $CRATES; do crates+=(-p "$crate"); done
# Built before the loops begin: it is the tests that are stressed, not the compiler.
if [ ${#crates[@]} -gt 0 ]; then
  cargo test --locked --no-run "${crates[@]}" || exit 1
else
  # shellcheck disable=SC2086
  scripts/run-tests.sh programs compile || exit 1
fi
for ((core = 0; core < $(nproc); core++)); do
  (trap - EXIT; while :; do :; done) &
  loops+=($!)
  taskset -pc "$core" $! >/dev/null 2>&1
done
for ((round = 1; round <= ROUNDS; round++)); do
  echo "stress: round $round of $ROUNDS beside ${#loops[@]} busy loops"
  if [ ${#crates[@]} -gt 0 ]; then
    cargo test --locked --no-fail-fast "${crates[@]}"
  else
    # shellcheck disable=SC2086
    STRESSED=1 scripts/run-tests.sh $STAGES
  fi || { echo "stress: round $round failed"; exit 1; }
done
echo "stress: $ROUNDS rounds, no failure"
