#!/usr/bin/env bash
# release.sh CARGO-ARGUMENTS...: cargo build --locked --release. What it makes depends on the commit and the compiler, not on
# the folders of the sources and of cargo: two builds of one commit are the same bytes.
set -euo pipefail
cd "$(dirname "$0")/.."
PATH="$PATH:$HOME/.cargo/bin"
cargo_home=$(readlink -f "${CARGO_HOME:-$HOME/.cargo}")
export RUSTFLAGS="${RUSTFLAGS:-} --remap-path-prefix=$PWD=/usr/src/shoal --remap-path-prefix=$cargo_home=/usr/src/cargo"
maps="-ffile-prefix-map=$PWD=/usr/src/shoal -ffile-prefix-map=$cargo_home=/usr/src/cargo"
export CFLAGS="${CFLAGS:-} $maps" CXXFLAGS="${CXXFLAGS:-} $maps" CARGO_INCREMENTAL=0
exec cargo build --locked --release "$@"
