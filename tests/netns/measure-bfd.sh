#!/usr/bin/env bash
# Many BFD sessions at short intervals between two routers, while one of them is given a full table, prints it, and gets and loses a worker:
# how many sessions went down without a reason.
#
#   scripts/in-namespace.sh tests/netns/measure-bfd.sh
#   SESSIONS=1000 INTERVAL=50000 ROUTES4=1000000 scripts/in-namespace.sh tests/netns/measure-bfd.sh
#
# INTERVAL is in microseconds; a session goes down after three intervals of silence. Nothing is judged.
: "${SESSIONS:=1000}" "${INTERVAL:=50000}" "${ROUTES4:=1000000}" "${CTL_TIMEOUT:=300}"
. "$(dirname "$0")/lib.sh"
need python3
ip netns add "$R" 2>"$work/why" || skip "no network namespaces here: $(cat "$work/why")"
start_router logging { default-log-level info }
start_far logging { default-log-level info }
expect "memif socket" ctl create memif socket id 1 filename "$work/memif.sock"
expect "memif socket" far create memif socket id 1 filename "$work/memif.sock"
expect "memif" ctl create interface memif id 0 socket-id 1 master
expect "memif" far create interface memif id 0 socket-id 1 slave
python3 - "$SESSIONS" "$INTERVAL" "$ROUTES4" "$work" <<'PYTHON'
import sys
sessions, interval, routes, work = int(sys.argv[1]), sys.argv[2], int(sys.argv[3]), sys.argv[4]
peers = [f"10.1.{1 + n // 250}.{1 + n % 250}" for n in range(sessions)]
times = f"desired-min-tx {interval} required-min-rx {interval} detect-mult 3"
with open(f"{work}/near.cli", "w") as near, open(f"{work}/far.cli", "w") as far:
    print("set interface ip address memif1/0 10.1.0.1/16\nset interface state memif1/0 up", file=near)
    for peer in peers:
        print(f"set interface ip address memif1/0 {peer}/16", file=far)
    print("set interface state memif1/0 up", file=far)
    for peer in peers:
        print(f"bfd udp session add interface memif1/0 local-addr 10.1.0.1 peer-addr {peer} {times}", file=near)
        print(f"bfd udp session add interface memif1/0 local-addr {peer} peer-addr 10.1.0.1 {times}", file=far)
with open(f"{work}/routes.cli", "w") as out:
    for n in range(routes):
        print(f"ip route add {20 + (n >> 16)}.{n >> 8 & 255}.{n & 255}.0/24 via 10.1.0.1", file=out)
PYTHON
expect "sessions" far exec "$work/far.cli"
expect "sessions" ctl exec "$work/near.cli"
up() { grep -c 'Up' <<<"$(ctl show bfd sessions)"; }
all_up() { [ "$(up)" -ge "$SESSIONS" ]; }
await 60 all_up || fail "only $(up) sessions are up: $(ctl show bfd sessions | tail -n 5)"
downs() { cat "$work/shoal.log" "$work/far.log" | grep -c 'bfd: .* is [Dd]own'; }
phase() {
  local before after begun=$SECONDS
  before=$(downs)
  "${@:2}" >/dev/null 2>&1
  sleep 1
  after=$(downs)
  printf '%-34s %3d s, %d sessions went down, %d are up\n' "$1" $((SECONDS - begun)) $((after - before)) "$(up)"
}
busy() { awk '{ print $14 + $15 }' "/proc/$router/stat"; }
used=$(busy)
phase 'nothing else' sleep 10
echo "the router took $(((used = $(busy) - used) / 10)) % of a processor for $SESSIONS sessions at $INTERVAL us"
phase "$ROUTES4 routes" ctl exec "$work/routes.cli"
phase 'show ip fib' ctl show ip fib
phase 'a worker comes' ctl create worker
phase 'a worker goes' ctl delete worker 0
ended=1
