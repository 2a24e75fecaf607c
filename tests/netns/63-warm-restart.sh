#!/usr/bin/env bash
# The router is started again, in order and by kill -9, while BIRD beside it has a BGP session through an image: the service manager
# keeps the images, so BIRD sees neither an interface nor a carrier go, the session stays, and routes are there again with the first
# packets. A pair that is deleted is not kept, and a service that is stopped leaves nothing.
# ALONE=how long the router is away is limited
. "$(dirname "$0")/lib.sh"
need ping python3 bird birdc
hosts
beside
mkdir -p "$work/run"
ip netns exec "$R" python3 "$root/tests/netns/fd_store.py" "$work/notify" \
  "$SHOAL" unix { nodaemon nosyslog runtime-dir "$work/run" } configuration { directory "$work/lib" } linux-cp { lcp-sync } \
  >>"$work/shoal.log" 2>&1 &
# What ends the manager ends the router.
manager=$! router=$manager
answers() { "$SHOALCTL" -s "$sock" show version; }
await 30 answers || fail "the router does not answer"
attach va 10.0.1.1/24
attach vb 10.0.2.1/24
expect "lcp create" ctl lcp create host-va host-if e0 netns "$L"
expect "lcp create" ctl lcp create host-vb host-if e1 netns "$L"
expect "write" ctl write
ip -n "$B" addr add 198.51.100.1/32 dev lo
start_bird() {
  ip netns exec "$1" bird -f -c "$work/$2.conf" -s "$work/$2.ctl" -P "$work/$2.pid" >"$work/$2.log" 2>&1 &
  disown
}
cat >"$work/l.conf" <<'CONF'
router id 10.0.2.1;
protocol device { scan time 1; }
protocol kernel { ipv4 { export all; }; }
protocol bgp { local 10.0.2.1 as 65000; neighbor 10.0.2.2 as 65002; hold time 9; connect retry time 1; ipv4 { import all; export none; }; }
CONF
cat >"$work/b.conf" <<'CONF'
router id 10.0.2.2;
protocol device { }
protocol static { ipv4; route 198.51.100.0/24 blackhole; }
protocol bgp { local 10.0.2.2 as 65002; neighbor 10.0.2.1 as 65000; hold time 9; connect retry time 1; ipv4 { import none; export all; }; }
CONF
start_bird "$L" l
start_bird "$B" b
reached() { in_a ping -c 1 -W 1 198.51.100.1; }
await 30 reached || fail "no route by BGP: $(birdc -s "$work/l.ctl" show protocols all bgp1)"
# The session, the images as Linux numbers them, and every change of a link from now on.
session() { birdc -s "$work/l.ctl" show protocols bgp1 | awk '/^bgp1/ { print $4, $5, $6 }'; }
images() { ip -n "$L" -br link show | awk '{ print $1, $2 }' | sort; }
says Established session || fail "BGP: $(session)"
was="$(session) $(images)"
ip netns exec "$L" ip monitor link >"$work/links" 2>&1 &
disown
# The session tells since when it is up; that no link went meanwhile is asked of `links' at the end.
unchanged() { is="$(session) $(images)"; [ "$was" = "$is" ]; }

# started_again SIGNAL: the router ends by it and is started again under 100 pings a second; how many were lost.
started_again() {
  local pid lost
  pid=$(pgrep -P "$manager" -f "$SHOAL")
  [ -n "$pid" ] || fail "the router does not run: $(tail -n 3 "$work/shoal.log")"
  PATIENCE=60 in_a ping -i 0.01 -w 30 198.51.100.1 >"$work/ping" 2>&1 &
  sleep 1
  kill "-$1" "$pid"
  await 10 not_running "$pid" || fail "the router does not end by SIG$1"
  await 20 reached || fail "no answers after SIG$1: $(ctl show ip fib 198.51.100.1); $(ctl show lcp); $(images)"
  sleep 1
  interrupt "$A" ping
  lost=$(awk '/ packets transmitted/ { print $1 - $4 }' "$work/ping")
  await 5 unchanged || fail "before SIG$1: $was, after it: $is; links: $(cat "$work/links"); BGP: $(birdc -s "$work/l.ctl" show protocols all bgp1; tail -n 5 "$work/"[lb].log); pings: $(tail -n 3 "$work/ping")"
  echo "$lost"
}
ordered=$(started_again TERM) || { echo "$ordered"; ended=1; exit 1; }
killed=$(started_again KILL) || { echo "$killed"; ended=1; exit 1; }
if grep -E 'NO-CARRIER|state DOWN|Deleted' "$work/links"; then fail "Linux saw a link go"; fi
pairs=$(ctl show lcp 2>&1)
grep -q 'itf-pair: .* host-vb .* e1 ' <<<"$pairs" || fail "show lcp: $pairs"

# What is deleted goes at once, and does not come back.
expect "lcp delete" ctl lcp delete host-va
gone() { ! ip -n "$L" link show dev "$1" >/dev/null 2>&1; }
await 5 gone e0 || fail "the image is still there"
expect "write" ctl write
kill -9 "$(pgrep -P "$manager" -f "$SHOAL")"
await 20 reached || fail "no answers after the third start"
gone e0 || fail "the deleted image is there again"
# An image that the configuration has no pair for is let go at the next start.
expect "lcp create" ctl lcp create host-va host-if e9 netns "$L"
kill -9 "$(pgrep -P "$manager" -f "$SHOAL")"
await 10 gone e9 || fail "an image of no pair is still there: $(ctl show lcp)"

kill "$manager"
await 10 gone e1 || fail "a stopped service leaves its image"
pass "of 100 pings a second lost: $ordered while it was started again, $killed after kill -9; the BGP session stayed"
