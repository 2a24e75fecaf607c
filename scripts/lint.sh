#!/usr/bin/env bash
# Every check that reads the source only. All of them run; the last line names those that failed.
set -uo pipefail
cd "$(dirname "$0")/.."
PATH="$PATH:$HOME/.cargo/bin"
failed=() skipped=()

check() {
  local name=$1
  shift
  echo "== $name"
  "$@" || failed+=("$name")
}

check fmt cargo fmt --all --check
check clippy cargo clippy --locked --workspace --all-targets --quiet -- -D warnings
for task in layers unsafe sizes docs-check; do
  check "$task" cargo xtask "$task"
done

if ! command -v cargo-deny >/dev/null; then
  skipped+=("deny: cargo-deny is not installed, 'make setup FULL=1' installs it")
else
  check deny cargo deny --log-level error check licenses bans sources
  echo "== advisories"
  if cargo deny --log-level error fetch db 2>/dev/null; then
    check advisories cargo deny --log-level error --offline check advisories
  else
    skipped+=("advisories: the advisory database cannot be fetched")
  fi
fi

for skip in "${skipped[@]}"; do echo "SKIP $skip"; done
if [ ${#failed[@]} -gt 0 ]; then
  echo "lint failed: ${failed[*]}"
  exit 1
fi
echo "lint: ok"
