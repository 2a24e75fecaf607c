#!/usr/bin/env bash
# Runs the tests of real hosts, one after the other, or those that are named: run.sh 01-ping 05-tap
# A test is stopped after $LIMIT seconds, 120 unless a line `# LIMIT=N` in it says more.
# PART=plain leaves out those that a line `# NEEDS=...` says need DPDK or virtual machines, PART=heavy runs only them.
# Each prints `ok NAME`, `FAIL NAME: what` or `SKIP NAME: why`. Needs root; scripts/in-namespace.sh gives it.
set -uo pipefail
cd "$(dirname "$0")" || exit 1
passed=0 failed=0 skipped=0

if [ $# -gt 0 ]; then
  tests=()
  for wanted in "$@"; do
    for file in "${wanted%.sh}"*.sh; do tests+=("$file"); done
  done
else
  tests=([0-9][0-9]-*.sh)
fi

for test in "${tests[@]}"; do
  case ${PART:-} in
    plain) ! grep -q '^# NEEDS=' "$test" || continue ;;
    heavy) grep -q '^# NEEDS=' "$test" || continue ;;
  esac
  if [ ! -f "$test" ]; then
    echo "FAIL ${test%.sh}: there is no such test"
    failed=$((failed + 1))
    continue
  fi
  limit=${LIMIT:-$(sed -n 's/^# LIMIT=\([0-9]*\)$/\1/p' "$test")}
  : "${limit:=120}"
  start=$SECONDS
  trace=$(mktemp)
  out=$(PS4='+ $SECONDS s, ${BASH_SOURCE##*/}:$LINENO: ' BASH_XTRACEFD=9 timeout -k 10 "$limit" bash -x "./$test" 2>&1 9>"$trace")
  code=$?
  printf '%s\n%s took %d s\n' "$out" "${test%.sh}" $((SECONDS - start))
  if [ "$code" -ge 124 ]; then
    echo "FAIL ${test%.sh}: not finished after $limit seconds"
    echo "--- the last commands"
    tail -n 60 "$trace" | cut -c -300
  fi
  rm -f "$trace"
  if grep -q '^FAIL ' <<<"$out" || [ "$code" -ne 0 ]; then
    grep -q '^FAIL ' <<<"$out" || [ "$code" -ge 124 ] || echo "FAIL ${test%.sh}: exit code $code"
    failed=$((failed + 1))
  elif grep -q '^SKIP ' <<<"$out"; then
    skipped=$((skipped + 1))
  elif grep -q '^ok ' <<<"$out"; then
    passed=$((passed + 1))
  else
    echo "FAIL ${test%.sh}: it said nothing"
    failed=$((failed + 1))
  fi
done

echo "$passed passed, $failed failed, $skipped skipped"
[ "$failed" -eq 0 ]
