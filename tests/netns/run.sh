#!/usr/bin/env bash
# Runs the tests of real hosts, or those that are named: run.sh 01-ping 05-tap
# JOBS of them run at a time, one unless set; a test with a line `# ALONE=why` runs when the others are done.
# A test is stopped after $LIMIT seconds, 120 unless a line `# LIMIT=N` in it says more.
# PART=plain leaves out those that a line `# NEEDS=...` says need DPDK or virtual machines, PART=heavy runs only them.
# Each prints `ok NAME`, `FAIL NAME: what` or `SKIP NAME: why`. Needs root; scripts/in-namespace.sh gives it.
set -uo pipefail
cd "$(dirname "$0")" || exit 1
: "${JOBS:=1}"
results=$(mktemp -d)
trap 'rm -rf "$results"' EXIT

if [ $# -gt 0 ]; then
  tests=()
  for wanted in "$@"; do
    for file in "${wanted%.sh}"*.sh; do tests+=("$file"); done
  done
else
  tests=([0-9][0-9]-*.sh)
fi

# run_test FILE: runs it, prints what it printed as a whole, and leaves `passed`, `failed` or `skipped`.
run_test() {
  local test=$1 name=${1%.sh} limit start=$SECONDS out code result
  limit=${LIMIT:-$(sed -n 's/^# LIMIT=\([0-9]*\)$/\1/p' "$test")}
  : "${limit:=120}"
  out=$(PS4='+ $SECONDS s, ${BASH_SOURCE##*/}:$LINENO: ' BASH_XTRACEFD=9 timeout -k 10 "$limit" bash -x "./$test" 2>&1 9>"$results/$name.trace")
  code=$?
  {
    printf '%s\n%s took %d s\n' "$out" "$name" $((SECONDS - start))
    if [ "$code" -ge 124 ]; then
      echo "FAIL $name: not finished after $limit seconds"
      echo "--- the last commands"
      tail -n 60 "$results/$name.trace" | cut -c -300
    fi
    if grep -q '^FAIL ' <<<"$out" || [ "$code" -ne 0 ]; then
      grep -q '^FAIL ' <<<"$out" || [ "$code" -ge 124 ] || echo "FAIL $name: exit code $code"
      result=failed
    elif grep -q '^SKIP ' <<<"$out"; then
      result=skipped
    elif grep -q '^ok ' <<<"$out"; then
      result=passed
    else
      echo "FAIL $name: it printed no result"
      result=failed
    fi
    echo "$result" >"$results/$name.result"
  } >"$results/$name.out"
  rm -f "$results/$name.trace"
  flock "$results" cat "$results/$name.out"
}

together=() alone=() missing=0
for test in "${tests[@]}"; do
  if [ ! -f "$test" ]; then
    echo "FAIL ${test%.sh}: there is no such test"
    missing=$((missing + 1))
    continue
  fi
  case ${PART:-} in
    plain) ! grep -q '^# NEEDS=' "$test" || continue ;;
    heavy) grep -q '^# NEEDS=' "$test" || continue ;;
  esac
  if [ "$JOBS" -gt 1 ] && ! grep -q '^# ALONE=' "$test"; then together+=("$test"); else alone+=("$test"); fi
done
for test in "${together[@]}"; do
  [ "$(jobs -rp | wc -l)" -lt "$JOBS" ] || wait -n
  run_test "$test" &
done
wait
for test in "${alone[@]}"; do run_test "$test"; done

count() { cat "$results"/*.result 2>/dev/null | grep -c "^$1\$"; }
failed=$(($(count failed) + missing))
echo "$(count passed) passed, $failed failed, $(count skipped) skipped"
[ "$failed" -eq 0 ]
