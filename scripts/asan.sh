#!/usr/bin/env bash
# asan.sh [CRATE...]: tests under AddressSanitizer, with the nightly compiler, of all crates that UNSAFE.md counts or
# of those named. The standard library is not instrumented (that would take -Zbuild-std and rust-src); what the
# islands read and write is.
set -euo pipefail
cd "$(dirname "$0")/.."
PATH="$PATH:$HOME/.cargo/bin"
crates=("$@")
if [ ${#crates[@]} -eq 0 ]; then
  for folder in $(sed -nE 's/^\| ([a-z]+\/[a-z0-9_]+)\/src.*/\1/p' UNSAFE.md | sort -u); do
    # A workspace of its own.
    ! grep -q '^\[workspace\]' "$folder/Cargo.toml" || continue
    crates+=("$(sed -nE 's/^name = "(.*)"/\1/p' "$folder/Cargo.toml" | head -n 1)")
  done
fi
[ ${#crates[@]} -gt 0 ] || { echo "asan: UNSAFE.md names no crate" >&2; exit 1; }
if ! cargo +nightly --version >/dev/null 2>&1; then
  echo "asan: AddressSanitizer needs the nightly compiler: rustup toolchain install nightly" >&2
  exit 1
fi
# Buffer memory is mapped, not allocated, and lives as long as the process: leaks are the tests' own business.
export ASAN_OPTIONS=detect_leaks=0:abort_on_error=1
export RUSTFLAGS="-Zsanitizer=address"
# An own folder, so that the ordinary build is not thrown away.
export CARGO_TARGET_DIR=${CARGO_TARGET_DIR:-target}/asan
mkdir -p "$CARGO_TARGET_DIR"
for crate in "${crates[@]}"; do
  echo "== $crate"
  log=$CARGO_TARGET_DIR/$crate.log
  if ! cargo +nightly test --locked --target x86_64-unknown-linux-gnu -p "$crate" --tests -- --show-output \
      >"$log" 2>&1; then
    cat "$log"
    echo "asan: $crate failed" >&2
    exit 1
  fi
  grep -aE '^(test result: |SKIP )' "$log"
done
echo "asan: ok"
