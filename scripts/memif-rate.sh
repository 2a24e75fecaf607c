#!/usr/bin/env bash
# How many packets of 64 bytes a second does one worker forward between two memifs, and is any lost at 80 percent of that?
#
#   SECONDS_EACH=5 scripts/memif-rate.sh
#
# The router's worker has one core, its peer (drivers/memif/examples/blast.rs: both ends in one thread) the other.
set -euo pipefail
cd "$(dirname "$0")/.."
: "${SECONDS_EACH:=5}" "${PROFILE:=release}"
[ "$(nproc)" -ge 2 ] || { echo "SKIP: two cores are needed"; exit 0; }
cargo build --locked --quiet --profile "$PROFILE" -p shoal -p shoalctl
cargo build --locked --quiet --profile "$PROFILE" -p shoal-memif --example blast
built=target/$PROFILE
work=$(mktemp -d)
trap 'kill "$router" 2>/dev/null; wait 2>/dev/null; rm -rf "$work"' EXIT
mac=02:fe:00:00:01:00 far=02:00:00:00:00:02
cat >"$work/setup" <<EOF
create memif socket id 1 filename $work/memif.sock
create interface memif id 0 socket-id 1 master hw-addr $mac ring-size 2048
create interface memif id 1 socket-id 1 master hw-addr 02:fe:00:00:01:01 ring-size 8192
set interface ip address memif1/0 10.0.0.1/24
set interface ip address memif1/1 10.0.1.1/24
set interface ip address memif1/0 2001:db8:0::1/64
set interface ip address memif1/1 2001:db8:1::1/64
set interface state memif1/0 up
set interface state memif1/1 up
set ip neighbor memif1/1 10.0.1.2 $far static
set ip neighbor memif1/1 2001:db8:1::2 $far static
EOF
"$built/shoal" unix { nodaemon nosyslog runtime-dir "$work/run" exec "$work/setup" } configuration { directory "$work/lib" } \
  cpu { main-core 0 corelist-workers 1 } >"$work/log" 2>&1 &
router=$!
ctl() { "$built/shoalctl" -s "$work/run/cli.sock" "$@"; }
for _ in $(seq 100); do [ -S "$work/memif.sock" ] && break; sleep 0.1; done
[ -S "$work/memif.sock" ] || { cat "$work/log"; exit 1; }
for family in ip4 ip6; do
  ctl clear runtime
  ctl clear interfaces
  taskset -c 0 "$built/examples/blast" "$work/memif.sock" "$mac" "$family" "$SECONDS_EACH"
  [ -z "${V:-}" ] || { ctl show runtime; ctl show errors; ctl show interface rx-placement; }
done
