#!/usr/bin/env bash
# A tap whose host side lies in a namespace is an interface like any other: ping and TCP from it to host b.
. "$(dirname "$0")/lib.sh"
need ping iperf3
[ -e /dev/net/tun ] || skip "there is no /dev/net/tun"
[ -w /dev/net/tun ] || skip "this user may not open /dev/net/tun"
begin
T=shoal-t-$id
ip netns add "$T" || fail "cannot make a namespace"
trap 'ip netns pids "$T" 2>/dev/null | xargs -r kill -9 2>/dev/null; ip netns del "$T" 2>/dev/null; cleanup' EXIT
tap=$(ctl create tap host-ns "$T" host-if-name eth0 host-ip4-addr 10.0.3.2/24 host-ip4-gw 10.0.3.1) \
  || fail "create tap: $tap"
expect "tap up" ctl set interface state "$tap" up
expect "tap address" ctl set interface ip address "$tap" 10.0.3.1/24
ip -n "$T" link set lo up
await 5 in_ns "$T" ping -c 1 -W 1 10.0.3.1 || fail "no ping from the tap's host side to the router"
out=$(in_ns "$T" "$patient_ping" -q -i 0.01 -c 100 -W 2 10.0.2.2) || fail "ping through the tap: $out"
grep -q ' 0% packet loss' <<<"$out" || fail "$out"
in_b iperf3 -s -D -I "$work/iperf.pid" >/dev/null
await 5 listens "$B" 5201 || fail "iperf3 does not listen at host b"
expect "TCP through the tap" in_ns "$T" iperf3 -c 10.0.2.2 -n 20M
expect "TCP to the tap" in_ns "$T" iperf3 -c 10.0.2.2 -n 20M -R
expect "delete tap" ctl delete tap "$tap"
ip -n "$T" link show eth0 >/dev/null 2>&1 && fail "the host side is still there"
alive
await 10 no_buffers_used || fail "$(buffers_used) buffers are still in use"
pass
