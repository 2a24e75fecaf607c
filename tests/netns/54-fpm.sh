#!/usr/bin/env bash
# BGP through the router: FRR beside it, in a namespace with images of its ports, learns routes of BIRD in host a. Its zebra gives them
# to the router by FPM, bgpd announces them to BIRD in host b, which pings what host a announced, both families. FRR is killed and comes
# back under traffic. FRR 8.4 does not read what it is answered, so that is shown by the crate's own tests.
. "$(dirname "$0")/lib.sh"
need ping bird birdc
need_frr bgpd
begin
with_ip6 "$A" "$B"
ip -n "$A" addr add 2001:db8:1::2/64 dev eth0 nodad
ip -n "$B" addr add 2001:db8:2::2/64 dev eth0 nodad
ip -n "$A" -6 route add default via 2001:db8:1::1
ip -n "$B" -6 route add default via 2001:db8:2::1
ip -n "$A" addr add 198.51.100.1/32 dev lo
ip -n "$A" addr add 2001:db8:51::1/128 dev lo nodad
beside
expect "lcp-sync" ctl lcp lcp-sync on
expect "lcp create" ctl lcp create host-va host-if e0 netns "$L"
expect "lcp create" ctl lcp create host-vb host-if e1 netns "$L"
expect "address" ctl set interface ip address host-va 2001:db8:1::1/64
expect "address" ctl set interface ip address host-vb 2001:db8:2::1/64
expect "fpm listen" ctl fpm listen 127.0.0.1:2620 netns "$L"
says 'zebra is not connected' ctl show fpm || fail "show fpm: $(ctl show fpm)"

mkdir "$work/frr"
cat >"$work/frr/zebra.conf" <<CONF
hostname zebra
fpm address 127.0.0.1 port 2620
CONF
cat >"$work/frr/bgpd.conf" <<CONF
router bgp 65000
 bgp router-id 10.0.1.1
 no bgp ebgp-requires-policy
 timers bgp 1 3
 neighbor 10.0.1.2 remote-as 65001
 neighbor 10.0.1.2 timers connect 1
 neighbor 10.0.2.2 remote-as 65002
 neighbor 10.0.2.2 timers connect 1
 neighbor 2001:db8:1::2 remote-as 65001
 neighbor 2001:db8:1::2 timers connect 1
 neighbor 2001:db8:2::2 remote-as 65002
 neighbor 2001:db8:2::2 timers connect 1
 address-family ipv4 unicast
  no neighbor 2001:db8:1::2 activate
  no neighbor 2001:db8:2::2 activate
 exit-address-family
 address-family ipv6 unicast
  neighbor 2001:db8:1::2 activate
  neighbor 2001:db8:2::2 activate
 exit-address-family
CONF
frr_options[zebra]="-M dplane_fpm_nl"
# bird_to_frr NAMESPACE HOST AS NET ROUTES ROUTES6: BIRD with a session to FRR in each family, in 10.0.NET.0/24 and 2001:db8:NET::/64.
bird_to_frr() {
  cat >"$work/$2.conf" <<CONF
router id 10.0.$4.2;
protocol device { }
protocol static { ipv4; $5 }
protocol static { ipv6; $6 }
template bgp frr {
  connect delay time 1;
  connect retry time 1;
  error wait time 1, 2;
  hold time 3;
}
protocol bgp from frr {
  local 10.0.$4.2 as $3;
  neighbor 10.0.$4.1 as 65000;
  ipv4 { import all; export where source = RTS_STATIC; };
}
protocol bgp from frr {
  local 2001:db8:$4::2 as $3;
  neighbor 2001:db8:$4::1 as 65000;
  ipv6 { import all; export where source = RTS_STATIC; };
}
CONF
  start_bird "$1" "$2"
}
await 10 usable "$L" e0 e1 || fail "no link-local addresses: $(ip -n "$L" -6 addr)"
start_frr "$L" frr bgpd
bird_to_frr "$A" a 65001 1 'route 198.51.100.0/24 blackhole;' 'route 2001:db8:51::/48 blackhole;'
bird_to_frr "$B" b 65002 2 '' ''

await 20 says 'zebra is connected' ctl show fpm || fail "zebra does not connect: $(tail -n 5 "$work/frr/zebra.log"); $(ctl show fpm)"
learnt() {
  says 198.51.100.0/24 birdc -s "$work/b.ctl" show route && says 2001:db8:51::/48 birdc -s "$work/b.ctl" show route
}
await 40 learnt ||
  fail "BIRD in b has $(birdc -s "$work/b.ctl" show route 2>&1); $(ctl show fpm); $(ctl show fpm routes); $(tail -n 5 "$work/frr/bgpd.log")"
for prefix in 198.51.100.0/24 2001:db8:51::/48; do
  family=ip
  [[ $prefix != *:* ]] || family=ip6
  says 'fpm' ctl show $family fib "$prefix" detail || fail "not by FPM: $(ctl show $family fib "$prefix" detail)"
done
in_b ping -c 2 -i 0.2 -W 2 198.51.100.1 >/dev/null || fail "no answer from 198.51.100.1: $(ctl show ip fib 198.51.100.1/32)"
in_b ping -c 2 -i 0.2 -W 2 2001:db8:51::1 >/dev/null || fail "no answer from 2001:db8:51::1: $(ctl show ip6 fib 2001:db8:51::1/128)"
# What the kernel says of the same routes is passed over once zebra is quiet.
once() { ! says 'lcp-rt-dynamic' ctl show ip fib 198.51.100.0/24 detail; }
await 20 once || fail "the route is there twice: $(ctl show ip fib 198.51.100.0/24 detail)"

# FRR dies: what it told stays. It comes back, tells it again, and no packet is lost meanwhile.
PATIENCE=120 in_b ping -i 0.05 -w 60 198.51.100.1 >"$work/ping" 2>&1 &
sleep 1
end_frr frr -9
await 5 says 'zebra is not connected' ctl show fpm || fail "the dead zebra is connected: $(ctl show fpm)"
says 'installed 2' ctl show fpm || fail "routes of the dead zebra: $(ctl show fpm)"
start_frr "$L" frr bgpd
await 20 says 'zebra is connected.*connection 2' ctl show fpm || fail "zebra does not come back: $(ctl show fpm)"
back() { says 'connection 2$' ctl show fpm routes; }
await 30 back || fail "routes are not told again: $(ctl show fpm routes)"
interrupt "$B" ping
pings_answered "$work/ping" || fail "$(grep transmitted "$work/ping")"
lost=$(awk '/ packets transmitted/ { print $1 - $4 " of " $1 }' "$work/ping")

# A route that goes, goes; and without FPM the kernel's are followed again.
birdc -s "$work/a.ctl" disable static1 >/dev/null
gone() { ! says 'fpm' ctl show ip fib 198.51.100.0/24 detail; }
await 20 gone || fail "the withdrawn route is still there"
birdc -s "$work/a.ctl" enable static1 >/dev/null
await 20 says fpm ctl show ip fib 198.51.100.0/24 detail || fail "the route does not come back"
expect "fpm listen off" ctl fpm listen off
await 10 says 'lcp-rt-dynamic' ctl show ip fib 198.51.100.0/24 detail ||
  fail "the kernel's route is not followed: $(ctl show ip fib 198.51.100.0/24 detail)"
says 'fpm' ctl show ip fib 198.51.100.0/24 detail && fail "zebra's route is still there"
in_b ping -c 2 -i 0.2 -W 2 198.51.100.1 >/dev/null || fail "no answer without FPM"
alive
pass "FRR and BIRD, $lost packets lost while FRR was dead"
