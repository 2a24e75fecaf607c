#!/usr/bin/env bash
# deb.sh [--build-only | --pack-only]: builds the router, its client, the lab and, where DPDK's headers are, the DPDK plugin,
# and packs them into target/packages. Two calls for one commit make the same bytes, in whatever folder.
set -euo pipefail
cd "$(dirname "$0")/.."
PATH="$PATH:$HOME/.cargo/bin"
: "${BUILT:=target/release}" "${OUT:=target/packages}"
say() { printf 'deb: %s\n' "$*"; }

build() {
  say "building"
  scripts/release.sh -p shoal -p shoalctl -p shoal-lab
  scripts/symbols.sh target/release/shoal target/release/shoalctl target/release/shoal-lab
  if pkg-config --exists libdpdk 2>/dev/null; then
    scripts/dpdk.sh >/dev/null
    scripts/symbols.sh target/dpdk/dpdk_plugin.so
  else
    say "without shoal-plugin-dpdk: DPDK's headers are not installed (libdpdk-dev)"
  fi
  scripts/sbom.sh
}

pack() {
  local without=()
  [ -e target/dpdk/dpdk_plugin.so ] || without+=(-Nshoal-plugin-dpdk)
  [ -e "$BUILT/shoal-lab" ] || without+=(-Nshoal-lab)
  find "$BUILT/" -maxdepth 1 -name '*.debug' | grep -q . || without+=(-Nshoal-dbg)
  # Packages of an earlier call are not taken for those of this one.
  rm -f "$OUT"/*.deb
  say "packing into $OUT"
  local log
  log=$(mktemp)
  if ! DH_OPTIONS="${without[*]}" PACK_ONLY=1 BUILT=$BUILT OUT=$OUT DEB_RULES_REQUIRES_ROOT=no debian/rules binary >"$log" 2>&1; then
    tail -n 30 "$log"
    rm -f "$log"
    say "the packages could not be made, see above"
    exit 1
  fi
  rm -f "$log"
  debian/rules clean >/dev/null 2>&1
  ls -l "$OUT"/*.deb | awk '{ printf "%6.1f MB  %s\n", $5 / 1e6, $9 }'
}

case ${1:-} in
  --build-only) build ;;
  --pack-only) pack ;;
  "") build && pack ;;
  *) say "'$1' is none of --build-only, --pack-only"; exit 2 ;;
esac
