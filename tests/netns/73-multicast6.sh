#!/usr/bin/env bash
# Multicast routing of IPv6 by a daemon of Linux: smcrouted beside the router hears of a source in host a by packets that find no route,
# and has the kernel send the group to host b; the router forwards. Another group is sent by a route that is added and taken away while
# it is on its way, and MLD's reports of host b reach Linux.
. "$(dirname "$0")/lib.sh"
need python3 smcrouted smcroutectl tcpdump
begin linux-cp { lcp-sync }
with_ip6 "$A" "$B"
beside
ip netns exec "$L" sysctl -qw net.ipv6.conf.all.disable_ipv6=0 net.ipv6.conf.default.disable_ipv6=0 || skip "the kernel has no IPv6"
ip netns exec "$L" test -e /proc/net/ip6_mr_vif || skip "the kernel routes no multicast of IPv6"
for n in 1 2; do
  port=host-v$(tr 12 ab <<<"$n")
  expect "interface address" ctl set interface ip address "$port" "2001:db8:$n::1/64"
  expect "lcp create" ctl lcp create "$port" host-if "e$((n - 1))" netns "$L"
done
ip -n "$A" addr add 2001:db8:1::2/64 dev eth0 nodad
ip -n "$B" addr add 2001:db8:2::2/64 dev eth0 nodad
await 15 usable "$L" e0 e1 || fail "images: $(ip -n "$L" -6 addr)"
await 15 usable "$A" eth0 || fail "host a: $(ip -n "$A" -6 addr)"
await 15 usable "$B" eth0 || fail "host b: $(ip -n "$B" -6 addr)"

printf '%s\n' 'phyint e0 enable' 'phyint e1 enable' 'mroute from e0 group ff1e::1 to e1' >"$work/smcroute.conf"
ip netns exec "$L" smcrouted -n -N -l debug -f "$work/smcroute.conf" -P "$work/smcroute.pid" -u "$work/smcroute.sock" \
  >"$work/smcroute.log" 2>&1 &
helpers+=($!)
smcroute() { in_ns "$L" smcroutectl -u "$work/smcroute.sock" "$@"; }
await 15 smcroute show || fail "smcrouted: $(cat "$work/smcroute.log")"

ip netns exec "$L" tcpdump -n -v -l -i e1 'icmp6 or proto 0' >"$work/reports" 2>&1 &
helpers+=($!)
await 15 grep -q 'listening on' "$work/reports" || fail "tcpdump: $(cat "$work/reports")"
PATIENCE=60 in_b "$group" receive ff1e::1 9 >"$work/seen" &
receiver=$!
await 15 grep -q 'gaddr ff1e::1 ' "$work/reports" || fail "no report: $(cat "$work/reports")"
sent=$(PATIENCE=30 in_a "$group" send ff1e::1 5)
says '2001:db8:1::2, *ff1e::1' ctl show ip6 mfib || fail "no entry: $(ctl show ip6 mfib); $(ip -n "$L" -6 mroute); $(cat "$work/smcroute.log")"
says 'multicast routes: [1-9][0-9]* ([1-9]' ctl show lcp netlink || fail "show lcp netlink: $(ctl show lcp netlink)"
wait "$receiver" || fail "the receiver: $(cat "$work/seen")"
came "$work/seen" "$sent"
given=$(ctl show errors | awk '/linux-cp-ip6-mcast .*given to the host/ { print $1 }')
[ "${given:-0}" -lt $((sent / 4)) ] || fail "$given of $sent packets went by way of the kernel"

# A route that comes while packets are on their way, and goes again.
PATIENCE=60 in_b "$group" receive ff1e::2 9 >"$work/seen2" &
receiver=$!
await 15 grep -q 'gaddr ff1e::2 ' "$work/reports" || fail "no report: $(cat "$work/reports")"
PATIENCE=30 in_a "$group" send ff1e::2 7 >"$work/sent2" &
sender=$!
sleep 2
smcroute add e0 2001:db8:1::2 ff1e::2 e1 || fail "smcroutectl add: $(cat "$work/smcroute.log")"
sleep 3
smcroute remove e0 2001:db8:1::2 ff1e::2 || fail "smcroutectl remove: $(cat "$work/smcroute.log")"
wait "$sender" "$receiver"
read -r seen2 first2 holes2 again2 <"$work/seen2"
[ "$seen2" -gt 200 ] && [ "$seen2" -lt 500 ] && [ "$first2" -gt 50 ] && [ "$again2" -eq 0 ] && [ "$holes2" -le 20 ] ||
  fail "of $(cat "$work/sent2") packets $seen2 arrived with a route for three seconds, the first is $first2, $holes2 missing, $again2 twice"
# smcrouted may leave an entry without an output for a source that it knows no route of.
outputs() { ctl show ip6 mfib | awk '/^\(/ { here = /ff1e::2/ } here && /Forward/'; }
[ -z "$(outputs)" ] || fail "packets would leave: $(ctl show ip6 mfib); $(ip -n "$L" -6 mroute)"
alive
await 10 no_buffers_used || fail "$(buffers_used) buffers are still in use"
pass "$seen of $sent packets, ${given:-0} of them by way of the kernel; $seen2 with a route for three seconds"
