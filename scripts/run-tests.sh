#!/usr/bin/env bash
# Runs the stages that are named, each with a log, a time and its counts; `test` and `rest` stand for those of `make test`
# and for what `make test-all` has beyond it. The last line is `N passed, N failed, N skipped`; skips are named above it.
# Fails if anything failed.
#
# A stage script reports single tests as lines `ok NAME`, `FAIL NAME...` and `SKIP NAME: reason`. A Rust test that
# cannot run here prints `SKIP NAME: reason` and returns.
#
# `compile,unit+netns,papi` runs two lanes beside each other: what the compiler does beside what mostly waits. The first lane
# has a lower priority, so that hosts and routers get a processor when they want one. Beside busy loops (STRESSED=1) it has not: it would get none.
set -uo pipefail
cd "$(dirname "$0")/.."
PATH="$PATH:$HOME/.cargo/bin"
logs=target/test-logs
test=(programs compile,shared,unit,doc+rules,papi,netns)
rest=(dpdk-build clippy,dpdk,deny+guests,packages,govpp,vpp-suite lab)
rm -rf "$logs/results"
mkdir -p "$logs/results"
begun=$SECONDS
free=$(df -Pk . | awk 'NR == 2 { print int($4 / 1048576) }')
if [ ! -d target/debug/deps ] && [ "${free:-99}" -lt 4 ]; then
  echo "disk: $free GB free here, a first run takes 4: it may end with 'No space left on device'"
fi
# What tests start: with assertions and overflow checks, and of the same libraries as the test programs, so that these are
# compiled once. `make build` makes what users run, which takes minutes longer; SHOAL and SHOALCTL name those or others.
export SHOAL=${SHOAL:-$PWD/target/debug/shoal} SHOALCTL=${SHOALCTL:-$PWD/target/debug/shoalctl}
# No source changes between builds here: the compiler's notes for that would take 6 GB.
export CARGO_INCREMENTAL=${CARGO_INCREMENTAL:-0}
low=()

say() { printf '[%2d:%02d] %s\n' $(((SECONDS - begun) / 60)) $(((SECONDS - begun) % 60)) "$*"; }

# run NAME SECONDS COMMAND...: leaves the exit code in $code and the log's name in $log.
run() {
  local name=$1 limit=$2
  shift 2
  log=$logs/$name.log
  say "$name: $*"
  local start=$SECONDS
  if [ -n "${V:-}" ]; then
    "${low[@]}" timeout -k 10 "$limit" "$@" 2>&1 | tee "$log"
    code=${PIPESTATUS[0]}
  else
    "${low[@]}" timeout -k 10 "$limit" "$@" >"$log" 2>&1
    code=$?
  fi
  took=$((SECONDS - start))
  [ "$code" -eq 124 ] && echo "FAIL $name: not finished after $limit seconds" >>"$log"
}

# count NAME P F S: leaves a line of the table, and what was skipped and what failed, in files: stages may run at once.
count() {
  local result=ok file=$logs/results/$1
  [ "$3" -gt 0 ] && result=FAILED
  [ $(($2 + $3)) -eq 0 ] && [ "$4" -gt 0 ] && result=skipped
  printf '%s %s %d %d %d %d\n' "$1" "$result" "$took" "$2" "$3" "$4" >"$file.row"
  grep -aE '^SKIP ' "$log" | sort -u >"$file.skips"
  say "$1: $result, $2 passed, $3 failed, $4 skipped, $took s"
  [ "$3" -gt 0 ] || return
  # Which failed and why, so that the end of the output is enough to know.
  {
    grep -aE '^test .* \.\.\. FAILED$' "$log"
    # A program that died says nothing of failures, however many others did.
    grep -aE '^FAIL ' "$log"
    # A test that expects a panic prints one, too; why one failed stands in the failures of its binary. What it printed
    # there tells more than its last assertion, and the backtrace less.
    awk '/^test result: /{on=0} on; /^failures:$/{on=1}' "$log" >"$log.why"
    if [ -s "$log.why" ]; then
      grep -avE '^ +[0-9]+: |^ +at |^note: |^stack backtrace:|^$' "$log.why" | head -n 60
    else
      grep -aE -A 3 "^(error|thread '.*' .*panicked at )" "$log" |
        grep -avE '^(--|stack backtrace:|== .*|ok .*)?$' | head -n 40
    fi
    rm -f "$log.why"
  } | awk '!seen[$0]++' | sed "s|^|$1: |" >"$file.failures"
  if [ -z "${V:-}" ]; then
    echo "-- $log, its end:"
    tail -n "${TAIL:-80}" "$log"
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

# Counts a run of test programs.
cargo_tests() {
  local p f i s
  # Each test binary sums up: `test result: ok. 4 passed; 0 failed; 1 ignored; ...`.
  read -r p f i < <(awk '/^test result: / { p += $4; f += $6; i += $8 } END { print p + 0, f + 0, i + 0 }' "$log")
  sed -nE 's/^test (.*) \.\.\. ignored(, (.*))?$/SKIP \1: ignored \3/p' "$log" >"$log.ignored"
  cat "$log.ignored" >>"$log"
  rm -f "$log.ignored"
  s=$(grep -aE '^SKIP ' "$log" | sort -u | grep -cv ': ignored ')
  # A program that died, or was too slow, counted nothing.
  f=$((f + $(grep -acE '^FAIL ' "$log")))
  [ "$code" -ne 0 ] && [ "$f" -eq 0 ] && f=1
  count "$1" $((p > s ? p - s : 0)) "$f" $((i + s))
}

# Counts a command that passes or does not.
whole() { count "$1" $((code == 0)) $((code != 0)) 0; }

# not_here NAME REASON: a stage that cannot run.
not_here() {
  log=$logs/$1.log took=0
  echo "SKIP $1: $2" >"$log"
  count "$1" 0 0 1
}

# What reads the source and takes seconds.
stage_rules() {
  run rules 900 env XTASK=target/debug/xtask scripts/lint.sh fmt layers unsafe sizes docs-check
  lines rules
}

stage_clippy() {
  run clippy 1800 scripts/lint.sh clippy
  lines clippy
}

# Not the advisories: a test must not fail for what somebody else published meanwhile.
stage_deny() {
  run deny 600 scripts/lint.sh deny
  lines deny
}

# The programs that tests start, and xtask, which checks rules. `--workspace` gives libraries the features that the test
# programs have them built with; without xtask, what runs in the compiler would be built in another way than for those.
stage_programs() {
  # shellcheck disable=SC2016
  run programs 1800 bash -c 'cargo build --locked --workspace --bin shoal --bin shoalctl --bin xtask \
    --message-format=json-render-diagnostics >"$0"' "$logs/libraries.json"
  whole programs
}

# A workspace of its own, with tests of its own; tests with hosts say themselves that they need the plugin.
stage_dpdk-build() {
  pkg-config --exists libdpdk 2>/dev/null || { not_here dpdk-build "DPDK's headers are not installed (libdpdk-dev)"; return; }
  run dpdk-build 900 scripts/dpdk.sh
  whole dpdk-build
}

stage_dpdk() {
  pkg-config --exists libdpdk 2>/dev/null || { not_here dpdk "DPDK's headers are not installed (libdpdk-dev)"; return; }
  run dpdk 900 cargo test --locked --manifest-path plugin/dpdk/Cargo.toml
  cargo_tests dpdk
}

# All test programs at once, those of the lab, too: cargo would build the crates below them in other variants for a part.
# The example is one that tests start; `cargo test` would build it as a program of tests.
stage_compile() {
  rm -f "$logs/programs.json"
  # shellcheck disable=SC2016
  run compile 2700 bash -c 'cargo test --locked --workspace --tests --no-run \
    --message-format=json-render-diagnostics >"$0.new" && mv "$0.new" "$0" &&
    cargo build --locked --workspace --example device' "$logs/programs.json"
  whole compile
}

# What was built for the programs is what the tests are built of.
stage_shared() {
  [ -s "$logs/libraries.json" ] && [ -s "$logs/programs.json" ] || { not_here shared "programs or tests were not built in this run"; return; }
  run shared 60 scripts/built-twice.py "$logs/libraries.json" "$logs/programs.json"
  lines shared
}

# programs_of NAME WORDS...: runs test programs that were built.
programs_of() {
  local name=$1
  shift
  [ -s "$logs/programs.json" ] || { log=$logs/$name.log took=0; echo "FAIL $name: the tests were not built" >"$log"; count "$name" 0 1 0; return; }
  run "$name" 2700 python3 scripts/test-programs.py "$logs/programs.json" "$@" -- --show-output
  cargo_tests "$name"
}
stage_unit() { programs_of unit --without '^lab/'; }
# One after the other, and beside no other stage: a tester or a device that gets no processor loses frames.
stage_lab() { programs_of lab --only '^lab/' --jobs 1; }

# The examples in documents.
stage_doc() {
  run doc 900 cargo test --locked --workspace --doc --no-fail-fast
  cargo_tests doc
}

# Real hosts: hosts NAME PART JOBS, where tests/netns/run.sh has the parts.
hosts() {
  run "$1" 1800 env PART="$2" JOBS="$3" scripts/in-namespace.sh tests/netns/run.sh
  if [ "$code" -eq 77 ]; then
    not_here "$1" "needs root or unprivileged user namespaces, this system allows neither"
    return
  fi
  lines "$1"
}
# They mostly wait: two at a time leave the compiler most of both processors.
stage_netns() { hosts netns plain 2; }
# Two machines at a time: much of it is waiting, also where they are emulated.
stage_guests() {
  [ ! -e target/dpdk/dpdk_plugin.so ] || export DPDK_PLUGIN=$PWD/target/dpdk
  hosts guests heavy 2
}

stage_papi() {
  run papi 1200 scripts/in-namespace.sh scripts/papi.sh
  lines papi
}

stage_govpp() {
  run govpp 900 scripts/govpp.sh
  lines govpp
}

# Debian's packages of the programs that tests start, in a root of their own, and the container image of them.
stage_packages() {
  run packages 900 bash -c 'code=0; for test in run image; do tests/packages/$test.sh || code=1; done; exit $code'
  lines packages
}

# A sample of VPP's own tests, where they are.
stage_vpp-suite() {
  run vpp-suite 400 env SAMPLE=1 FILE_S=120 scripts/vpp-suite.sh
  lines vpp-suite
}

# The stages of a lane, one after the other.
lane() {
  local stage
  for stage in ${1//,/ }; do "stage_$stage"; done
}

words=()
for word in "$@"; do
  case $word in
    test) words+=("${test[@]}") ;;
    rest) words+=("${rest[@]}") ;;
    *) words+=("$word") ;;
  esac
done
[ ${#words[@]} -gt 0 ] || { echo "run-tests: name a stage, or test, or rest" >&2; exit 2; }
for word in "${words[@]}"; do
  for stage in ${word//[,+]/ }; do
    declare -F "stage_$stage" >/dev/null || { echo "run-tests: no stage '$stage'" >&2; exit 2; }
  done
done
for word in "${words[@]}"; do
  IFS=+ read -r -a lanes <<<"$word"
  if [ ${#lanes[@]} -eq 1 ]; then
    lane "$word"
    continue
  fi
  for ((n = 0; n < ${#lanes[@]}; n++)); do
    # A lane that compiles waits for lanes that forward.
    ([ "$n" -gt 0 ] || [ -n "${STRESSED:-}" ] || low=(nice -n 19); lane "${lanes[n]}") &
  done
  wait
done

# A stage that left no counts did not end.
for word in "${words[@]}"; do
  for stage in ${word//[,+]/ }; do
    [ -e "$logs/results/$stage.row" ] || { log=$logs/$stage.log took=0; echo "FAIL $stage: it did not end" >>"$log"; count "$stage" 0 1 0; }
  done
done
rows=("$logs"/results/*.row)
read -r passed failed skipped < <(cat "${rows[@]}" | awk '{ p += $4; f += $5; s += $6 } END { print p + 0, f + 0, s + 0 }')
summary="$passed passed, $failed failed, $skipped skipped"
{
  scripts/stages.sh "$((SECONDS - begun))" "${rows[@]}"
  [ ! -e "$logs/results/unit.row" ] || sed -nE '/^[0-9]+ test programs; the slowest:$/,$p' "$logs/unit.log" | head -n 6
  cat "$logs"/results/*.skips | sed '1s/^/\n/'
  cat "$logs"/results/*.failures 2>/dev/null | sed '1s/^/\n/'
  printf '\nlogs: %s\n%s\n' "$logs" "$summary"
} | tee "$logs/summary"
[ "$failed" -eq 0 ]
