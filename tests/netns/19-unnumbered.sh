#!/usr/bin/env bash
# One network on two links, both families: the router has no address of its own towards host b, speaks from the one it has
# towards host a, and answers host a's questions for host b (proxy ARP, proxy neighbour discovery).
. "$(dirname "$0")/lib.sh"
need ping
hosts
start_router
attach va 10.0.1.1/24
for ns in "$A" "$B"; do
  ip netns exec "$ns" sysctl -qw net.ipv6.conf.all.disable_ipv6=0 net.ipv6.conf.eth0.disable_ipv6=0 || skip "the kernel has no IPv6"
done
expect "interface address" ctl set interface ip address host-va 2001:db8:1::1/64
ip -n "$A" addr add 2001:db8:1::2/64 dev eth0 nodad

# Host b has an address of host a's network, and nothing but its router on its link.
ip -n "$B" -4 addr flush dev eth0
ip -n "$B" addr add 10.0.1.50/32 dev eth0
ip -n "$B" route add 10.0.1.1 dev eth0
ip -n "$B" route add default via 10.0.1.1
ip -n "$B" addr add 2001:db8:1::50/128 dev eth0 nodad
ip -n "$B" route add 2001:db8:1::1 dev eth0
ip -n "$B" route add default via 2001:db8:1::1
expect "create host-interface" ctl create host-interface name vb
expect "interface state" ctl set interface state host-vb up
expect "unnumbered" ctl set interface unnumbered host-vb use host-va
expect "route" ctl ip route add 10.0.1.50/32 via host-vb
expect "route" ctl ip route add 2001:db8:1::50/128 via host-vb
await 10 in_b ping -c 1 -W 1 10.0.1.1 || fail "the router does not speak from the address it borrows"
await 10 in_b ping -6 -c 1 -W 1 2001:db8:1::1 || fail "the router does not speak from the IPv6 address it borrows"
await 5 in_a ping -c 1 -W 1 10.0.1.1 || fail "the router does not answer host a"
await 10 in_a ping -6 -c 1 -W 1 2001:db8:1::1 || fail "the router does not answer host a over IPv6"

# Host a takes host b for a neighbour, asks, and gets no answer.
in_a ping -c 2 -i 0.2 -W 1 10.0.1.50 >/dev/null && fail "somebody answers for host b, without a setting for it"
in_a ping -6 -c 2 -i 0.2 -W 1 2001:db8:1::50 >/dev/null && fail "somebody answers for host b over IPv6, without a setting for it"

# Now the router does.
expect "proxy" ctl set arp proxy table-ID 0 start 10.0.1.2 end 10.0.1.60
expect "proxy" ctl set interface proxy-arp host-va enable
expect "proxy" ctl ip6 nd proxy 2001:db8:1::50 host-va
await 10 in_a ping -c 1 -W 1 10.0.1.50 || fail "no way to host b: $(ctl show arp proxy; ip -n "$A" neigh)"
await 10 in_a ping -6 -c 1 -W 1 2001:db8:1::50 || fail "no way to host b over IPv6: $(ip -n "$A" -6 neigh)"
out=$(in_a "$patient_ping" -q -c 100 -i 0.01 -W 10 10.0.1.50)
grep -q ' 0% packet loss' <<<"$out" || fail "$out"
out=$(in_a "$patient_ping" -6 -q -c 100 -i 0.01 -W 10 2001:db8:1::50)
grep -q ' 0% packet loss' <<<"$out" || fail "$out"
await 5 in_b ping -c 1 -W 1 10.0.1.2 || fail "no way from host b to host a"
await 5 in_b ping -6 -c 1 -W 1 2001:db8:1::2 || fail "no way from host b to host a over IPv6"
# It is the router's station host a knows, for itself and for host b.
mac() { ip -n "$A" neigh show to "$1" dev eth0 | grep -o 'lladdr [0-9a-f:]*'; }
[ -n "$(mac 10.0.1.1)" ] && [ "$(mac 10.0.1.1)" = "$(mac 10.0.1.50)" ] || fail "host a knows $(ip -n "$A" neigh)"
[ "$(mac 2001:db8:1::1)" = "$(mac 2001:db8:1::50)" ] || fail "host a knows $(ip -n "$A" -6 neigh)"
# Addresses of the range that are on host a's own link, or nowhere, are not answered for.
in_a ping -c 1 -W 1 10.0.1.33 >/dev/null && fail "an answer from nowhere"
[ -z "$(mac 10.0.1.33)" ] || fail "the router answers for a station of the asking link: $(ip -n "$A" neigh)"

# And no longer.
expect "proxy" ctl set interface proxy-arp host-va disable
expect "proxy" ctl ip6 nd proxy del 2001:db8:1::50 host-va
ip -n "$A" neigh flush dev eth0
in_a ping -c 2 -i 0.2 -W 1 10.0.1.50 >/dev/null && fail "the router answers for host b all the same"
in_a ping -6 -c 2 -i 0.2 -W 1 2001:db8:1::50 >/dev/null && fail "the router answers for host b over IPv6 all the same"
expect "numbered" ctl set interface unnumbered del host-vb
ip -n "$B" neigh flush dev eth0
in_b ping -c 1 -W 1 10.0.1.1 >/dev/null && fail "the router speaks from an address it no longer borrows"
alive
await 10 no_buffers_used || fail "$(buffers_used) buffers are still in use"
pass
