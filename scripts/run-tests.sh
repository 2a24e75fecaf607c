#!/usr/bin/env bash
# Runs the stages that are named (lint, unit, netns, papi, govpp), each with a log, a time and its counts.
# The last line is `N passed, N failed, N skipped`; skips are named above it. Fails if anything failed.
#
# A stage script reports single tests as lines `ok NAME`, `FAIL NAME...` and `SKIP NAME: reason`. A Rust test that
# cannot run here prints `SKIP NAME: reason` and returns.
set -uo pipefail
cd "$(dirname "$0")/.."
PATH="$PATH:$HOME/.cargo/bin"
logs=target/test-logs
mkdir -p "$logs"
passed=0 failed=0 skipped=0
table=() skips=() failures=()
free=$(df -Pk . | awk 'NR == 2 { print int($4 / 1048576) }')
if [ ! -d target/debug/deps ] && [ "${free:-99}" -lt 10 ]; then
  echo "disk: $free GB free here, a first run takes 10: it may end with 'No space left on device'"
fi

# run NAME SECONDS COMMAND...: leaves the exit code in $code and the log's name in $log.
run() {
  local name=$1 limit=$2
  shift 2
  log=$logs/$name.log
  printf '== %s: %s\n' "$name" "$*"
  local start=$SECONDS
  if [ -n "${V:-}" ]; then
    timeout -k 10 "$limit" "$@" 2>&1 | tee "$log"
    code=${PIPESTATUS[0]}
  else
    timeout -k 10 "$limit" "$@" >"$log" 2>&1
    code=$?
  fi
  took=$((SECONDS - start))
  [ "$code" -eq 124 ] && echo "FAIL $name: not finished after $limit seconds" >>"$log"
}

# count NAME P F S: adds a line to the table.
count() {
  local result=ok
  [ "$3" -gt 0 ] && result=FAILED
  [ $(($2 + $3)) -eq 0 ] && [ "$4" -gt 0 ] && result=skipped
  passed=$((passed + $2)) failed=$((failed + $3)) skipped=$((skipped + $4))
  table+=("$(printf '%-18s %-8s %4d:%02d %8d %8d %8d' "$1" "$result" $((took / 60)) $((took % 60)) "$2" "$3" "$4")")
  while IFS= read -r line; do skips+=("$line"); done < <(grep -aE '^SKIP ' "$log" | sort -u)
  if [ "$3" -gt 0 ]; then
    # Which failed and why, so that the end of the output is enough to know.
    while IFS= read -r line; do failures+=("$1: $line"); done \
      < <(grep -aE '^test .* \.\.\. FAILED$' "$log"
        # A test that expects a panic prints one, too; why one failed stands in the failures of its binary.
        awk '/^test result: /{on=0} on; /^failures:$/{on=1}' "$log" >"$log.why"
        [ -s "$log.why" ] || cp "$log" "$log.why"
        grep -aE -A 3 "^(FAIL |error|thread '.*' .*panicked at )" "$log.why" |
          grep -avE '^(--|stack backtrace:|== .*|ok .*)?$' | head -n 40
        rm -f "$log.why")
    if [ -z "${V:-}" ]; then
      echo "-- $log, its end:"
      tail -n "${TAIL:-80}" "$log"
    fi
  fi
}

# Counts a command that reports its tests line by line.
lines() {
  local p f s
  p=$(grep -acE '^(ok|PASS) ' "$log")
  f=$(grep -acE '^FAIL ' "$log")
  s=$(grep -acE '^SKIP ' "$log")
  [ "$code" -ne 0 ] && [ "$f" -eq 0 ] && f=1
  if [ "$code" -eq 0 ] && [ $((p + f + s)) -eq 0 ]; then p=1; fi
  count "$1" "$p" "$f" "$s"
}

stage_lint() {
  # Not the advisories: a test must not fail for what somebody else published meanwhile.
  run lint 1800 scripts/lint.sh fmt clippy layers unsafe sizes docs-check deny
  lines lint
}

# Counts a run of `cargo test`.
cargo_tests() {
  local p f i s
  # Each test binary sums up: `test result: ok. 4 passed; 0 failed; 1 ignored; ...`.
  read -r p f i < <(awk '/^test result: / { p += $4; f += $6; i += $8 } END { print p + 0, f + 0, i + 0 }' "$log")
  sed -nE 's/^test (.*) \.\.\. ignored(, (.*))?$/SKIP \1: ignored \3/p' "$log" >"$log.ignored"
  cat "$log.ignored" >>"$log"
  rm -f "$log.ignored"
  s=$(grep -aE '^SKIP ' "$log" | sort -u | grep -cv ': ignored ')
  # It did not build, or a test binary died before it could count.
  [ "$code" -ne 0 ] && [ "$f" -eq 0 ] && f=1
  count "$1" $((p > s ? p - s : 0)) "$f" $((i + s))
}

# The programs that tests start, and the plugin that the lab's ports are made with: once, whichever stage needs them first.
programs_failed=
programs() {
  [ -z "$programs_failed" ] || return "$programs_failed"
  run build 1800 cargo build --locked --release -p shoal -p shoalctl
  programs_failed=$((code != 0))
  count build $((1 - programs_failed)) "$programs_failed" 0
  # A workspace of its own, with tests of its own; tests with hosts say themselves that they need the plugin.
  if pkg-config --exists libdpdk 2>/dev/null; then
    run dpdk-build 900 scripts/dpdk.sh
    count dpdk-build $((code == 0)) $((code != 0)) 0
    run dpdk 900 cargo test --locked --manifest-path plugin/dpdk/Cargo.toml
    cargo_tests dpdk
  fi
  return "$programs_failed"
}

stage_unit() {
  # The lab's tests start the router's programs. Those that need none run without them, too.
  programs
  run unit 2700 cargo test --locked --workspace --no-fail-fast -- --show-output
  cargo_tests unit
}

stage_netns() {
  if [ ! -x tests/netns/run.sh ]; then
    log=$logs/netns.log took=0
    echo "SKIP netns: there is no tests/netns/run.sh" >"$log"
    count netns 0 0 1
    return
  fi
  programs || return
  run netns 1200 scripts/in-namespace.sh tests/netns/run.sh
  if [ "$code" -eq 77 ]; then
    echo "SKIP netns: needs root or unprivileged user namespaces, this system allows neither" >>"$log"
    count netns 0 0 1
    return
  fi
  lines netns
}

stage_papi() {
  run papi 1200 scripts/in-namespace.sh scripts/papi.sh
  lines papi
}

stage_govpp() {
  run govpp 900 scripts/govpp.sh
  lines govpp
}

for stage in "$@"; do
  "stage_$stage"
done

summary="$passed passed, $failed failed, $skipped skipped"
{
  printf '\n%-18s %-8s %7s %8s %8s %8s\n' stage result time passed failed skipped
  printf '%s\n' "${table[@]}"
  [ ${#skips[@]} -gt 0 ] && printf '\n' && printf '%s\n' "${skips[@]}"
  [ ${#failures[@]} -gt 0 ] && printf '\n' && printf '%s\n' "${failures[@]}"
  printf '\nlogs: %s\n%s\n' "$logs" "$summary"
} | tee "$logs/summary"
[ "$failed" -eq 0 ]
