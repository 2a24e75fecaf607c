#!/usr/bin/env bash
# Many interfaces with an address each are made from a file, saved, and restored by the next start, while one thread makes them and
# forwards a ping every few milliseconds. No ping may be lost.
#
#   INTERFACES=10000 MOST_MS=5 MOST_S=5 LIMIT=120 scripts/in-namespace.sh tests/netns/run.sh 38
: "${INTERFACES:=3000}" "${MOST_MS:=0}" "${MOST_S:=0}"
# ALONE=how long pings take is limited
. "$(dirname "$0")/lib.sh"
need ping
begin cpu { workers 0 }
await 5 in_a ping -c 1 -W 1 10.0.2.2 || fail "no answer from host b"
awk -v n="$INTERFACES" 'BEGIN {
  for (i = 0; i < n; i++) {
    print "create loopback interface"
    printf "set interface ip address loop%d 172.%d.%d.%d/30\n", i, 16 + int(i / 16384), int(i / 64) % 256, i % 64 * 4 + 1
    printf "set interface state loop%d up\n", i
  }
}' >"$work/commands"
PATIENCE=120 in_a ping -q -i 0.01 -w 100 10.0.2.2 >"$work/ping" 2>&1 &
pinging=$!
there() { ctl show interface addr | grep -c '^  L3 172\.'; }
begun=$(date +%s%N)
CTL_TIMEOUT=100 expect "exec of $INTERFACES interfaces" ctl exec "$work/commands"
made=$((($(date +%s%N) - begun) / 1000000))
CTL_TIMEOUT=60 expect "write" ctl write
# SIGINT has ping say what it counted.
pkill -INT -P "$pinging" ping 2>/dev/null || pkill -INT ping
wait "$pinging"
[ "$(there)" -eq "$INTERFACES" ] || fail "$(there) interfaces have addresses, not $INTERFACES"
pings_answered "$work/ping" || fail "pings were lost: $(tail -2 "$work/ping")"
slowest=$(awk -F/ '/^rtt/ { print $6 }' "$work/ping")
: >"$work/shoal.log"
kill -KILL "$router"
wait "$router" 2>/dev/null
router=
begun=$(date +%s%N)
start_router cpu { workers 0 }
logged() { grep -q "$1" "$work/shoal.log"; }
await 60 logged 'startup.cli: .* commands' || fail "nothing was restored"
restored=$((($(date +%s%N) - begun) / 1000000))
[ "$(there)" -eq "$INTERFACES" ] || fail "$(there) interfaces were restored, not $INTERFACES"
# Times are a matter of the machine's load, so they are asserted only where that was asked for.
if [ "$MOST_MS" != 0 ]; then
  awk -v s="$slowest" -v m="$MOST_MS" 'BEGIN { exit !(s < m) }' || fail "a ping took $slowest ms"
fi
if [ "$MOST_S" != 0 ]; then
  [ "$made" -lt "$((MOST_S * 1000))" ] || fail "making them took $made ms"
  [ "$restored" -lt "$((MOST_S * 1000))" ] || fail "restoring them took $restored ms"
fi
pass "$INTERFACES interfaces: made in $made ms, slowest ping $slowest ms, restored in $restored ms"
