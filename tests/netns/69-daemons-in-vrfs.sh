#!/usr/bin/env bash
# A virtual machine with Debian's kernel, which has VRFs, with the router, hosts that run BIRD, and a namespace with images in two VRFs.
# FRR, then BIRD, runs there, one daemon for both VRFs, and speaks BGP of both families with each host. The same addresses and the same
# prefixes are in both VRFs; hosts of one reach each other by what they have announced, both families, and not those of the other one.
# FRR is killed, and packets get through nevertheless; a peer dies, and its VRF alone loses the routes.
#
#   red, table 10:   h0 10.0.1.2 --- p0, image e0   router   p1, image e1 --- 10.0.2.2 h1
#   blue, table 20:  h2 10.0.1.2 --- p2, image e2   router   p3, image e3 --- 10.0.2.2 h3
#
# h0 and h2 announce 198.51.100.1 and 2001:db8:a100::1, h1 and h3 announce 198.51.102.1 and 2001:db8:a102::1.
# NEEDS=qemu
# LIMIT=300
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/guest.sh"
need ip bird
need_frr bgpd
guest_kernel
guest_router
guest_memory=1024 guest_cpus=2
guest_image tun veth vrf -- "${guest_router[@]}" ip:/bin/iproute2 bird "$frr/zebra" "$frr/bgpd" <<'GUEST'
. /router.sh
patience=60
printf 'root:x:0:0:root:/tmp:/bin/sh\nfrr:x:92:92:frr:/tmp:/bin/sh\n' >/etc/passwd
printf 'root:x:0:\nfrr:x:92:\nfrrvty:x:93:frr\n' >/etc/group
four_hosts
for vrf in red:10 blue:20; do
  run dp link add ${vrf%:*} type vrf table ${vrf#*:}
  run dp link set ${vrf%:*} up
done
for n in 0 1 2 3; do
  vrf=red net=$((n % 2 + 1))
  [ $n -lt 2 ] || vrf=blue
  run dp link set e$n master $vrf
  run dp addr add 10.0.$net.1/24 dev e$n
  run dp addr add 2001:db8:$net::1/64 dev e$n nodad
  own=$((100 + n % 2 * 2))
  run ip -n h$n addr add 198.51.$own.1/32 dev lo
  run ip -n h$n addr add 2001:db8:a$own::1/128 dev lo nodad
  # What a host reaches, it has learnt by BGP.
  host h$n sysctl -q -w net.ipv6.conf.eth0.accept_ra=0
  ip -n h$n route del default
  while ip -n h$n -6 route del default 2>/dev/null; do :; done
done
until_ok shows 'red table 10: host-p0 host-p1' c show lcp vrf
until_ok shows 'blue table 20: host-p2 host-p3' c show lcp vrf
for n in 0 1 2 3; do
  net=$((n % 2 + 1))
  until_ok reach h$n 10.0.$net.1
  until_ok reach6 h$n 2001:db8:$net::1
done

# bgp VRF AS LOCAL PEER-AS PEER FAMILY TABLE WHAT: one session of BIRD's that announces WHAT. Not the network that both are on: its
# metric is better than that of the kernel's own route to it in IPv6, and neighbours could not be reached any more.
timers="hold time 30; keepalive time 5; connect delay time 1; connect retry time 2; error wait time 1, 2;"
bgp() {
  local in= table=
  [ "$1" = - ] || in="vrf \"$1\";"
  [ "$7" = - ] || table="table $7;"
  echo "protocol bgp { $in local $3 as $2; neighbor $5 as $4; $timers $6 { $table import all; export where $8; next hop self; }; }"
}
for n in 0 1 2 3; do
  net=$((n % 2 + 1))
  {
    echo "router id 10.0.0.$((n + 2)); protocol device { } protocol direct { ipv4; ipv6; interface \"lo\"; }"
    for family in ipv4 ipv6; do echo "protocol kernel { $family { export all; }; }"; done
    bgp - $((65001 + n)) 10.0.$net.2 65000 10.0.$net.1 ipv4 - 'source = RTS_DEVICE'
    bgp - $((65001 + n)) 2001:db8:$net::2 65000 2001:db8:$net::1 ipv6 - 'source = RTS_DEVICE'
  } >/tmp/h$n.conf
  host h$n bird -c /tmp/h$n.conf -s /tmp/h$n.ctl -P /tmp/h$n.pid >/dev/null 2>&1
done

# routed TABLE: whether the router has what hosts of a VRF have announced, from the kernel.
routed() {
  local end
  for end in 100 102; do
    c show ip fib table $1 198.51.$end.1/32 detail | grep lcp-rt-dynamic || return 1
    c show ip6 fib table $1 2001:db8:a$end::1/128 detail | grep lcp-rt-dynamic || return 1
  done
}
gone() { ! c show ip fib table $1 $2 detail | grep lcp-rt-dynamic; }
gone6() { ! c show ip6 fib table $1 $2 detail | grep lcp-rt-dynamic; }
# crossing HOST: what it has announced reaches what the other one of its VRF has announced.
crossing() { host $1 ping -c 1 -W 2 -I 198.51.100.1 198.51.102.1; }
crossing6() { host $1 ping6 -c 1 -W 2 -I 2001:db8:a100::1 2001:db8:a102::1; }
through() {
  for table in 10 20; do until_ok routed $table; done
  for n in 0 2; do
    until_ok crossing h$n
    until_ok crossing6 h$n
  done
  # A peer dies: its VRF loses the routes, and the other one has them.
  kill -9 $(cat /tmp/h1.pid)
  run ip -n h1 link set eth0 down
  until_ok gone 10 198.51.102.1/32
  until_ok gone6 10 2001:db8:a102::1/128
  run routed 20
  until_ok crossing h2
  until_ok crossing6 h2
  crossing h0 >/dev/null 2>&1 && say "FAILED h0 reaches a host of the other VRF"
  run ip -n h1 link set eth0 up
  ip -n h1 addr add 2001:db8:2::2/64 dev eth0 nodad 2>/dev/null
  host h1 bird -c /tmp/h1.conf -s /tmp/h1.ctl -P /tmp/h1.pid >/dev/null 2>&1
  until_ok routed 10
  until_ok crossing h0
  until_ok crossing6 h0
}
more_is_known() {
  c show ip fib table 10
  c show ip6 fib table 10
  c show ip neighbors
  for n in 0 1 2 3; do ip -n h$n route; ip -n h$n -6 route; done
  tail -n 20 /tmp/frr.log
}

# FRR.
mkdir /tmp/frr
frr_bgp() {
  local vrf n net
  for vrf in red:1 blue:3; do
    echo "router bgp 65000 vrf ${vrf%:*}"
    printf ' bgp router-id 10.0.0.1\n no bgp ebgp-requires-policy\n timers bgp 5 30\n'
    for net in 1 2; do
      for at in 10.0.$net.2 2001:db8:$net::2; do
        printf ' neighbor %s remote-as %s\n neighbor %s timers connect 1\n' $at $((65000 + ${vrf#*:} + net - 1)) $at
      done
    done
    printf ' address-family ipv4 unicast\n'
    for net in 1 2; do printf '  no neighbor 2001:db8:%s::2 activate\n' $net; done
    printf ' exit-address-family\n address-family ipv6 unicast\n'
    for net in 1 2; do printf '  neighbor 2001:db8:%s::2 activate\n' $net; done
    printf ' exit-address-family\nexit\n!\n'
  done
}
echo hostname zebra >/tmp/frr/zebra.conf
frr_bgp >/tmp/frr/bgpd.conf
chown -R frr:frr /tmp/frr
for daemon in zebra bgpd; do
  host dp /usr/lib/frr/$daemon --vty_socket /tmp/frr -z /tmp/frr/zserv.api -i /tmp/frr/$daemon.pid -f /tmp/frr/$daemon.conf \
    --log file:/tmp/frr/$daemon.log >>/tmp/frr.log 2>&1 &
  [ $daemon = bgpd ] || until_ok test -S /tmp/frr/zserv.api
done
through
# FRR dies and packets get through by what it has left in the kernel.
kill -9 $(cat /tmp/frr/bgpd.pid) $(cat /tmp/frr/zebra.pid)
sleep 1
for n in 0 2; do
  run crossing h$n
  run crossing6 h$n
done
# Routes of both VRFs go with their next hops.
run dp nexthop flush
for table in 10 20; do
  until_ok gone $table 198.51.102.1/32
  until_ok gone6 $table 2001:db8:a102::1/128
done

# BIRD takes its place.
{
  echo 'router id 10.0.0.1; protocol device { scan time 1; }'
  for vrf in red:10:1 blue:20:3; do
    vrf_name=${vrf%%:*} first=${vrf##*:} number=${vrf#*:}
    number=${number%:*}
    for family in ipv4 ipv6; do
      echo "$family table $vrf_name$family;"
      echo "protocol kernel { vrf \"$vrf_name\"; kernel table $number; $family { table $vrf_name$family; export all; }; }"
    done
    for net in 1 2; do
      as=$((65000 + first + net - 1))
      bgp $vrf_name 65000 10.0.$net.1 $as 10.0.$net.2 ipv4 ${vrf_name}ipv4 'source = RTS_BGP'
      bgp $vrf_name 65000 2001:db8:$net::1 $as 2001:db8:$net::2 ipv6 ${vrf_name}ipv6 'source = RTS_BGP'
    done
  done
} >/tmp/dp.conf
more_is_known() {
  c show ip fib table 10
  c show ip6 fib table 10
  c show ip neighbors
  for n in 0 1 2 3; do ip -n h$n route; ip -n h$n -6 route; done
  cat /tmp/dp.conf
}
run host dp bird -c /tmp/dp.conf -s /tmp/dp.ctl -P /tmp/dp.pid
through
kill -0 $(pidof shoal) 2>/dev/null || say "FAILED the router has died: $(tail -n 30 /tmp/shoal.log | tr '\n' ' ')"
used() { c show buffers | awk 'NF { last = $NF } END { print last + 0 }'; }
no_buffers() { [ "$(used)" -eq 0 ]; }
until_ok no_buffers
say "seconds $(cut -d. -f1 /proc/uptime)"
GUEST
guest one
guest_finished one 280
pass "$guest_how, $(grep -a '^GUEST seconds' "$work/one.log" | tr -d '\r' | cut -d' ' -f3) s in the guest"
