#!/usr/bin/env bash
# A VRF by a network namespace: images of ports in table 10 in one namespace, images of ports in table 0 in another one, with the same
# addresses and the same prefixes behind them. FRR in the one and BIRD in the other, then the other way round: OSPF, OSPFv3 with one host,
# BGP of both families with another one, routes of each handed on to the other. Hosts reach each other in their VRF, both families, and
# not those of the other one; a VRF whose peer dies loses its routes, and the other one keeps them; ports change tables under the daemons.
#
#   red, table 10:   host a --- va, image e0   namespace L   image e1, vb --- host b
#   table 0:         host c --- vc, image e0   namespace M   image e1, vd --- host d
# LIMIT=300
. "$(dirname "$0")/lib.sh"
need ping bird birdc vtysh
need_frr ospfd ospf6d bgpd
hosts
place C
place D
place M
cable "$C" vc 10.0.1.2/24 10.0.1.1
cable "$D" vd 10.0.2.2/24 10.0.2.1
with_ip6 "$A" "$B" "$C" "$D"
ip netns add "$L" && ip -n "$L" link set lo up || fail "cannot make a namespace"
for host in "$A:1:100" "$C:1:100" "$B:2:102" "$D:2:102"; do
  IFS=: read -r ns net own <<<"$host"
  ip -n "$ns" route del default
  ip -n "$ns" addr add "2001:db8:$net::2/64" dev eth0 nodad
  ip -n "$ns" addr add "198.51.$own.1/32" dev lo
  ip -n "$ns" addr add "2001:db8:a$own::1/128" dev lo nodad
done
start_router linux-cp { lcp-sync }
expect "table" ctl ip table add 10
expect "table" ctl ip6 table add 10
for port in va:e0:1:10 vb:e1:2:10 vc:e0:1:0 vd:e1:2:0; do
  IFS=: read -r cable image net table <<<"$port"
  expect "create host-interface" ctl create host-interface name "$cable"
  expect "table" ctl set interface ip table "host-$cable" "$table"
  expect "table" ctl set interface ip6 table "host-$cable" "$table"
  expect "state" ctl set interface state "host-$cable" up
  expect "address" ctl set interface ip address "host-$cable" "10.0.$net.1/24"
  expect "address" ctl set interface ip address "host-$cable" "2001:db8:$net::1/64"
  in=$M
  [ "$table" = 0 ] || in=$L
  expect "lcp create" ctl lcp create "host-$cable" host-if "$image" netns "$in"
done
says 'main table: ip4 10, ip6 10' ctl show lcp netlink || fail "the namespace is no VRF: $(ctl show lcp netlink)"
for ns in "$L" "$M"; do
  await 10 usable "$ns" e0 e1 || fail "no link-local addresses: $(ip -n "$ns" -6 addr)"
  in_ns "$ns" ping -c 1 -W 2 10.0.1.2 >/dev/null || fail "Linux in $ns does not reach a host"
  in_ns "$ns" ping -c 1 -W 2 2001:db8:2::2 >/dev/null || fail "Linux in $ns does not reach a host by IPv6"
done

# bird_bgp AS PEER-AS LOCAL4 PEER4 LOCAL6 PEER6 WHAT: a session of each family that announces WHAT.
bird_bgp() {
  local timers="hold time 3; connect delay time 1; connect retry time 1; error wait time 1, 2;"
  echo "protocol bgp { local $3 as $1; neighbor $4 as $2; $timers ipv4 { import all; export where $7; next hop self; }; }"
  echo "protocol bgp { local $5 as $1; neighbor $6 as $2; $timers ipv6 { import all; export where $7; next hop self; }; }"
}
direct='protocol direct { ipv4; ipv6; interface "lo"; }'
for host in "$A:a" "$C:c"; do
  bird_with "${host%:*}" "${host#*:}" 10.0.0.2 "$(bird_ospf eth0 198.51.100.1/32 2001:db8:a100::1/128)"
done
for host in "$B:b" "$D:d"; do
  bird_with "${host%:*}" "${host#*:}" 10.0.0.3 "$direct
$(bird_bgp 65002 65000 10.0.2.2 10.0.2.1 2001:db8:2::2 2001:db8:2::1 'source = RTS_DEVICE')"
done

# beside_by_frr NAMESPACE: OSPF with e0's host, BGP with e1's; each hears what the other one announces.
beside_by_frr() {
  mkdir -p "$work/frr"
  cat >"$work/frr/ospfd.conf" <<'CONF'
interface e0
 ip ospf network point-to-point
 ip ospf hello-interval 1
 ip ospf dead-interval 4
!
router ospf
 ospf router-id 10.0.0.1
 network 10.0.1.0/24 area 0
 redistribute bgp
CONF
  cat >"$work/frr/ospf6d.conf" <<'CONF'
interface e0
 ipv6 ospf6 network point-to-point
 ipv6 ospf6 area 0
 ipv6 ospf6 hello-interval 1
 ipv6 ospf6 dead-interval 4
!
router ospf6
 ospf6 router-id 10.0.0.1
 redistribute bgp
CONF
  cat >"$work/frr/bgpd.conf" <<'CONF'
router bgp 65000
 bgp router-id 10.0.0.1
 no bgp ebgp-requires-policy
 timers bgp 1 3
 neighbor 10.0.2.2 remote-as 65002
 neighbor 10.0.2.2 timers connect 1
 neighbor 2001:db8:2::2 remote-as 65002
 neighbor 2001:db8:2::2 timers connect 1
 address-family ipv4 unicast
  no neighbor 2001:db8:2::2 activate
  redistribute ospf
 exit-address-family
 address-family ipv6 unicast
  neighbor 2001:db8:2::2 activate
  redistribute ospf6
 exit-address-family
CONF
  start_frr "$1" frr ospfd ospf6d bgpd
}
# beside_by_bird NAMESPACE: the same of BIRD.
beside_by_bird() {
  local ospf='source ~ [ RTS_OSPF, RTS_OSPF_IA, RTS_OSPF_EXT1, RTS_OSPF_EXT2 ]'
  bird_with "$1" middle 10.0.0.1 "$(bird_ospf e0 | sed 's/export none/export where source = RTS_BGP/')
$(bird_bgp 65000 65002 10.0.2.1 10.0.2.2 2001:db8:2::1 2001:db8:2::2 "$ospf")"
}

# routed TABLE: whether the router has what both hosts announce, from the kernel, in this table.
prefixes=(198.51.100.1/32 2001:db8:a100::1/128 198.51.102.1/32 2001:db8:a102::1/128)
routed() {
  local prefix family
  for prefix in "${prefixes[@]}"; do
    family=ip
    [[ $prefix != *:* ]] || family=ip6
    says lcp-rt-dynamic ctl show $family fib table "$1" "$prefix" detail || return 1
  done
}
# crossing NAMESPACE: whether the host with 198.51.100.1 there reaches the other one of its VRF.
crossing() {
  in_ns "$1" ping -c 1 -W 1 -I 198.51.100.1 198.51.102.1 >/dev/null &&
    in_ns "$1" ping -c 1 -W 1 -I 2001:db8:a100::1 2001:db8:a102::1 >/dev/null
}
cut_off() { ! in_ns "$1" ping -c 1 -W 1 -I 198.51.100.1 198.51.102.1 && ! crossing "$1"; }
seen() {
  local ns
  for ns in "$L" "$M"; do ip -n "$ns" route; ip -n "$ns" -6 route; done
  ctl show lcp netlink
  ctl show ip fib table 10
  vty frr 'show ip ospf neighbor'
  vty frr 'show bgp summary'
  ask_bird middle show protocols
  ask_bird a show route
  ask_bird b show route
}
# through WHO: routes and packets of both VRFs, and that they are two.
through() {
  await 40 routed 10 || fail "$1: table 10: $(seen)"
  await 40 routed 0 || fail "$1: table 0: $(seen)"
  await 20 crossing "$A" || fail "$1: no answers in the VRF: $(seen)"
  await 20 crossing "$C" || fail "$1: no answers in table 0: $(seen)"
  # A peer of one VRF dies: its routes go, and the other VRF's stay.
  ip -n "$B" link set eth0 down
  await 20 cut_off "$A" || fail "$1: a VRF without its peer: $(seen)"
  gone() { ! says lcp-rt-dynamic ctl show ip fib table 10 198.51.102.1/32 detail; }
  await 20 gone || fail "$1: the route of the dead peer stays: $(seen)"
  routed 0 && crossing "$C" || fail "$1: table 0 is hurt by the VRF: $(seen)"
  ip -n "$B" link set eth0 up
  ip -n "$B" addr add 2001:db8:2::2/64 dev eth0 nodad 2>/dev/null
  await 30 routed 10 || fail "$1: the peer's return: $(seen)"
  await 20 crossing "$A" || fail "$1: no answers after the peer's return: $(seen)"
}
beside_by_frr "$L"
beside_by_bird "$M"
through "FRR in the VRF, BIRD in table 0"

# They change places.
end_frr frr
kill "$(cat "$work/middle.pid")"
none() { [ -z "$(running "$L" zebra ospfd ospf6d bgpd bird)$(running "$M" bird)" ]; }
await 10 none || fail "daemons go on"
left() { ! says lcp-rt-dynamic ctl show ip fib table 10 && ! says lcp-rt-dynamic ctl show ip6 fib table 10; }
beside_by_bird "$L"
beside_by_frr "$M"
through "BIRD in the VRF, FRR in table 0"

# The VRF gets another number under BIRD: addresses go first, and Linux has them again.
for family in ip ip6; do expect "table" ctl $family table add 20; done
PATIENCE=60
for port in va:1 vb:2; do
  IFS=: read -r cable net <<<"$port"
  for address in "10.0.$net.1/24" "2001:db8:$net::1/64"; do expect "address" ctl set interface ip address del "host-$cable" "$address"; done
done
for port in va:1 vb:2; do
  IFS=: read -r cable net <<<"$port"
  for family in ip ip6; do expect "table" ctl set interface $family table "host-$cable" 20; done
  for address in "10.0.$net.1/24" "2001:db8:$net::1/64"; do expect "address" ctl set interface ip address "host-$cable" "$address"; done
done
await 40 routed 20 || fail "the VRF's new table: $(seen)"
await 20 crossing "$A" || fail "no answers by the VRF's new table: $(seen)"
await 10 left || fail "routes in the table of before: $(ctl show ip fib table 10)"
await 20 crossing "$C" || fail "table 0: $(seen)"
alive
await 10 no_buffers_used || fail "$(buffers_used) buffers are still in use"
pass
