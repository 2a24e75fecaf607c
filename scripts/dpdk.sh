#!/usr/bin/env bash
# Builds the DPDK plugin, a workspace of its own, and puts it where `plugins { path ... }` can find it: prints that folder.
# Without DPDK's headers it says what is missing and fails; nothing else of the project needs them.
set -euo pipefail
cd "$(dirname "$0")/.."
PATH="$PATH:$HOME/.cargo/bin"
if ! pkg-config --exists libdpdk 2>/dev/null; then
  echo "dpdk: DPDK's headers are not installed, expected Debian's libdpdk-dev" >&2
  exit 1
fi
scripts/release.sh --quiet --manifest-path plugin/dpdk/Cargo.toml >&2
mkdir -p target/dpdk
# Beside the old one and in its place: a router that runs keeps what it has.
cp plugin/dpdk/target/release/libshoal_dpdk_plugin.so target/dpdk/dpdk_plugin.so.new
mv target/dpdk/dpdk_plugin.so.new target/dpdk/dpdk_plugin.so
echo "$PWD/target/dpdk"
