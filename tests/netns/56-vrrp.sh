#!/usr/bin/env bash
# The router and keepalived share addresses, both families, VRRP 3 and 2; router advertisements come from the virtual router. A host that uses them as its gateway goes on when the router
# is killed, stopped or comes back, and how long it waited is printed.
. "$(dirname "$0")/lib.sh"
need ping keepalived
ip netns add "$A" 2>"$work/why" || skip "no network namespaces here: $(cat "$work/why")"
ip netns add "$B" && ip netns add "$R" || fail "cannot make namespaces"
# Router, host a and keepalived's host b on one switch; b is also behind the router.
ip -n "$R" link add name switch type bridge 2>"$work/why" || skip "no bridges here: $(cat "$work/why")"
ip netns exec "$R" sysctl -qw net.ipv6.conf.switch.disable_ipv6=1
ip -n "$R" link set dev switch type bridge mcast_snooping 0
ip -n "$R" link set switch up
ip -n "$R" link add name va type veth peer name port-r || fail "cannot make a veth pair"
ip -n "$R" link add name port-a type veth peer name eth0 netns "$A" || fail "cannot make a veth pair"
ip -n "$R" link add name port-b type veth peer name eth0 netns "$B" || fail "cannot make a veth pair"
ip -n "$R" link add name vb type veth peer name eth1 netns "$B" || fail "cannot make a veth pair"
for port in va vb port-r port-a port-b; do
  ip netns exec "$R" sysctl -qw "net.ipv6.conf.$port.disable_ipv6=1"
  case $port in port-*) ip -n "$R" link set "$port" master switch ;; esac
  ip -n "$R" link set "$port" up
done
n=1
for ns in "$A" "$B"; do
  n=$((n + 1))
  ip netns exec "$ns" sysctl -qw net.ipv6.conf.all.disable_ipv6=0 net.ipv6.conf.eth0.disable_ipv6=0 net.ipv6.conf.eth0.dad_transmits=0
  ip netns exec "$ns" sysctl -qw net.ipv4.conf.all.rp_filter=0 net.ipv4.conf.eth0.rp_filter=0 net.ipv4.conf.all.accept_redirects=0
  ip -n "$ns" link set lo up
  ip -n "$ns" addr add "10.0.1.$n/24" dev eth0
  ip -n "$ns" link set eth0 up
  ip -n "$ns" addr add "fd00:1::$n/64" dev eth0 nodad
done
ip netns exec "$B" sysctl -qw net.ipv4.conf.eth1.rp_filter=0
ip -n "$B" addr add 10.0.2.2/24 dev eth1
ip -n "$B" link set eth1 up
ip -n "$B" addr add 10.77.0.1/32 dev lo
ip -n "$A" route add default via 10.0.1.100

configure() {
  start_router
  attach va 10.0.1.1/24
  attach vb 10.0.2.1/24
  expect "IPv6" ctl set interface ip address host-va fd00:1::1/64
  expect "way" ctl ip route add 10.77.0.0/24 via 10.0.2.2 host-vb
  expect "IPv4" ctl vrrp vr add host-va vr_id 7 priority 150 interval 20 accept_mode 10.0.1.100
  expect "IPv6" ctl vrrp vr add host-va vr_id 7 ipv6 priority 150 interval 20 accept_mode fe80::7 fd00:1::100
  expect "version 2" ctl vrrp vr add host-va vr_id 8 priority 50 version 2 accept_mode 10.0.1.200
  for of in "vr_id 7" "vr_id 7 ipv6" "vr_id 8"; do expect "start" ctl vrrp proto start host-va $of; done
}
cat >"$work/keepalived.conf" <<'C'
global_defs { vrrp_garp_master_delay 1 }
vrrp_instance four {
  version 3
  state BACKUP
  interface eth0
  virtual_router_id 7
  priority 100
  advert_int 0.2
  virtual_ipaddress { 10.0.1.100/32 dev eth0 }
}
vrrp_instance six {
  version 3
  state BACKUP
  interface eth0
  virtual_router_id 7
  priority 100
  advert_int 0.2
  virtual_ipaddress {
    fe80::7/64 dev eth0
    fd00:1::100/64 dev eth0
  }
}
vrrp_instance old {
  version 2
  state BACKUP
  interface eth0
  virtual_router_id 8
  priority 100
  advert_int 1
  virtual_ipaddress { 10.0.1.200/32 dev eth0 }
}
C
ip netns exec "$B" keepalived -n -l -D -P -f "$work/keepalived.conf" -p "$work/keepalived.pid" -r "$work/vrrp.pid" >"$work/keepalived.log" 2>&1 &
keepalived=$!
helpers+=("$keepalived")
has() { ip -n "$B" addr show dev eth0 | grep -q "inet6\? $1/"; }
has_not() { ! has "$1"; }
state() { ctl show vrrp vr | grep -A1 "VR ID $1" | grep -q "state $2"; }
await 10 has 10.0.1.100 || fail "keepalived does not take the addresses alone: $(tail -n 20 "$work/keepalived.log")"

# The router has the higher priority of two, and the lower one of the third.
configure
await 10 state "7 IPv4" Master || fail "the router does not take the address: $(ctl show vrrp vr)"
await 10 state "7 IPv6" Master || fail "the router does not take the IPv6 addresses: $(ctl show vrrp vr)"
await 10 has_not 10.0.1.100 || fail "keepalived keeps the address: $(tail -n 20 "$work/keepalived.log")"
await 10 has_not fd00:1::100 || fail "keepalived keeps the IPv6 address: $(tail -n 20 "$work/keepalived.log")"
await 10 has 10.0.1.200 || fail "keepalived does not have the third: $(tail -n 20 "$work/keepalived.log")"
await 10 state "8 IPv4" Backup || fail "the router does not hear version 2: $(ctl show vrrp vr)"
await 10 in_a ping -c 1 -W 1 10.77.0.1 || fail "no way through the router"
await 10 in_a ping -6 -c 1 -W 1 fd00:1::100 || fail "the IPv6 address is not answered"
in_a ping -c 1 -W 1 10.0.1.100 >/dev/null || fail "the address is not answered"
says "10.0.1.100 .*00:00:5e:00:01:07" ip -n "$A" neigh || fail "another MAC address: $(ip -n "$A" neigh)"
says "fd00:1::100 .*00:00:5e:00:02:07" ip -n "$A" -6 neigh || fail "another MAC address: $(ip -n "$A" -6 neigh)"
# Host a hears router advertisements of the virtual router alone, with its MAC address (RFC 9568 8.2.3).
gateway() { ip -n "$A" -6 route show default; }
await 30 says 'default via fe80::7 ' gateway || fail "no router advertisement of the virtual router: $(gateway); $(ctl show ip6 interface host-va)"
says 'default via fe80::[^7]' gateway && fail "the router advertises itself, too: $(gateway)"
says "fe80::7 .*00:00:5e:00:02:07" ip -n "$A" -6 neigh || fail "the virtual router has another MAC address: $(ip -n "$A" -6 neigh)"
says 'They come from fe80::7, virtual router 7' ctl show ip6 interface host-va || fail "show ip6 interface: $(ctl show ip6 interface host-va)"

# `without WHAT COMMAND...`: how many milliseconds host a was without its gateway while the command did something.
without() {
  local what=$1 lost
  shift
  ip netns exec "$A" ping -n -i 0.02 -W 1 10.77.0.1 >"$work/pings" 2>&1 &
  local pings=$!
  sleep 1
  "$@"
  sleep 3
  kill -INT "$pings"
  wait "$pings"
  lost=$(awk '/ packets transmitted/ { print $1 - $4 }' "$work/pings")
  echo "$what: $((lost * 20)) ms without the gateway"
  [ "$lost" -lt 100 ] || fail "$what: $lost pings of 20 ms were lost: $(ctl show vrrp vr)"
}
give_up() { expect "stop" ctl vrrp proto stop host-va vr_id 7; }
take_back() { expect "start" ctl vrrp proto start host-va vr_id 7; }
without "the router stops its part" give_up
await 5 has 10.0.1.100 || fail "keepalived does not take over"
without "the router takes it back" take_back
await 5 has_not 10.0.1.100 || fail "keepalived keeps the address"
die() { kill -9 "$router"; }
without "the router is killed" die
wait "$router" 2>/dev/null
router=
{ await 5 has 10.0.1.100 && await 5 has fd00:1::100; } || fail "keepalived does not take over: $(tail -n 20 "$work/keepalived.log")"

# It comes back, and keepalived goes.
configure
await 10 state "7 IPv4" Master || fail "the router does not take the address back: $(ctl show vrrp vr)"
await 10 state "8 IPv4" Backup || fail "the router does not hear version 2: $(ctl show vrrp vr)"
kill -9 "$keepalived" $(cat "$work/vrrp.pid" "$work/keepalived.pid" 2>/dev/null) 2>/dev/null
await 10 state "8 IPv4" Master || fail "the router does not take the third: $(ctl show vrrp vr)"
ip -n "$B" addr del 10.0.1.200/32 dev eth0 2>/dev/null
await 5 in_a ping -c 1 -W 1 10.0.1.200 || fail "the third address is not answered"
alive
stop_router || fail "the router did not stop"
pass
