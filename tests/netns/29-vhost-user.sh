#!/usr/bin/env bash
# A virtual machine behind vhost-user: Debian's kernel in QEMU. The guest pings a real host through the router and runs
# iperf3 against it, in both families and both directions. Then the router restarts under the same guest; then the
# hypervisor dies under load, and another one takes its place, which the router finds as a client; and that once more.
#
#   SECONDS_EACH=10 scripts/in-namespace.sh tests/netns/29-vhost-user.sh
#
#   host a --- va   router   VirtualEthernet0/0/0 --- guest 10.0.3.2, 2001:db8:3::2
# NEEDS=qemu
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/guest.sh"
: "${SECONDS_EACH:=2}"
need ping iperf3
guest_kernel
guest_image virtio_pci virtio_net -- iperf3 <<'GUEST'
# Neighbours and addresses are used at once.
echo 0 >/proc/sys/net/ipv6/conf/eth0/accept_dad
ip link set eth0 up
ip addr add 10.0.3.2/24 dev eth0; ip -6 addr add 2001:db8:3::2/64 dev eth0
ip route add default via 10.0.3.1; ip -6 route add default via 2001:db8:3::1
up() {
  for try in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20; do
    ping -c 1 -W 1 10.0.1.2 && ping -6 -c 1 -W 1 2001:db8:1::2 && return
    sleep 0.2
  done
  false
}
run up
run ping -c 30 -i 0.02 -W 10 10.0.1.2
run ping -6 -c 30 -i 0.02 -W 10 2001:db8:1::2
# Fragments, of many bytes.
run ping -c 5 -i 0.1 -s 8000 -W 10 10.0.1.2
run ping -6 -c 5 -i 0.1 -s 8000 -W 10 2001:db8:1::2
seconds=$(sed -n 's/.*seconds=\([0-9]*\).*/\1/p' /proc/cmdline)
if words iperf; then
  for words in "-c 10.0.1.2" "-c 10.0.1.2 -R" "-c 2001:db8:1::2" "-c 2001:db8:1::2 -R"; do
    run iperf3 $words -t "$seconds" -f m && say "rate $words: $(grep receiver /tmp/out | sed 's/.*Bytes *//; s/ *receiver//')"
  done
fi
say "packets $(awk '/eth0/ { print "in " $2 / $3 ", out " $10 / $11 " bytes each" }' /proc/net/dev)"
GUEST

begin
ip netns exec "$A" sysctl -qw net.ipv6.conf.all.disable_ipv6=0 net.ipv6.conf.eth0.disable_ipv6=0 || skip "the kernel has no IPv6"
ip -n "$A" addr add 2001:db8:1::2/64 dev eth0 nodad
ip -n "$A" -6 route replace default via 2001:db8:1::1
port=VirtualEthernet0/0/0
# setup WORDS: what the router has on both sides.
setup() {
  local out
  expect "interface address" ctl set interface ip address host-va 2001:db8:1::1/64
  # The guest should know a restarted router again.
  out=$(ctl create vhost-user socket vm.sock "$@" hwaddr 02:fe:00:00:00:01) || fail "create vhost-user: $out"
  [ "$out" = "$port" ] || fail "create vhost-user said: $out"
  expect "interface state" ctl set interface state "$port" up
  expect "interface address" ctl set interface ip address "$port" 10.0.3.1/24
  expect "interface address" ctl set interface ip address "$port" 2001:db8:3::1/64
}
# again WORDS: the router ends, and another one begins.
again() {
  stop_router || fail "the router does not end"
  start_router
  attach va 10.0.1.1/24
  # Each router has its own addresses there.
  ip -n "$A" neigh flush dev eth0
  setup "$@"
}
# boot NAME CHARDEV: a guest whose card is the router's. QEMU (7.2) takes KVM for granted when such a card has MSI-X.
card=virtio-net-pci,netdev=n0,mac=52:54:00:00:00:02
[ "$guest_how" = KVM ] || card+=,vectors=0
boot() {
  guest "$1" -object "memory-backend-memfd,id=ram,size=${guest_memory}M,share=on" -machine memory-backend=ram \
    -chardev "socket,id=c0,path=$work/run/vm.sock,$2" -netdev vhost-user,id=n0,chardev=c0,queues=1 \
    -device "$card"
}
reached() { in_a ping -c 1 -W 1 10.0.3.2 && in_a ping -6 -c 1 -W 1 2001:db8:3::2; }
reach() { await 20 reached || fail "$1: $(ctl show vhost-user)"; }
down() { says 'not ready' ctl show vhost-user; }

# The router is the server.
setup server
in_a iperf3 -s -D -I "$work/iperf.pid" >/dev/null || fail "iperf3 server"
await 5 listens "$A" 5201 || fail "iperf3 does not listen at host a"
guest_words="iperf seconds=$SECONDS_EACH"
boot one reconnect=1
guest_finished one $((60 + 4 * SECONDS_EACH))
says 'VIRTIO_NET_F_MRG_RXBUF' ctl show vhost-user || fail "$(ctl show vhost-user)"
says 'Memory regions (total [1-9]' ctl show vhost-user || fail "$(ctl show vhost-user)"
reach "host a does not reach the guest"
[ "$(counter "$port" 'rx packets')" -gt 100 ] || fail "$(ctl show interface "$port")"

# The router dies, and another one serves the same guest: QEMU connects again.
again server
reach "the guest is not back with the new router"

# The hypervisor dies, under load.
in_a ping -q -f -w 5 10.0.3.2 >/dev/null 2>&1 &
flood=$!
sleep 1
guest_stop "$guest_pid"
wait "$flood" 2>/dev/null
await 10 down || fail "the link of a dead guest stays up: $(ctl show vhost-user)"
alive

# The router is the client, before and after the hypervisor is there, and the other way round.
expect "delete vhost-user" ctl delete vhost-user "$port"
expect "create vhost-user" ctl create vhost-user socket vm.sock
expect "interface state" ctl set interface state "$port" up
expect "interface address" ctl set interface ip address "$port" 10.0.3.1/24
expect "interface address" ctl set interface ip address "$port" 2001:db8:3::1/64
guest_words=again
boot two server=on,wait=off
guest_finished two 60
reach "host a does not reach the second guest"
again
reach "the second guest is not found by the new router"
guest_stop "$guest_pid"
await 10 down || fail "the link of a dead guest stays up: $(ctl show vhost-user)"

expect "delete vhost-user" ctl delete vhost-user "$port"
alive
await 10 no_buffers_used || fail "$(buffers_used) buffers are still in use"
rates() { grep -a "GUEST $1" "$work/one.log" | tr -d '\r' | sed "s/GUEST $1 //; s/^-c //"; }
pass "$guest_how; $(rates rate | paste -sd ';'); $(rates packets)"
