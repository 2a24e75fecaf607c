#!/usr/bin/env bash
# A thousand pings through the router, none lost; the hosts learn the router's MAC by ARP and it learns theirs.
. "$(dirname "$0")/lib.sh"
need ping
begin
ctl clear interfaces >/dev/null 2>&1
out=$(in_a "$patient_ping" -q -i 0.002 -c 1000 -W 2 10.0.2.2) || fail "ping: $out"
grep -q ' 0% packet loss' <<<"$out" || fail "packets were lost: $out"
says lladdr in_a ip neigh show 10.0.1.1 || fail "host a has no neighbour 10.0.1.1"
says 10.0.2.2 ctl show ip neighbors || fail "the router has no neighbour 10.0.2.2"
[ "$(counter host-va 'rx packets')" -ge 1000 ] || fail "host-va received fewer than 1000 packets"
in_a ping -q -c 3 -i 0.05 -W 1 10.0.2.77 >/dev/null && fail "an unused address answers"
expect "big ping" in_a ping -q -c 5 -i 0.05 -W 2 -s 1472 -M do 10.0.2.2
alive
await 10 no_buffers_used || fail "$(buffers_used) buffers are still in use"
pass
