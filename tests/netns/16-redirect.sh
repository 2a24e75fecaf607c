#!/usr/bin/env bash
# Redirects that a real host believes, both families: host b, on host a's own link, is the way to a network, or is the
# destination that host a takes for a distant one. The router forwards and says so; host a goes straight from then on.
. "$(dirname "$0")/lib.sh"
need ping
ip netns add "$A" 2>"$work/why" || skip "no network namespaces here: $(cat "$work/why")"
ip netns add "$B" && ip netns add "$R" || fail "cannot make namespaces"
# Router and hosts on one switch.
ip -n "$R" link add name switch type bridge 2>"$work/why" || skip "no bridges here: $(cat "$work/why")"
ip netns exec "$R" sysctl -qw net.ipv6.conf.switch.disable_ipv6=1
ip -n "$R" link set switch up
ip -n "$R" link add name va type veth peer name port-r || fail "cannot make a veth pair"
ip -n "$R" link add name port-a type veth peer name eth0 netns "$A" || fail "cannot make a veth pair"
ip -n "$R" link add name port-b type veth peer name eth0 netns "$B" || fail "cannot make a veth pair"
for port in va port-r port-a port-b; do
  ip netns exec "$R" sysctl -qw "net.ipv6.conf.$port.disable_ipv6=1"
  [ "$port" = va ] || ip -n "$R" link set "$port" master switch
  ip -n "$R" link set "$port" up
done
n=1
for ns in "$A" "$B"; do
  n=$((n + 1))
  ip netns exec "$ns" sysctl -qw net.ipv6.conf.all.disable_ipv6=0 net.ipv6.conf.eth0.disable_ipv6=0 || skip "the kernel has no IPv6"
  ip netns exec "$ns" sysctl -qw net.ipv6.conf.eth0.dad_transmits=0 net.ipv6.conf.eth0.accept_ra=0
  ip netns exec "$ns" sysctl -qw net.ipv4.conf.all.accept_redirects=1 net.ipv4.conf.eth0.accept_redirects=1 net.ipv6.conf.eth0.accept_redirects=1
  ip -n "$ns" link set lo up
  ip -n "$ns" addr add "10.0.1.$n/24" dev eth0
  ip -n "$ns" link set eth0 up
  ip -n "$ns" addr add "2001:db8:1::$n/64" dev eth0 nodad
  ip -n "$ns" route add default via 10.0.1.1
done
ip -n "$B" addr add 10.77.0.1/32 dev lo
ip -n "$B" addr add 2001:db8:77::1/128 dev lo nodad
start_router
attach va 10.0.1.1/24
expect "interface address" ctl set interface ip address host-va 2001:db8:1::1/64
expect "link-local address" ctl set ip6 link-local address host-va fe80::1
# A redirect is believed when it comes from the router in use, which hosts know by its link-local address.
for ns in "$A" "$B"; do ip -n "$ns" route add default via fe80::1 dev eth0; done
near=$(ip -n "$B" -6 addr show dev eth0 scope link | grep -o 'fe80[^/]*')
expect "route" ctl ip route add 10.77.0.0/24 via 10.0.1.3 host-va
expect "route" ctl ip route add 2001:db8:77::/48 via "$near" host-va
await 10 in_a ping -c 1 -W 1 10.0.1.1 || fail "the router does not answer"
await 10 in_a ping -6 -c 1 -W 1 2001:db8:1::1 || fail "the router does not answer over IPv6"

straight4() { in_a ping -c 1 -W 1 10.77.0.1 && ip -n "$A" route get 10.77.0.1 | grep -q 'via 10.0.1.3'; }
await 10 straight4 || fail "host a does not follow the redirect: $(ip -n "$A" route get 10.77.0.1)"
straight6() { in_a ping -6 -c 1 -W 1 2001:db8:77::1 && ip -n "$A" -6 route get 2001:db8:77::1 | grep -q "via $near"; }
await 10 straight6 || fail "host a does not follow the redirect: $(ip -n "$A" -6 route get 2001:db8:77::1)"

# It is told that its link is larger than it thinks.
ip -n "$A" addr del 2001:db8:1::2/64 dev eth0
ip -n "$A" addr add 2001:db8:1::2/128 dev eth0 nodad
onlink6() { in_a ping -6 -c 1 -W 1 2001:db8:1::3 && [ "$(ip -n "$A" -6 route get 2001:db8:1::3 | grep -c 'via fe80::1')" -eq 0 ]; }
await 10 onlink6 || fail "host a does not find out that host b is near: $(ip -n "$A" -6 route get 2001:db8:1::3)"

# From then on nothing of it passes the router.
before=$(counter host-va 'ip6')
in_a ping -6 -q -c 20 -i 0.02 -W 10 2001:db8:77::1 >/dev/null || fail "no answer by the straight way"
in_a ping -q -c 20 -i 0.02 -W 10 10.77.0.1 >/dev/null || fail "no answer by the straight way"
passed=$(($(counter host-va 'ip6') - before))
[ "$passed" -lt 15 ] || fail "$passed packets passed the router all the same"
out=$(ctl show errors)
grep -q 'ip6-redirect.*redirects sent' <<<"$out" || fail "$out"
alive
await 10 no_buffers_used || fail "$(buffers_used) buffers are still in use"
pass
