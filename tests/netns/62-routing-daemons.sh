#!/usr/bin/env bash
# FRR and then BIRD, unmodified, beside the router, in a namespace with images of its ports. FRR: OSPF, OSPFv3 and IS-IS with FRR in
# host a, watched by BFD, and OSPF, OSPFv3 with BIRD in host b. BIRD: OSPF, OSPFv3 and BGP with both. Hosts ping what the other
# one announced, both families. FRR is killed and comes back; a link is cut and what was by it goes.
# LIMIT=300
. "$(dirname "$0")/lib.sh"
need ping bird birdc vtysh
need_frr ospfd ospf6d isisd bfdd bgpd
begin
with_ip6 "$A" "$B"
ip -n "$A" addr add 2001:db8:1::2/64 dev eth0 nodad
ip -n "$B" addr add 2001:db8:2::2/64 dev eth0 nodad
# What host a announces by OSPF ends in .1 of net 100, by IS-IS in net 101; host b announces net 102.
for address in 198.51.100.1/32 198.51.101.1/32; do ip -n "$A" addr add "$address" dev lo; done
for address in 2001:db8:a100::1/128 2001:db8:a101::1/128; do ip -n "$A" addr add "$address" dev lo nodad; done
ip -n "$B" addr add 198.51.102.1/32 dev lo
ip -n "$B" addr add 2001:db8:a102::1/128 dev lo nodad
# Routes are what the daemons learn, and nothing else.
for host in "$A" "$B"; do ip -n "$host" route del default; done
beside
expect "lcp-sync" ctl lcp lcp-sync on
expect "osi-proto" ctl lcp osi-proto enable isis
for port in va:e0:1 vb:e1:2; do
  IFS=: read -r cable image net <<<"$port"
  expect "lcp create" ctl lcp create "host-$cable" host-if "$image" netns "$L"
  expect "address" ctl set interface ip address "host-$cable" "2001:db8:$net::1/64"
done

# Zebra that starts again keeps its routes for so long.
frr_options[zebra]="-K 30"
# ospf FOLDER ROUTER IMAGE... : FRR's files for OSPF of both families on these interfaces.
ospf() {
  local folder=$work/$1 id=$2 image
  shift 2
  mkdir "$folder"
  : >"$folder/bfdd.conf"
  {
    for image in "$@"; do
      printf 'interface %s\n ip ospf network point-to-point\n ip ospf hello-interval 1\n ip ospf dead-interval 4\n' "$image"
      [ "$image" != "$1" ] || printf ' ip ospf bfd\n'
      printf '!\n'
    done
    printf 'router ospf\n ospf router-id %s\n network 10.0.0.0/16 area 0\n network 198.51.100.0/24 area 0\n' "$id"
  } >"$folder/ospfd.conf"
  {
    for image in "$@"; do
      printf 'interface %s\n ipv6 ospf6 network point-to-point\n ipv6 ospf6 area 0\n ipv6 ospf6 hello-interval 1\n ipv6 ospf6 dead-interval 4\n!\n' "$image"
    done
    printf 'router ospf6\n ospf6 router-id %s\n' "$id"
  } >"$folder/ospf6d.conf"
  {
    printf 'interface %s\n ip router isis 1\n ipv6 router isis 1\n isis hello-interval 1\n isis hello-multiplier 4\n!\n' "$1"
    printf 'router isis 1\n net 49.0001.0000.0000.000%s.00\n is-type level-2-only\n' "${id##*.}"
  } >"$folder/isisd.conf"
}
ospf frr-l 10.0.0.1 e0 e1
ospf frr-a 10.0.0.2 eth0
sed -i '1i interface lo\n ip router isis 1\n ipv6 router isis 1\n isis passive\n!' "$work/frr-a/isisd.conf"
sed -i '1i interface lo\n ipv6 ospf6 area 0\n!' "$work/frr-a/ospf6d.conf"
await 10 usable "$L" e0 e1 || fail "no link-local addresses: $(ip -n "$L" -6 addr)"
start_frr "$A" frr-a ospfd ospf6d isisd bfdd
start_frr "$L" frr-l ospfd ospf6d isisd bfdd
bird_with "$B" b 10.0.0.3 "$(bird_ospf eth0 198.51.102.1/32 2001:db8:a102::1/128)"

# routed PREFIX...: whether the router has these from the kernel.
routed() {
  local prefix
  for prefix in "$@"; do
    local family=ip
    [[ $prefix != *:* ]] || family=ip6
    says lcp-rt-dynamic ctl show $family fib "$prefix" detail || return 1
  done
}
# What the daemons of folder frr-l see, for a failure.
seen() {
  vty frr-l 'show ip ospf neighbor'
  vty frr-l 'show ipv6 ospf6 neighbor'
  vty frr-l 'show isis neighbor'
  vty frr-l 'show bfd peers brief'
  ip -n "$L" route
  ip -n "$L" -6 route
}
ospf_routes=(198.51.100.1/32 2001:db8:a100::1/128 198.51.102.1/32 2001:db8:a102::1/128)
isis_routes=(198.51.101.1/32 2001:db8:a101::1/128)
await 40 routed "${ospf_routes[@]}" || fail "OSPF with FRR in a and BIRD in b: $(seen)"
await 30 routed "${isis_routes[@]}" || fail "IS-IS with FRR in a: $(seen)"
# crossing: hosts reach what the other one announced.
crossing() {
  local at
  for at in 198.51.100.1 2001:db8:a100::1; do
    in_b ping -c 2 -i 0.2 -W 2 -I "$([[ $at == *:* ]] && echo 2001:db8:a102::1 || echo 198.51.102.1)" "$at" >/dev/null || return 1
  done
}
await 20 crossing || fail "no answers across: $(seen); in b: $(ask_bird b show route)"
watched() { says ' up' vty frr-l 'show bfd peers brief'; }
await 20 watched || fail "BFD: $(seen); $(ctl show errors)"

# FRR dies and comes back: what it left in the kernel stays, traffic goes on.
PATIENCE=120 in_b ping -i 0.05 -w 90 -I 198.51.102.1 198.51.100.1 >"$work/ping" 2>&1 &
sleep 1
end_frr frr-l -9
sleep 2
start_frr "$L" frr-l ospfd ospf6d isisd bfdd
await 30 watched || fail "BFD after FRR's restart: $(seen)"
await 30 says Full vty frr-l 'show ip ospf neighbor' || fail "OSPF after FRR's restart: $(seen)"
await 30 routed "${ospf_routes[@]}" "${isis_routes[@]}" || fail "routes after FRR's restart: $(seen)"
interrupt "$B" ping
restart=$(awk '/ packets transmitted/ { print $1 - $4 " of " $1 }' "$work/ping")

# Host a is cut off without a word: BFD sees it before OSPF's dead interval is over, and the routes go.
from=$(date +%s%N)
ip -n "$A" link set eth0 down
gone() { ! routed 198.51.100.1/32; }
await 10 gone || fail "routes by the cut link stay: $(seen)"
cut=$((($(date +%s%N) - from) / 1000000))
ip -n "$A" link set eth0 up
ip -n "$A" addr add 2001:db8:1::2/64 dev eth0 nodad 2>/dev/null
await 40 routed "${ospf_routes[@]}" || fail "routes after the link's return: $(seen)"

# BIRD takes FRR's place.
end_frr frr-l
ip netns exec "$A" true && kill "$(cat "$work/b.pid")"
await 15 gone || fail "FRR leaves its routes: $(ip -n "$L" route)"
bgp() {
  # A session that is lost beside other work comes back at once, not after a minute.
  echo "protocol bgp { local $1 as $2; neighbor $3 as $4; hold time 9; connect delay time 1; connect retry time 1; error wait time 1, 2;"
  echo "ipv4 { import all; export where source ~ [ RTS_DEVICE, RTS_BGP ]; next hop self; };"
  echo "ipv6 { import all; export where source ~ [ RTS_DEVICE, RTS_BGP ]; next hop address $5; }; }"
}
bird_with "$L" l 10.0.0.1 "$(bird_ospf e0)
$(bgp 10.0.2.1 65000 10.0.2.2 65002 2001:db8:2::1)
protocol direct { ipv4; ipv6; interface \"e*\"; }"
bird_with "$B" b 10.0.0.3 "$(bgp 10.0.2.2 65002 10.0.2.1 65000 2001:db8:2::2)
protocol direct { ipv4; ipv6; interface \"lo\"; }"
await 40 routed "${ospf_routes[@]}" || fail "BIRD: $(ask_bird l show route); $(ask_bird l show protocols); $(ask_bird l show ospf neighbors)"
alive
await 10 no_buffers_used || fail "$(buffers_used) buffers are still in use"
pass "FRR's restart lost $restart, a cut link was seen in $cut ms"
