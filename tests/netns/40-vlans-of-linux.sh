#!/usr/bin/env bash
# A virtual machine with Debian's kernel, whose VLANs are those of the module 8021q: one tag, and a service tag of 802.1ad with a
# customer's inside. Both families, packets in fragments, and TCP whose checksums and segments the machine leaves to its device.
#
#   guest: eth0.100, eth0.10 (802.1ad) .20 --- t0   router   vb --- host b
# NEEDS=qemu
# LIMIT=300
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/guest.sh"
need ping iperf3
[ -c /dev/net/tun ] || skip "no /dev/net/tun"
guest_kernel
guest_image virtio_pci virtio_net 8021q -- iperf3 <<'GUEST'
ip link set eth0 up
ip link add link eth0 name eth0.100 type vlan id 100
ip link add link eth0 name eth0.10 type vlan protocol 802.1ad id 10
# Two tags are longer than the one that a device lets pass beyond its MTU.
ip link set eth0.10 mtu 1400
ip link add link eth0.10 name c20 type vlan id 20
for name in eth0.100 eth0.10 c20; do ip link set $name up; done
ip addr add 10.1.100.2/24 dev eth0.100
ip addr add 10.1.20.2/24 dev c20
ip addr add 2001:db8:100::2/64 dev eth0.100
ip addr add 2001:db8:20::2/64 dev c20
ip route add default via 10.1.100.1
say ready
for try in $(seq 60); do ping -c 1 -W 1 10.1.20.1 >/dev/null 2>&1 && ping -c 1 -W 1 10.1.100.1 >/dev/null 2>&1 && break; sleep 1; done
run ping -c 5 -W 5 10.1.100.1
run ping -c 5 -W 5 10.1.20.1
run ping -c 3 -W 5 -s 4000 10.1.100.1
run ping -c 3 -W 5 -s 4000 10.1.20.1
run ping6 -c 3 -W 5 2001:db8:100::1
run ping6 -c 3 -W 5 2001:db8:20::1
run ping -c 3 -W 5 10.0.2.2
run iperf3 -c 10.0.2.2 -t 3
run iperf3 -c 10.0.2.2 -t 3 -R
ip route del default
ip route add default via 10.1.20.1
run ping -c 3 -W 5 -s 1372 10.0.2.2
run iperf3 -c 10.0.2.2 -t 3
run iperf3 -c 10.0.2.2 -t 3 -R
GUEST
begin
in_b iperf3 -s -D -I "$work/iperf.pid" --logfile "$work/iperf.log"
await 5 listens "$B" 5201 || fail "iperf3 does not listen"
guest_in=$R
guest one -netdev tap,id=n0,ifname=t0,script=no,downscript=no -device virtio-net-pci,netdev=n0
await 20 ip -n "$R" link show t0 || fail "QEMU made no t0: $(cat "$work/one.qemu")"
ip netns exec "$R" sysctl -qw net.ipv6.conf.t0.disable_ipv6=1
ip -n "$R" link set t0 up
expect "host-interface" ctl create host-interface name t0
expect "state" ctl set interface state host-t0 up
expect "sub-interface" ctl create sub-interfaces host-t0 100
expect "sub-interface" ctl create sub-interfaces host-t0 20 dot1ad 10 inner-dot1q 20 exact-match
expect "MTU" ctl set interface mtu 1400 host-t0.20
for n in 100 20; do
  expect "state" ctl set interface state "host-t0.$n" up
  expect "address" ctl set interface ip address "host-t0.$n" "10.1.$n.1/24"
  expect "address" ctl set interface ip address "host-t0.$n" "2001:db8:$n::1/64"
done
guest_finished one 240
alive
[ "$(counter host-t0.20 'rx packets')" -gt 50 ] || fail "host-t0.20 has received too little"
await 10 no_buffers_used || fail "$(buffers_used) buffers are in use"
pass "$guest_how"
