#!/usr/bin/env bash
# lint.sh [CHECK...]: checks that read the source only, all of them if none is named. Each runs, whatever the result of
# the others, and reports a line `ok NAME`, `FAIL NAME` or `SKIP NAME: reason`, as run-tests.sh counts them.
set -uo pipefail
cd "$(dirname "$0")/.."
PATH="$PATH:$HOME/.cargo/bin"
all=(fmt clippy layers unsafe sizes docs-check deny advisories)
failed=()

check_fmt() {
  cargo fmt --all --check && cargo fmt --manifest-path tests/fuzz/Cargo.toml --check &&
    cargo fmt --manifest-path plugin/dpdk/Cargo.toml --check
}
check_clippy() {
  cargo clippy --locked --workspace --all-targets --quiet --keep-going -- -D warnings || return
  # Not everybody has DPDK's headers.
  ! pkg-config --exists libdpdk 2>/dev/null ||
    cargo clippy --locked --manifest-path plugin/dpdk/Cargo.toml --all-targets --quiet -- -D warnings
}
check_layers() { xtask layers; }
check_unsafe() { xtask unsafe; }
check_sizes() { xtask sizes; }
check_docs-check() { xtask docs-check; }
check_deny() {
  has_deny && cargo deny --locked --log-level error check licenses bans sources
}
# Apart from the others, because what it says changes without a change of ours.
check_advisories() {
  has_deny || return
  if ! timeout 120 cargo deny --log-level error fetch db 2>/dev/null; then
    skip="the advisory database cannot be fetched"
    return 1
  fi
  cargo deny --locked --offline --log-level error check advisories
}

# XTASK names one that was built; cargo would build what is below it in another variant.
xtask() { if [ -x "${XTASK:-}" ]; then "$XTASK" "$@"; else cargo xtask "$@"; fi; }

has_deny() {
  command -v cargo-deny >/dev/null || { skip="cargo-deny is not installed, 'make setup FULL=1' does it"; return 1; }
}

[ $# -gt 0 ] || set -- "${all[@]}"
for name in "$@"; do
  declare -F "check_$name" >/dev/null || { echo "lint: no check '$name', there are: ${all[*]}" >&2; exit 2; }
done
for name in "$@"; do
  echo "== $name"
  skip=
  if "check_$name"; then
    echo "ok $name"
  elif [ -n "$skip" ]; then
    echo "SKIP $name: $skip"
  else
    echo "FAIL $name"
    failed+=("$name")
  fi
done
if [ ${#failed[@]} -gt 0 ]; then
  echo "lint failed: ${failed[*]}"
  exit 1
fi
echo "lint: no check failed"
