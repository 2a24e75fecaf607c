#!/usr/bin/env bash
# The router gets its address towards host b from dnsmasq there, renews it, and hands DHCP and DHCPv6 messages of host a on to the same
# server: ISC's dhclient at a gets addresses of its own network.
. "$(dirname "$0")/lib.sh"
need ping dnsmasq dhclient
hosts
start_router cpu { workers 1 }
attach va 10.0.1.1/24
expect "wan" ctl create host-interface name vb
expect "up" ctl set interface state host-vb up
expect "ip6 of lan" ctl set interface ip address host-va fd00:1::1/64
expect "ip6 of wan" ctl set interface ip address host-vb fd00:2::1/64
for ns in "$A" "$B"; do in_ns "$ns" sysctl -qw net.ipv6.conf.all.disable_ipv6=0 net.ipv6.conf.eth0.disable_ipv6=0; done
ip -n "$B" addr add fd00:2::2/64 dev eth0 nodad
ip -n "$B" -6 route add fd00:1::/64 via fd00:2::1

in_b_always() { ip netns exec "$B" "$@"; }
in_b_always dnsmasq --no-daemon --conf-file=/dev/null --port=0 --user=root --interface=eth0 --bind-interfaces --log-dhcp \
  --leasefile-ro --dhcp-authoritative --dhcp-broadcast=tag:none \
  --dhcp-range=set:wan,10.0.2.50,10.0.2.60,255.255.255.0,2m --dhcp-option=tag:wan,3,10.0.2.2 --dhcp-option=tag:wan,6,10.0.2.2 \
  --dhcp-option=tag:wan,option:T1,3 \
  --dhcp-range=set:lan,10.0.1.100,10.0.1.110,255.255.255.0,2m --dhcp-option=tag:lan,3,10.0.1.1 \
  --dhcp-range=fd00:1::100,fd00:1::110,64,2m --dhcp-range=fd00:2::100,fd00:2::110,64,2m >"$work/dnsmasq.log" 2>&1 &
helpers+=($!)
await 5 says ':67' in_b ss -lun || fail "dnsmasq does not listen: $(cat "$work/dnsmasq.log")"

expect "client" ctl set dhcp client intfc host-vb hostname shoal
await 10 says "DHCP_BOUND installed 1 address 10.0.2." ctl show dhcp client || fail "no lease: $(ctl show dhcp client) $(tail -n 20 "$work/dnsmasq.log")"
mine=$(ctl show dhcp client | sed -n 's/.* address \([0-9.]*\).*/\1/p')
says "gw 10.0.2.2 server 10.0.2.2 dns 10.0.2.2" ctl show dhcp client || fail "the lease says less: $(ctl show dhcp client)"
await 5 in_b ping -c 1 -W 1 "$mine" || fail "the router does not have $mine"
says "10.0.2.2" ctl show ip fib 0.0.0.0/0 || fail "no default route"
says "set dhcp client intfc host-vb hostname shoal" ctl show running-config || fail "the client is not saved"
says "ip address host-vb $mine" ctl show running-config && fail "the lease is saved"
# It is renewed after three seconds, with the server alone.
renewals() { grep -c "DHCPREQUEST.*$mine" "$work/dnsmasq.log"; }
has_renewed() { [ "$(renewals)" -ge 2 ]; }
await 15 has_renewed || fail "no renewal: $(tail -n 20 "$work/dnsmasq.log")"

# Hosts behind the router.
ip -n "$B" route add 10.0.1.0/24 via "$mine"
expect "relay" ctl set dhcp proxy server 10.0.2.2 src-address "$mine"
expect "relay" ctl set dhcpv6 proxy server fd00:2::2 src-address fd00:2::1
ip -n "$A" addr flush dev eth0 scope global
touch "$work/leases4" "$work/leases6"
PATIENCE=60 expect "dhclient" in_a dhclient -4 -1 -d -sf /bin/true -lf "$work/leases4" -pf "$work/pid4" eth0 &
helpers+=($!)
await 20 says "fixed-address 10.0.1.1[01][0-9];" cat "$work/leases4" || fail "a has no lease: $(tail -n 20 "$work/dnsmasq.log")"
says "routers 10.0.1.1" cat "$work/leases4" || fail "a has another network's router: $(cat "$work/leases4")"
PATIENCE=60 expect "dhclient -6" in_a dhclient -6 -1 -d -sf /bin/true -lf "$work/leases6" -pf "$work/pid6" eth0 &
helpers+=($!)
await 30 says "iaaddr fd00:1::1" cat "$work/leases6" || fail "a has no IPv6 lease: $(tail -n 20 "$work/dnsmasq.log")"
says "0,10.0.2.2" ctl show dhcp proxy || fail "the relay is not shown"

# A server that is gone: the address goes with its lease, and comes back with the server.
expect "end" ctl set dhcp client del intfc host-vb
says "$mine" ctl show interface addr && fail "the address stays"
alive
stop_router || fail "the router did not stop"
pass
