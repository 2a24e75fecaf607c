#!/usr/bin/env bash
# Images of a port and of a sub-interface are changed in Linux, the interfaces follow, and the other way round: MTU, MAC address, state.
# What cannot be is put back: an MTU beyond the device's or the port's, a group's address is refused by Linux itself. Then a quick series of
# changes on both sides, which ends the same on both. Addresses that Linux brings are no drift, a `rollback' does not take them away, and
# one that is committed by name goes.
. "$(dirname "$0")/lib.sh"
need ping python3
begin linux-cp { lcp-sync }
beside
expect "lcp create" ctl lcp create host-va host-if e0 netns "$L"
expect "lcp create" ctl lcp create host-vb host-if e1 netns "$L"
expect "sub-interface" ctl create sub-interfaces host-va 10
expect "lcp create" ctl lcp create host-va.10 host-if e0.10 netns "$L"
expect "state" ctl set interface state host-va.10 up
expect "address" ctl set interface ip address host-va.10 10.1.10.1/24
# A VLAN of host a without a VLAN device: the kernel may have none.
link() { ip -n "$L" "$@"; }

# mtu_is INTERFACE IMAGE MTU, mac_is INTERFACE IMAGE MAC, up_is INTERFACE IMAGE up|down: whether both sides say so.
mtu_is() { says "^$1 .* $3/0/0/0" ctl show interface "$1" && says "mtu $3 " link link show dev "$2"; }
mac_is() { says "$3" ctl show hardware-interfaces "$1" && says "ether $3 " link link show dev "$2"; }
up_is() {
  local flag='[<,]UP[,>]'
  says "^$1 .* $3 " ctl show interface "$1" || return 1
  if [ "$3" = up ]; then says "$flag" link link show dev "$2"; else ! says "$flag" link link show dev "$2"; fi
}
seen() { ctl show interface; ctl show hardware-interfaces host-va; ip -n "$L" link; tail -n 5 "$work/shoal.log"; }

# MTU.
expect "mtu" link link set dev e0 mtu 1400
await 5 mtu_is host-va e0 1400 || fail "the port's MTU does not follow: $(seen)"
expect "mtu" ctl set interface mtu 1450 host-va
await 5 mtu_is host-va e0 1450 || fail "the image's MTU does not follow: $(seen)"
expect "mtu" link link set dev e0.10 mtu 1300
await 5 mtu_is host-va.10 e0.10 1300 || fail "the sub-interface's MTU does not follow: $(seen)"
in_a ping -c 1 -W 2 -s 1422 -M do 10.0.1.1 >/dev/null || fail "a packet of the MTU is lost"
# More than the port's; more than the port's device takes, where AF_XDP is one.
expect "mtu" link link set dev e0.10 mtu 1500
await 5 mtu_is host-va.10 e0.10 1300 || fail "an MTU beyond the port's is not put back: $(seen)"
place C
cable "$C" vc 10.0.3.2/24 10.0.3.1
xdp="without AF_XDP"
if ctl create interface af_xdp host-if vc >/dev/null 2>&1; then
  xdp="with AF_XDP"
  expect "lcp create" ctl lcp create vc/0 host-if e2 netns "$L"
  expect "mtu" link link set dev e2 mtu 9000
  await 5 mtu_is vc/0 e2 1500 || fail "an MTU beyond the device's is not put back: $(seen)"
  # It keeps buffers.
  expect "delete" ctl delete interface af_xdp vc/0
fi
await 5 says '[1-9][0-9]* times one could not be followed' ctl show lcp netlink || fail "refusals are not counted: $(ctl show lcp netlink)"

# Neighbours hear of a new MAC address unasked where Linux is set to say so, as they do of its own devices; of themselves neither Linux nor
# the router says anything. A neighbour that has just learnt the old one may overhear that, so the address changes again.
with_ip6 "$A" && ip -n "$A" addr add 2001:db8:1::2/64 dev eth0 nodad
link addr add 2001:db8:1::1/64 dev e0 nodad
in_l sysctl -qw net.ipv4.conf.e0.arp_notify=1 net.ipv6.conf.e0.ndisc_notify=1
await 10 in_a ping -c 1 -W 1 2001:db8:1::1 || fail "the router does not answer by IPv6: $(seen)"
in_a ping -c 1 -W 2 10.0.1.1 >/dev/null || fail "the router does not answer: $(seen)"
announced() {
  local turn=$((${turn:-0} % 2 + 1)) at
  last=$turn
  link link set dev e0 address "02:00:00:00:0b:0$turn"
  sleep 0.3
  for at in 10.0.1.1 2001:db8:1::1; do says "02:00:00:00:0b:0$turn" ip -n "$A" neigh show "$at" || return 1; done
}
changes() { turn=${last:-0} announced; }
await 15 changes || fail "host a does not learn a MAC address that Linux announces: $(ip -n "$A" neigh)"
link addr del 2001:db8:1::1/64 dev e0

# MAC address: Linux and the router speak from it, host a learns it from both.
expect "mac" link link set dev e0 address 02:00:00:00:0a:01
await 5 mac_is host-va e0 02:00:00:00:0a:01 || fail "the port's MAC address does not follow: $(seen)"
ip -n "$A" neigh flush dev eth0
in_a ping -c 1 -W 2 10.0.1.1 >/dev/null || fail "no answer from the new MAC address: $(ctl show errors)"
says '02:00:00:00:0a:01' ip -n "$A" neigh show 10.0.1.1 || fail "host a knows another address: $(ip -n "$A" neigh)"
link neigh flush dev e0
in_l ping -c 1 -W 2 10.0.1.2 >/dev/null || fail "Linux does not reach host a from the new MAC address: $(ctl show errors)"
expect "mac" ctl set interface mac address host-va 02:00:00:00:0a:02
await 5 mac_is host-va e0 02:00:00:00:0a:02 || fail "the image's MAC address does not follow: $(seen)"
link link set dev e0 address 01:00:5e:00:00:01 2>/dev/null && fail "Linux takes a group's address"
mac_is host-va e0 02:00:00:00:0a:02 || fail "a group's address has changed something: $(seen)"
# The sub-interface's image with an address of its own; the port keeps its own.
expect "mac" link link set dev e0.10 address 02:00:00:00:0a:10
# An echo request in VLAN 10 to that address, which Linux or the router answers from 10.1.10.1.
cat >"$work/vlan.py" <<'PYTHON'
import socket, struct, sys, time
dst, me = bytes.fromhex(sys.argv[1].replace(":", "")), bytes.fromhex("020000000a77")
s = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(3))
s.bind(("eth0", 0))
s.setsockopt(263, 8, 1)  # SOL_PACKET, PACKET_AUXDATA: tags that the kernel has taken out are told
s.settimeout(0.5)
tag = struct.pack("!HH", 0x8100, 10)
arp = struct.pack("!HHBBH6s4s6s4s", 1, 0x0800, 6, 4, 2, me, bytes([10, 1, 10, 2]), dst, bytes([10, 1, 10, 1]))
def total(data):
    words = sum(struct.unpack("!%dH" % (len(data) // 2), data))
    words = (words >> 16) + (words & 0xffff)
    return ~(words + (words >> 16)) & 0xffff
icmp = struct.pack("!BBHHH", 8, 0, 0, 7, 7) + bytes(32)
icmp = icmp[:2] + struct.pack("!H", total(icmp)) + icmp[4:]
ip = struct.pack("!BBHHHBBH4s4s", 0x45, 0, 20 + len(icmp), 1, 0, 64, 1, 0, bytes([10, 1, 10, 2]), bytes([10, 1, 10, 1]))
ip = ip[:10] + struct.pack("!H", total(ip)) + ip[12:]
end = time.monotonic() + 10
while time.monotonic() < end:
    s.send(dst + me + tag + struct.pack("!H", 0x0806) + arp)
    s.send(dst + me + tag + struct.pack("!H", 0x0800) + ip + icmp)
    try:
        while True:
            frame = s.recv(2000)
            at = 18 if frame[12:14] == b"\x81\x00" else 14
            if frame[at + 9:at + 10] == b"\x01" and frame[at + 20:at + 21] == b"\x00" and frame[at + 12:at + 16] == bytes([10, 1, 10, 1]):
                print("answered")
                sys.exit(0)
    except TimeoutError:
        pass
sys.exit(1)
PYTHON
ip netns exec "$A" ip link set eth0 promisc on
in_a python3 "$work/vlan.py" 02:00:00:00:0a:10 >/dev/null || fail "no answer at the sub-interface's own MAC address: $(seen); $(ctl show errors)"
mac_is host-va e0 02:00:00:00:0a:02 || fail "the port's MAC address has gone: $(seen)"

# State.
expect "down" link link set dev e0.10 down
await 5 up_is host-va.10 e0.10 down || fail "the sub-interface is not down: $(seen)"
expect "up" link link set dev e0.10 up
await 5 up_is host-va.10 e0.10 up || fail "the sub-interface is not up: $(seen)"
expect "down" link link set dev e0 down
await 5 up_is host-va e0 down || fail "the port is not down: $(seen)"
expect "up" ctl set interface state host-va up
await 5 up_is host-va e0 up || fail "the image is not up: $(seen)"

# Many changes of both sides: then both are the same, and stay so.
for n in $(seq 1 20); do
  link link set dev e1 mtu $((1300 + n))
  ctl set interface mtu $((1200 + n)) host-vb >/dev/null
done
calm() {
  local is
  is=$(ip -n "$L" -j link show dev e1 | sed 's/.*"mtu":\([0-9]*\).*/\1/')
  mtu_is host-vb e1 "$is"
}
changes() { ctl show lcp netlink | awk '/announced:/ { print $(NF - 1) }'; }
# A second without a change, at whose end both are the same: announcements of the last changes may still be on their way.
settled() {
  local before
  before=$(changes)
  sleep 1
  [ "$(changes)" = "$before" ] && calm
}
await 15 settled || fail "the sides change each other for ever, or do not agree: $(ctl show lcp netlink); $(seen)"
expect "mtu" ctl set interface mtu 1500 host-vb

# Addresses that Linux brings, and transactions.
expect "write" ctl write
for address in 10.7.0.1/24 2001:db8:7::1/64; do expect "address" link addr add "$address" dev e1; done
brought() { says '10.7.0.1/24' ctl show interface address host-vb && says '2001:db8:7::1/64' ctl show interface address host-vb; }
await 5 brought || fail "addresses of Linux: $(ctl show interface address)"
says '10.7.0.1/24' ctl show running-config || fail "they are not part of the configuration: $(ctl show running-config)"
undrifted() { says '"added": *0' ctl --json show configuration drift && says '"removed": *0' ctl --json show configuration drift; }
undrifted || fail "they are drift: $(ctl show configuration drift)"
expect "address" ctl set interface ip address host-vb 10.8.0.1/24
says '10.8.0.1/24' ctl show configuration drift || fail "an operator's is none: $(ctl show configuration drift)"
says '10.7.0.1/24' ctl show configuration drift && fail "Linux's is drift beside an operator's: $(ctl show configuration drift)"
expect "rollback" ctl rollback 1
says '10.8.0.1/24' ctl show interface address host-vb && fail "the operator's address stays: $(ctl show interface address host-vb)"
brought || fail "a rollback takes addresses of Linux away: $(ctl show interface address host-vb)"
says '10.7.0.1/24' link addr show dev e1 || fail "a rollback takes addresses away in Linux: $(link addr show dev e1)"
# A commit that goes back by itself.
expect "configure" ctl configure set interface ip address host-vb 10.9.0.1/24
expect "commit" ctl commit confirm 1
says '10.9.0.1/24' ctl show interface address host-vb || fail "the commit has done nothing"
expect "address" link addr add 10.7.1.1/24 dev e1
await 5 says '10.7.1.1/24' ctl show interface address host-vb || fail "an address of Linux while a commit waits"
expect "rollback" ctl rollback
brought && says '10.7.1.1/24' ctl show interface address host-vb || fail "going back takes addresses of Linux away: $(ctl show interface address host-vb)"
says '10.9.0.1/24' ctl show interface address host-vb && fail "the commit stays"
# What an operator says by name is done.
expect "configure" ctl configure set interface ip address del host-vb 10.7.1.1/24
expect "commit" ctl commit
says '10.7.1.1/24' ctl show interface address host-vb && fail "an operator cannot take an address of Linux: $(ctl show interface address host-vb)"
unaddressed() { ! says '10.7.1.1/24' link addr show dev e1; }
await 5 unaddressed || fail "it stays in Linux: $(link addr show dev e1)"
# Linux takes its own away.
for address in 10.7.0.1/24 2001:db8:7::1/64; do expect "address" link addr del "$address" dev e1; done
gone() { ! says '10.7.0.1/24' ctl show interface address host-vb && ! says '2001:db8:7::1/64' ctl show interface address host-vb; }
await 5 gone || fail "addresses of Linux stay: $(ctl show interface address host-vb)"
ip -n "$A" neigh flush dev eth0
in_a ping -c 1 -W 2 10.0.1.1 >/dev/null || fail "no answer at the end"
alive
await 10 no_buffers_used || fail "$(buffers_used) buffers are still in use"
pass "$xdp"
