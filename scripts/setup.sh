#!/usr/bin/env bash
# setup.sh [FOR...]: installs what is missing of what building (build), the demonstration (demo), the tests of `make test`
# (test), VPP's own tests (suite), benchmarks (bench), the lab (lab), packages (deb), an image (image) or all of it (all, the default) need, and says what it did. Doing it again does nothing.
set -euo pipefail
cd "$(dirname "$0")/.."
PATH="$PATH:$HOME/.cargo/bin"

# A compiler, a linker, and libpcap's headers.
build=(gcc libc6-dev make pkg-config curl ca-certificates libpcap-dev)
# Hosts in namespaces.
demo=("${build[@]}" iproute2 iputils-ping traceroute iperf3 procps)
# More of what hosts do, and Python for vpp_papi.
test=("${demo[@]}" git binutils iputils-arping tcpdump ethtool python3 python3-venv nftables iptables conntrack
      frr bird2 dnsmasq-base isc-dhcp-client kea-dhcp6-server keepalived smcroute)
# VPP's own tests: they read captures and patch the Scapy that they use.
suite=("${test[@]}" tshark patch)
# Callgrind counts instructions.
bench=("${build[@]}" git valgrind)
# Other routers to measure beside ours.
lab=("${test[@]}" valgrind)
# Debian's packages, the DPDK plugin among them, and a root to try them in.
deb=("${build[@]}" git binutils dpkg-dev debhelper libdpdk-dev)
image=("${deb[@]}" mmdebstrap buildah)
# Virtual machines, DPDK, Go: what `make test-all` has beyond `make test`.
all=("${lab[@]}" "${suite[@]}" "${image[@]}" systemd-container crun runc podman build-essential dpdk-dev libdpdk-dev librte-net-memif23 librte-net-af-packet23 librte-net-null23
     librte-net-pcap23 librte-net-ring23 librte-mempool-ring23 librte-net-virtio23 librte-net-e1000-23
     librte-net-vmxnet3-23 qemu-system-x86 busybox-static cpio kmod lz4 tayga)
CARGO_DENY=0.20.2
CARGO_FUZZ=0.13.1

say() { printf 'setup: %s\n' "$*"; }

[ $# -gt 0 ] || set -- all
PACKAGES=()
for purpose in "$@"; do
  case $purpose in
    build | demo | test | suite | bench | lab | deb | image | all) declare -n packages=$purpose ;;
    *) say "'$purpose' is none of build, demo, test, suite, bench, lab, deb, image, all" && exit 2 ;;
  esac
  PACKAGES+=("${packages[@]}")
done
mapfile -t PACKAGES < <(printf '%s\n' "${PACKAGES[@]}" | sort -u)
# Debian's is new enough, and so is one that is there already.
if [[ " $* " == *" all "* ]]; then
  command -v go >/dev/null || [ -x /usr/local/go/bin/go ] || PACKAGES+=(golang-go)
fi
# SETUP_DRY=1 prints what would have to be there, and does nothing.
if [ -n "${SETUP_DRY:-}" ]; then
  printf '%s\n' "${PACKAGES[@]}"
  exit 0
fi
# `sudo make ...` has another home folder: a second compiler would be installed there, and root would own what it builds.
if [ "$(id -u)" -eq 0 ] && [ -n "${SUDO_USER:-}" ] && [ "$SUDO_USER" != root ] && ! command -v cargo >/dev/null; then
  say "this is sudo of $SUDO_USER, and root has no cargo: run 'make build' as $SUDO_USER first, then 'sudo make install'"
  exit 1
fi

missing=()
if command -v dpkg-query >/dev/null; then
  for package in "${PACKAGES[@]}"; do
    [ "$(dpkg-query -W -f '${db:Status-Status}' "$package" 2>/dev/null || true)" = installed ] || missing+=("$package")
  done
else
  tools=(cc make pkg-config curl)
  [ "$*" = build ] || tools+=(ip ping traceroute iperf3)
  [[ " $* " != *" test "* && " $* " != *" all "* ]] || tools+=(git tcpdump ethtool python3)
  for tool in "${tools[@]}"; do
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
