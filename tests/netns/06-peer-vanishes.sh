#!/usr/bin/env bash
# The interface under a host-interface goes down, comes back, and is taken away under traffic: the router shows the
# link's state, lives on, and the other interface does not notice.
. "$(dirname "$0")/lib.sh"
need ping
begin
link_is() { ctl show hardware-interfaces | awk -v i="host-$1" '$1 == i { print $3 }' | grep -qx "$2"; }
ip -n "$B" link set eth0 down
await 5 link_is vb down || fail "host-vb is not shown as down"
ip -n "$B" link set eth0 up
ip -n "$B" route replace default via 10.0.2.1
await 5 link_is vb up || fail "host-vb does not come up again"
await 5 in_a ping -c 1 -W 1 10.0.2.2 || fail "no ping after the link came back"
in_a ping -q -i 0.002 -w 6 10.0.2.2 >/dev/null 2>&1 &
sleep 0.5
ip -n "$R" link del vb
await 5 link_is vb down || fail "host-vb is not shown as down after its interface was deleted"
out=$(in_a "$patient_ping" -q -i 0.01 -c 100 -W 10 10.0.1.1) || fail "host a does not reach the router any more: $out"
grep -q ' 0% packet loss' <<<"$out" || fail "host a loses packets to the router: $out"
alive
expect "delete" ctl delete host-interface name vb
cable "$B" vb 10.0.2.2/24 10.0.2.1 2>/dev/null
attach vb 10.0.2.1/24
await 5 in_a ping -c 1 -W 1 10.0.2.2 || fail "no ping through the interface that was made again"
await 10 no_buffers_used || fail "$(buffers_used) buffers are still in use"
pass
