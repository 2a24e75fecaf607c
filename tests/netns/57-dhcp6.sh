#!/usr/bin/env bash
# DHCPv6 with Kea at host b: the router gets an address and a prefix there, gives its other interface an address of the prefix, and host a
# makes its own of what that advertises. An address that another station has is declined. What is renewed, what is given back.
. "$(dirname "$0")/lib.sh"
need ping kea-dhcp6
hosts
start_router cpu { workers 1 }
attach va 10.0.1.1/24
expect "wan" ctl create host-interface name vb
expect "up" ctl set interface state host-vb up
for ns in "$A" "$B"; do in_ns "$ns" sysctl -qw net.ipv6.conf.all.disable_ipv6=0 net.ipv6.conf.eth0.disable_ipv6=0 net.ipv6.conf.eth0.dad_transmits=0; done
in_a sysctl -qw net.ipv6.conf.eth0.accept_ra=2
ip -n "$B" addr add fd00:2::2/64 dev eth0 nodad
link_ready() { ip -n "$B" addr show dev eth0 scope link | grep -q fe80 && ! ip -n "$B" addr show dev eth0 scope link | grep -q tentative; }
await 5 link_ready || fail "b's link-local address is not ready"
in_b sysctl -qw net.ipv6.conf.all.forwarding=1

cat >"$work/kea.json" <<C
{ "Dhcp6": {
    "interfaces-config": { "interfaces": [ "eth0" ] },
    "lease-database": { "type": "memfile", "persist": true, "name": "$work/leases.csv" },
    "server-id": { "type": "LL", "persist": false },
    "renew-timer": 3, "rebind-timer": 60, "preferred-lifetime": 90, "valid-lifetime": 120,
    "subnet6": [ {
      "id": 1, "interface": "eth0", "subnet": "fd00:2::/64",
      "pools": [ { "pool": "fd00:2::100 - fd00:2::1ff" } ],
      "pd-pools": [ { "prefix": "fd77:0:0:ab00::", "prefix-len": 56, "delegated-len": 56 } ]
    } ],
    "loggers": [ { "name": "kea-dhcp6", "severity": "INFO", "output_options": [ { "output": "stdout" } ] } ]
} }
C
mkdir -p "$work/kea"
KEA_PIDFILE_DIR=$work/kea KEA_LOCKFILE_DIR=$work/kea ip netns exec "$B" kea-dhcp6 -c "$work/kea.json" >"$work/kea.log" 2>&1 &
helpers+=($!)
await 10 says ':547' in_b ss -lun || fail "kea does not listen: $(tail -n 5 "$work/kea.log")"

# The first address of the pool is another station's: the server hears so, and gives another one.
ip -n "$B" addr add fd00:2::100/64 dev eth0 nodad
expect "dad" ctl set ip6 dad enable
expect "address" ctl dhcp6 client host-vb
expect "prefix" ctl dhcp6 pd client host-vb prefix group isp
expect "lan" ctl set ip6 address host-va prefix group isp ::7:0:0:0:1/64
await 20 says "declined 1 addresses" ctl show dhcp6 clients || fail "nothing is declined: $(ctl show dhcp6 clients) $(tail -n 5 "$work/kea.log")"
await 10 says "DHCP6_DECLINE_LEASE\|DECLINE" cat "$work/kea.log" || fail "the server hears nothing: $(tail -n 10 "$work/kea.log")"
await 30 says "state bound" ctl show dhcp6 clients || fail "no address: $(ctl show dhcp6 clients) $(tail -n 5 "$work/kea.log")"
await 15 says "fd77:0:0:ab07::1/64" ctl show dhcp6 pd clients || fail "no prefix: $(ctl show dhcp6 pd clients) $(tail -n 5 "$work/kea.log")"
mine=$(ctl show dhcp6 clients | sed -n 's,^ *\(fd00:2::1[0-9a-f]*\) preferred.*,\1,p')
[ -n "$mine" ] && [ "$mine" != fd00:2::100 ] || fail "another address: $(ctl show dhcp6 clients)"
ip -n "$B" -6 route add fd77:0:0:ab00::/56 via "$mine" || fail "no way back"
await 5 in_b ping -6 -c 1 -W 1 "$mine" || fail "the router does not answer at $mine"
await 5 in_b ping -6 -c 1 -W 1 fd77:0:0:ab07::1 || fail "the router does not answer at the address of its prefix"

# Host a makes an address of what the router advertises, and reaches the provider.
has_own() { ip -n "$A" addr show dev eth0 | grep -q 'inet6 fd77::ab07:'; }
await 20 has_own || fail "host a has no address of the prefix: $(ip -n "$A" addr show dev eth0)"
await 10 in_a ping -6 -c 1 -W 1 fd00:2::2 || fail "host a does not reach the provider: $(ctl show errors)"
# What no link has does not go back.
says "unreachable" ctl show ip6 fib fd77:0:0:ab00::/56 || fail "the rest of the prefix has a way: $(ctl show ip6 fib fd77:0:0:ab00::/56)"

renewals() { grep -c "DHCP6_LEASE_RENEW\|DHCP6_PD_LEASE_RENEW\|LEASE_ALLOC" "$work/kea.log"; }
before=$(renewals)
has_renewed() { [ "$(renewals)" -gt "$before" ]; }
await 15 has_renewed || fail "nothing is renewed: $(tail -n 10 "$work/kea.log")"
says "dhcp6 pd client host-vb prefix group isp" ctl show running-config || fail "the client is not saved"
says "set ip6 address host-va prefix group isp ::7:0:0:0:1/64" ctl show running-config || fail "the address is not saved"
says "ip address host-vb $mine" ctl show running-config && fail "the lease is saved"

expect "end" ctl dhcp6 client host-vb disable
expect "end" ctl dhcp6 pd client host-vb disable
says "$mine" ctl show interface addr && fail "the address stays"
says "ab07::1" ctl show interface addr && fail "the address of the prefix stays"
await 10 says "DHCP6_RELEASE_NA" cat "$work/kea.log" || fail "the address is not given back: $(tail -n 10 "$work/kea.log")"
await 10 says "DHCP6_RELEASE_PD" cat "$work/kea.log" || fail "the prefix is not given back: $(tail -n 10 "$work/kea.log")"
alive
stop_router || fail "the router did not stop"
pass
