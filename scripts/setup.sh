#!/usr/bin/env bash
# Installs what building and testing need and what is missing, and says what it did. Doing it again does nothing.
set -euo pipefail
cd "$(dirname "$0")/.."
PATH="$PATH:$HOME/.cargo/bin"

PACKAGES=(build-essential pkg-config curl ca-certificates git libpcap-dev iproute2 iputils-ping iputils-arping
          traceroute iperf3 tcpdump ethtool procps python3 python3-venv valgrind dpdk-dev libdpdk-dev librte-net-memif23
          librte-net-af-packet23 librte-net-null23 librte-net-pcap23 librte-net-ring23 librte-mempool-ring23
          librte-net-virtio23 librte-net-e1000-23 librte-net-vmxnet3-23 qemu-system-x86 busybox-static cpio kmod lz4
          nftables iptables conntrack)
CARGO_DENY=0.20.2
CARGO_FUZZ=0.13.1

say() { printf 'setup: %s\n' "$*"; }

# Debian's is new enough, and so is one that is there already.
command -v go >/dev/null || [ -x /usr/local/go/bin/go ] || PACKAGES+=(golang-go)

missing=()
if command -v dpkg-query >/dev/null; then
  for package in "${PACKAGES[@]}"; do
    [ "$(dpkg-query -W -f '${db:Status-Status}' "$package" 2>/dev/null || true)" = installed ] || missing+=("$package")
  done
else
  for tool in cc pkg-config curl git ip ping traceroute iperf3 tcpdump ethtool python3; do
    command -v "$tool" >/dev/null || { say "please install '$tool'; this system has no apt, so setup cannot"; exit 1; }
  done
fi
if [ ${#missing[@]} -gt 0 ]; then
  say "installing ${missing[*]}"
  as_root=()
  if [ "$(id -u)" -ne 0 ]; then
    command -v sudo >/dev/null || { say "not root and no sudo: install these packages, then try again"; exit 1; }
    as_root=(sudo)
  fi
  log=$(mktemp)
  if ! { "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get update -q &&
         "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get install -q -y --no-install-recommends "${missing[@]}"
       } >"$log" 2>&1; then
    tail -n 20 "$log"
    say "apt-get could not install them, see above"
    exit 1
  fi
  rm -f "$log"
fi

if ! command -v cargo >/dev/null; then
  say "installing rustup in your home folder; rust-toolchain.toml pins the compiler"
  curl --proto '=https' --tlsv1.2 -sSf https://sh.rustup.rs | sh -s -- -y -q --profile minimal --default-toolchain none --no-modify-path
fi
# The first call in this folder fetches the pinned compiler if it is not there.
cargo --version >/dev/null 2>&1 || rustup toolchain install >/dev/null 2>&1 || true
cargo --version >/dev/null || { say "cargo does not run, see above"; exit 1; }

if [ -n "${FULL:-}" ]; then
  for tool in "cargo-deny $CARGO_DENY" "cargo-fuzz $CARGO_FUZZ"; do
    read -r name version <<<"$tool"
    if ! command -v "$name" >/dev/null; then
      say "installing $name $version (some minutes)"
      cargo install --quiet --locked --version "$version" "$name"
    fi
  done
fi
[ ${#missing[@]} -gt 0 ] && say "done" || say "nothing is missing"
