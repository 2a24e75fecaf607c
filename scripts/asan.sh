#!/usr/bin/env bash
# asan.sh [CRATE...]: tests of the unsafe islands under AddressSanitizer, with the nightly compiler. The standard
# library is not instrumented (that would take -Zbuild-std and rust-src); what the islands read and write is.
set -euo pipefail
cd "$(dirname "$0")/.."
PATH="$PATH:$HOME/.cargo/bin"
crates=("$@")
[ ${#crates[@]} -gt 0 ] || crates=(shoal-infra shoal-buffer shoal-graph)
if ! cargo +nightly --version >/dev/null 2>&1; then
  echo "asan: AddressSanitizer needs the nightly compiler: rustup toolchain install nightly" >&2
  exit 1
fi
# Buffer memory is mapped, not allocated, and lives as long as the process: leaks are the tests' own business.
export ASAN_OPTIONS=detect_leaks=0:abort_on_error=1
export RUSTFLAGS="-Zsanitizer=address"
# An own folder, so that the ordinary build is not thrown away.
export CARGO_TARGET_DIR=${CARGO_TARGET_DIR:-target}/asan
for crate in "${crates[@]}"; do
  echo "== $crate"
  cargo +nightly test --locked --quiet --target x86_64-unknown-linux-gnu -p "$crate" --lib --tests
done
echo "asan: ok"
