#!/usr/bin/env bash
# A virtual machine with Debian's kernel, which has VRFs and VLANs, with the router, hosts, and a namespace with images in it: two VRFs
# with the same addresses, both families, ping through each and from Linux in each; routes of each, and from one to the other; ports
# that change VRFs, VRFs that go; VLANs with one tag and with two that are made in Linux on an image, with MTU and address, in a
# VRF; what cannot be followed; many that come and go.
#
#   red, table 10:   h0 10.0.1.2 --- p0, image e0   router   p1, image e1 --- 10.0.2.2 h1
#   blue, table 20:  h2 10.0.1.2 --- p2, image e2   router   p3, image e3 --- 10.0.2.2 h3
# NEEDS=qemu
# LIMIT=300
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/guest.sh"
need ip
guest_kernel
guest_router
guest_memory=768 guest_cpus=2
guest_image tun veth vrf 8021q -- "${guest_router[@]}" ip:/bin/iproute2 <<'GUEST'
. /router.sh
four_hosts
# Two VRFs, one before its images are in it, one after.
dp link add red type vrf table 10
dp link set red up
for n in 0 1; do run dp link set e$n master red; done
for n in 0 1 2 3; do
  net=$((n % 2 + 1))
  [ $n -lt 2 ] || run dp link set e$n nomaster
done
dp link add blue type vrf table 20
dp link set blue up
for n in 2 3; do run dp link set e$n master blue; done
for n in 0 1 2 3; do
  net=$((n % 2 + 1))
  run dp addr add 10.0.$net.1/24 dev e$n
  run dp addr add 2001:db8:$net::1/64 dev e$n nodad
done
until_ok shows 'red table 10: host-p0 host-p1' c show lcp vrf
until_ok shows 'blue table 20: host-p2 host-p3' c show lcp vrf
until_ok shows '10.0.1.1/24 ip4 table-id 10' c show interface address host-p0
until_ok shows '10.0.1.1/24 ip4 table-id 20' c show interface address host-p2
until_ok shows '2001:db8:2::1/64 ip6 table-id 20' c show interface address host-p3
for n in 0 2; do
  until_ok reach h$n 10.0.2.2
  until_ok reach6 h$n 2001:db8:2::2
done
# Linux has said all of that, and says it again: it is not saved.
until_ok lacks 'table\|ip address' c show running-config
# What is in one VRF is not in the other.
ip -n h1 link set eth0 down
until_ok reach h2 10.0.2.2
until_ok reach6 h2 2001:db8:2::2
reach h0 10.0.2.2 >/dev/null 2>&1 && say "FAILED h0 reaches a host of blue"
ip -n h1 link set eth0 up
ip -n h1 addr add 2001:db8:2::2/64 dev eth0 nodad 2>/dev/null
ip -n h1 route replace default via 10.0.2.1
ip -n h1 -6 route replace default via 2001:db8:2::1
until_ok reach h0 10.0.2.2
until_ok reach6 h0 2001:db8:2::2
# Linux speaks in each VRF.
for vrf in red blue; do
  until_ok host dp ping -c 1 -W 1 -I $vrf 10.0.1.2
  until_ok host dp ping6 -c 1 -W 1 -I $vrf 2001:db8:2::2
done

# Routes of each VRF: the same prefix by different neighbours.
ip -n h0 addr add 192.0.2.1/32 dev lo
ip -n h3 addr add 192.0.2.1/32 dev lo
run dp route add 192.0.2.0/24 via 10.0.1.2 vrf red
run dp route add 192.0.2.0/24 via 10.0.2.2 vrf blue
run dp -6 route add 2001:db8:77::/64 via 2001:db8:1::2 vrf red
until_ok shows '10.0.1.2' c show ip fib table 10 192.0.2.0/24
until_ok shows '10.0.2.2' c show ip fib table 20 192.0.2.0/24
until_ok shows '2001:db8:1::2' c show ip6 fib table 10 2001:db8:77::/64
until_ok reach h1 192.0.2.1
until_ok reach h2 192.0.2.1
# From blue to red and back by the VRFs' devices.
ip -n h0 addr add 198.51.100.1/32 dev lo
ip -n h2 addr add 203.0.113.2/32 dev lo
run dp route add 198.51.100.0/24 via 10.0.1.2 vrf red
run dp route add 198.51.100.0/24 dev red vrf blue
run dp route add 203.0.113.0/24 via 10.0.1.2 vrf blue
run dp route add 203.0.113.0/24 dev blue vrf red
until_ok host h2 ping -c 1 -W 1 -I 203.0.113.2 198.51.100.1
# Into itself: not followed, and nothing goes round.
run dp route add 192.0.3.0/24 dev red vrf red
until_ok shows '192.0.3.0/24 table 10' c show lcp pending

# A port leaves its VRF and comes back. The kernel drops its IPv6 addresses, and so does the router.
run dp link set e1 nomaster
until_ok lacks 'table-id' c show interface address host-p1
until_ok shows '10.0.2.1/24' c show interface address host-p1
until_ok lacks '2001:db8:2::1' c show interface address host-p1
reach h0 10.0.2.2 >/dev/null 2>&1 && say "FAILED h0 reaches a port that has left its VRF"
run dp link set e1 master red
run dp addr add 2001:db8:2::1/64 dev e1 nodad
until_ok shows '10.0.2.1/24 ip4 table-id 10' c show interface address host-p1
until_ok reach h0 10.0.2.2
until_ok reach6 h0 2001:db8:2::2
# Two ports change places: for a moment both have the same address in one VRF, and neither loses it.
run dp link set e1 master blue
run dp link set e3 master red
for n in 1 3; do dp addr add 2001:db8:2::1/64 dev e$n nodad 2>/dev/null; done
until_ok shows '10.0.2.1/24 ip4 table-id 20' c show interface address host-p1
until_ok shows '10.0.2.1/24 ip4 table-id 10' c show interface address host-p3
ip -n h1 link set eth0 down
until_ok reach h0 10.0.2.2
until_ok reach6 h0 2001:db8:2::2
ip -n h1 link set eth0 up
ip -n h1 addr add 2001:db8:2::2/64 dev eth0 nodad 2>/dev/null
ip -n h1 route replace default via 10.0.2.1
ip -n h1 -6 route replace default via 2001:db8:2::1
until_ok reach6 h2 2001:db8:2::2
run dp link set e1 master red
run dp link set e3 master blue
for n in 1 3; do dp addr add 2001:db8:2::1/64 dev e$n nodad 2>/dev/null; done
until_ok shows '10.0.2.1/24 ip4 table-id 10' c show interface address host-p1
until_ok shows '10.0.2.1/24 ip4 table-id 20' c show interface address host-p3
until_ok reach h0 10.0.2.2
# A VRF's new name, and its end.
run dp link set blue down
run dp link set blue name azure
run dp link set azure up
until_ok shows 'azure table 20' c show lcp vrf
run dp link del azure
until_ok lacks 'table-id' c show interface address host-p2
# A route by the other VRF's device is still there; the table goes with it.
until_ok shows 'lookup in ipv4-VRF:10' c show ip fib table 20 198.51.100.0/24
run dp route del 198.51.100.0/24 dev red table 20
until_ok lacks 'VRF:20' c show ip table
until_ok reach h2 10.0.2.2
until_ok reach h0 10.0.2.2
# One whose number is none here: its ports stay where they are.
run dp link add none type vrf table 4294967295
run dp link set e3 master none
until_ok shows 'none table 4294967295 is none here: host-p3' c show lcp vrf
until_ok shows ' 1 times one could not be followed' c show lcp netlink
run dp link del none
# Many come and go.
for n in $(seq 1 60); do
  dp link add s$n type vrf table $((1000 + n))
  dp link set e3 master s$n
  dp link del s$n
done
until_ok lacks ' s[0-9]' c show lcp vrf
until_ok shows '10.0.2.1/24$' c show interface address host-p3
until_ok reach h2 10.0.2.2
until_ok lacks '10[0-9][0-9]' c show ip table

# VLANs, made on the image in Linux.
ip -n h0 link add link eth0 name eth0.100 type vlan id 100
ip -n h0 link add link eth0 name eth0.10 type vlan protocol 802.1ad id 10
ip -n h0 link set eth0.10 mtu 1500
ip -n h0 link add link eth0.10 name c20 type vlan id 20
for name in eth0.100 eth0.10 c20; do ip -n h0 link set $name up; done
ip -n h0 addr add 10.1.100.2/24 dev eth0.100
ip -n h0 addr add 2001:db8:100::2/64 dev eth0.100 nodad
ip -n h0 addr add 10.1.20.2/24 dev c20
ip -n h0 addr add 2001:db8:20::2/64 dev c20 nodad
run dp link add link e0 name e0.100 type vlan id 100
run dp link add link e0 name e0.10 type vlan protocol 802.1ad id 10
run dp link set e0.10 mtu 1500
run dp link add link e0.10 name c20 type vlan id 20
for name in e0.100 e0.10 c20; do run dp link set $name up; done
run dp addr add 10.1.100.1/24 dev e0.100
run dp addr add 2001:db8:100::1/64 dev e0.100 nodad
run dp addr add 10.1.20.1/24 dev c20
run dp addr add 2001:db8:20::1/64 dev c20 nodad
until_ok shows 'e0.100 on e0 802.1Q 100: host-p0.100' c show lcp vlan
until_ok shows 'c20 on e0.10 802.1Q 20: host-p0.100020' c show lcp vlan
until_ok shows 'host-p0.100 .* e0.100 ' c show lcp
for at in 10.1.100 10.1.20; do
  until_ok reach h0 $at.1
  until_ok host dp ping -c 1 -W 1 $at.2
done
for at in 2001:db8:100: 2001:db8:20:; do
  until_ok reach6 h0 $at:1
  until_ok host dp ping6 -c 1 -W 1 $at:2
done
until_ok reach h0 10.0.2.2
# A program of Linux is reached by a VLAN, and speaks by one.
for at in 10.1.100.1 10.1.20.1 2001:db8:20::1; do
  host dp nc -ll -p 5000 -e echo hello &
  serving=$!
  until_ok shows hello host h0 nc -w 2 $at 5000 </dev/null
  kill $serving
done
# Longer than its MTU; an address of its own; into a VRF.
run dp link set e0.100 mtu 1400
until_ok shows 'host-p0.100 .* 1400/0/0/0' c show interface host-p0.100
run dp link set e0.100 address 02:00:00:00:01:00
until_ok host dp ping -c 1 -W 1 10.1.100.2
until_ok reach h0 10.1.100.1
run dp route add 172.16.0.0/24 via 10.1.100.2
until_ok shows 'host-p0.100' c show ip fib 172.16.0.0/24
run dp link set e0.100 master red
until_ok shows '10.1.100.1/24 ip4 table-id 10' c show interface address host-p0.100
until_ok reach h1 10.1.100.2
# Nothing of it is saved; it goes in Linux.
c show running-config >/tmp/config
grep -q 'sub-interfaces\|e0.100\|10.1.100' /tmp/config && say "FAILED saved: $(grep 'sub-interfaces\|e0.100\|10.1.100' /tmp/config | tr '\n' ' ')"
c lcp delete host-p0.100 >/dev/null 2>&1 && say "FAILED an operator takes a VLAN of Linux"
# Not followed: three tags, one on an image of a sub-interface.
run dp link add link c20 name deep type vlan id 3
until_ok shows 'deep on c20 .*not followed: it has more than two tags' c show lcp vlan
run dp link del e0.10
until_ok lacks 'c20\|deep' c show lcp vlan
until_ok lacks 'host-p0.100020\|host-p0.10 ' c show interface
for n in $(seq 200 260); do dp link add link e1 name v$n type vlan id $n; done
until_ok shows 'host-p1.260' c show interface
for n in $(seq 200 260); do dp link del v$n; done
until_ok lacks 'host-p1\.' c show interface
# The image goes, and with it the VLANs on it.
run c lcp delete host-p0
until_ok lacks 'host-p0\.' c show interface
until_ok reach h2 10.0.2.2
kill -0 $(pidof shoal) 2>/dev/null || say "FAILED the router has died: $(tail -n 30 /tmp/shoal.log | tr '\n' ' ')"
used() { c show buffers | awk 'NF { last = $NF } END { print last + 0 }'; }
no_buffers() { [ "$(used)" -eq 0 ]; }
until_ok no_buffers
GUEST
guest one
guest_finished one 280
pass "$guest_how"
