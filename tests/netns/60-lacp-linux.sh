#!/usr/bin/env bash
# A virtual machine with Debian's kernel and its bonding module is the other end of a bond by LACP: both families and TCP, with and
# without a tag; one of the two links is cut without the machine seeing it, and comes back; a sub-interface is deleted meanwhile.
#
#   guest: bond0 (eth0, eth1), bond0.100 === t0, t1   router   vb --- host b
# NEEDS=qemu
# LIMIT=300
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/guest.sh"
need ping iperf3
[ -c /dev/net/tun ] || skip "no /dev/net/tun"
guest_kernel
guest_image virtio_pci virtio_net 8021q bonding -- iperf3 <<'GUEST'
at=/sys/class/net/bond0/bonding
echo 802.3ad >$at/mode
echo fast >$at/lacp_rate
echo 100 >$at/miimon
echo layer3+4 >$at/xmit_hash_policy
echo +eth0 >$at/slaves
echo +eth1 >$at/slaves
ip link set bond0 up
ip addr add 10.1.9.2/24 dev bond0
ip addr add 2001:db8:9::2/64 dev bond0
ip link add link bond0 name bond0.100 type vlan id 100
ip link set bond0.100 up
ip addr add 10.1.100.2/24 dev bond0.100
ip route add default via 10.1.9.1
say ready
# Both links are in the aggregate, and the partner is the router.
aggregated() { [ "$(cat $at/ad_num_ports)" = "$1" ] && [ "$(cat $at/ad_partner_mac)" != 00:00:00:00:00:00 ]; }
both() { for try in $(seq 60); do aggregated 2 && return; sleep 1; done; cat /proc/net/bonding/bond0; return 1; }
run both
for try in $(seq 60); do ping -c 1 -W 1 10.1.9.1 >/dev/null 2>&1 && ping -c 1 -W 1 10.1.100.1 >/dev/null 2>&1 && break; sleep 1; done
run ping -c 5 -W 5 10.1.9.1
run ping -c 5 -W 5 10.1.100.1
run ping -c 3 -W 5 -s 4000 10.1.9.1
run ping6 -c 5 -W 5 2001:db8:9::1
run iperf3 -c 10.0.2.2 -P 4 -t 3
run iperf3 -c 10.0.2.2 -P 4 -t 3 -R
say pinging
ping -i 0.1 -c 200 -W 1 10.0.2.2 | tail -n 2 | head -n 1 >/tmp/lost
say "lost $(cat /tmp/lost)"
run both
run ping -c 5 -W 5 10.1.9.1
GUEST
begin
in_b iperf3 -s -D -I "$work/iperf.pid" --logfile "$work/iperf.log"
await 5 listens "$B" 5201 || fail "iperf3 does not listen"
guest_in=$R
devices=()
for n in 0 1; do
  devices+=(-netdev "tap,id=n$n,ifname=t$n,script=no,downscript=no")
  # Linux aggregates links of one known speed only.
  devices+=(-device "virtio-net-pci,netdev=n$n,speed=1000,duplex=full")
done
guest one "${devices[@]}"
expect "bond" ctl create bond mode lacp load-balance l34 id 0
for n in 0 1; do
  await 20 ip -n "$R" link show "t$n" || fail "QEMU made no t$n: $(cat "$work/one.qemu")"
  in_r sysctl -qw "net.ipv6.conf.t$n.disable_ipv6=1"
  ip -n "$R" link set "t$n" up
  expect "host-interface" ctl create host-interface name "t$n"
  expect "state" ctl set interface state "host-t$n" up
  expect "bond add" ctl bond add BondEthernet0 "host-t$n"
done
# A bond begins with 9000, whatever its members can.
expect "MTU" ctl set interface mtu 1500 BondEthernet0
expect "state" ctl set interface state BondEthernet0 up
expect "address" ctl set interface ip address BondEthernet0 10.1.9.1/24
expect "address" ctl set interface ip address BondEthernet0 2001:db8:9::1/64
for tag in 100 200; do
  expect "sub-interface" ctl create sub-interfaces BondEthernet0 $tag
  expect "state" ctl set interface state BondEthernet0.$tag up
done
expect "address" ctl set interface ip address BondEthernet0.100 10.1.100.1/24
active() { [ "$(ctl show bond | awk '/^BondEthernet0/ { print $5 }')" = "$1" ]; }
pinging() { guest_told one pinging; }
await 200 pinging || fail "the guest is not so far: $(grep -a GUEST "$work/one.log" | tail -n 30; ctl show lacp; ctl show bond details)"
active 2 || fail "LACP does not agree: $(ctl show lacp)"
for n in 0 1; do
  [ "$(counter "host-t$n" 'tx packets')" -gt 20 ] && [ "$(counter "host-t$n" 'rx packets')" -gt 20 ] ||
    fail "link $n is hardly used: $(ctl show interface)"
done
# Nothing passes one of the links any more, and the guest's device says that it is fine: both ends miss the other's LACP packets.
sleep 1
ip -n "$R" link set t0 down
await 10 active 1 || fail "a link that is cut is used: $(ctl show lacp)"
expect "delete" ctl delete sub-interface BondEthernet0.200
sleep 2
active 1 || fail "LACP does not outlive a sub-interface: $(ctl show lacp)"
ip -n "$R" link set t0 up
await 15 active 2 || fail "the link does not come back: $(ctl show lacp)"
guest_finished one 240
lost=$(sed -n 's/.*GUEST lost \([0-9]*\) packets transmitted, \([0-9]*\) .*/\1 \2/p' "$work/one.log" | awk '{ print $1 - $2 }')
# LACP's short timeout is 3 seconds at each end, and a ping is sent each tenth of a second.
[ "${lost:-200}" -le 100 ] || fail "a cut cost ${lost:-all} pings of 200: $(grep -a GUEST "$work/one.log" | tail)"
alive
await 10 no_buffers_used || fail "$(buffers_used) buffers are in use"
pass "$guest_how; pings lost of 200, 0.1 s apart, when a link is cut: $lost"
