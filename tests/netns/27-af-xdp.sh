#!/usr/bin/env bash
# AF_XDP between real hosts: ping and TCP and UDP of both families through the router, with the hosts' default offloads;
# then the pinhole: sessions of the machine's own host on the shared port survive being taken, changed, given back, and the
# router's sudden death.
. "$(dirname "$0")/lib.sh"
need ping iperf3 python3
hosts
for end in "$A va 1" "$B vb 2"; do
  read -r ns port n <<<"$end"
  ip netns exec "$ns" sysctl -qw net.ipv6.conf.all.disable_ipv6=0 net.ipv6.conf.eth0.disable_ipv6=0 || skip "the kernel has no IPv6"
  ip -n "$ns" addr add "2001:db8:$n::2/64" dev eth0 nodad
  ip -n "$ns" route replace default via "2001:db8:$n::1"
done
start_router

# take NAME NUMBER [WORDS...]: the router's end of a cable becomes an AF_XDP interface, up, with addresses.
take() {
  expect "create interface af_xdp" ctl create interface af_xdp host-if "$1" "${@:3}"
  expect "interface address" ctl set interface ip address "$1/0" "10.0.$2.1/24"
  expect "interface address" ctl set interface ip address "$1/0" "2001:db8:$2::1/64"
  expect "interface state" ctl set interface state "$1/0" up
  # Another MAC address than the last time.
  ip -n "$A" neigh flush dev eth0
  ip -n "$B" neigh flush dev eth0
}
reaches() { in_a ping -c 1 -W 1 10.0.2.2 && in_a ping -6 -c 1 -W 1 2001:db8:2::2; }

take va 1
take vb 2
await 10 reaches || fail "host b does not answer: $(ctl show interface af_xdp)"
for to in 10.0.2.2 2001:db8:2::2; do
  out=$(in_a "$patient_ping" -q -c 200 -i 0.01 -W 10 "$to")
  grep -q ' 0% packet loss' <<<"$out" || fail "$to: $out"
done
expect "trace" ctl trace add af_xdp-input 5
await 5 reaches || fail "host b does not answer a second time"
for line in 'af_xdp: .* next-node .* len 98' 'af_xdp: hw_if_index .* tx-queue .* len 98'; do
  says "$line" ctl show trace || fail "no line '$line' in $(ctl show trace)"
done
says 'rx-dropped 0 rx-ring-full 0' ctl show hardware-interfaces va/0 || fail "$(ctl show hardware-interfaces va/0)"
says 'mode native, copy' ctl show interface af_xdp va/0 || fail "veth has native XDP: $(ctl show interface af_xdp va/0)"

in_b iperf3 -s -D -I "$work/iperf.pid" >/dev/null || fail "iperf3 server"
await 5 listens "$B" 5201 || fail "iperf3 does not listen at host b"
# iperf WORDS: Mbit/s that arrived.
iperf() {
  in_a iperf3 -t 2 -J "$@" >"$work/iperf.json" 2>&1 || fail "iperf3 $*: $(head -c 400 "$work/iperf.json")"
  python3 - "$work/iperf.json" <<'PYTHON'
import json, sys
end = json.load(open(sys.argv[1]))["end"]
got = end["sum"] if "sum" in end else end["sum_received"]
print(int(got["bytes"] * 8 / got["seconds"] / 1e6))
PYTHON
}
rates=
for to in 10.0.2.2 2001:db8:2::2; do
  for way in '' -R '-u -b 50M' '-u -b 50M -R'; do
    # shellcheck disable=SC2086
    rate=$(iperf -c "$to" $way) || fail "$rate"
    [ "$rate" -ge 10 ] || fail "only $rate Mbit/s to $to (iperf3 $way)"
    rates+="$rate "
  done
done
for interface in va/0 vb/0; do
  count=$(counter "$interface" rx-error)
  [ "$count" -eq 0 ] || fail "$interface counts $count rx-error"
done
ctl delete interface af_xdp va/0 && ctl delete interface af_xdp vb/0 || fail "delete"
await 10 no_buffers_used || fail "$(buffers_used) buffers are still in use"

# The port is now the machine's only one: its host has addresses on it, sessions, and its default route.
ip netns exec "$R" sysctl -qw net.ipv6.conf.va.disable_ipv6=0
ip -n "$R" addr add 10.0.1.9/24 dev va
ip -n "$R" addr add 2001:db8:1::9/64 dev va nodad
ip -n "$R" route add default via 10.0.1.2 dev va
cat >"$work/echo.py" <<'PYTHON'
# echo.py serve ADDRESS PORT | talk ADDRESS PORT FILE: lines there and back 20 times a second until the file goes; then
# how many, and the longest wait for one.
import os, socket, sys, threading, time
what, address, port = sys.argv[1], sys.argv[2], int(sys.argv[3])
family = socket.AF_INET6 if ":" in address else socket.AF_INET
if what == "serve":
    listener = socket.socket(family)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    listener.bind((address, port))
    listener.listen()
    def serve(peer):
        while data := peer.recv(4096):
            peer.sendall(data)
    while True:
        threading.Thread(target=serve, args=(listener.accept()[0],), daemon=True).start()
peer = socket.create_connection((address, port), 10)
peer.settimeout(20)
lines, longest = 0, 0.0
while os.path.exists(sys.argv[4]):
    start = time.monotonic()
    peer.sendall(b"x" * 100)
    left = 100
    while left:
        got = len(peer.recv(left))
        assert got, "closed"
        left -= got
    lines, longest = lines + 1, max(longest, time.monotonic() - start)
    time.sleep(0.05)
print(lines, int(longest * 1000))
PYTHON
for address in 10.0.1.9 2001:db8:1::9; do
  ip netns exec "$R" python3 "$work/echo.py" serve "$address" 22 & helpers+=($!)
done
await 5 listens "$R" 22 || fail "the echo server does not listen"
in_a ping -c 1 -W 10 10.0.1.9 >/dev/null || fail "host a does not reach the machine's own address"

# talk NAME: sessions of both families begin. silence NAME: they end; fails if one was cut or had to wait long.
talk() {
  touch "$work/talking"
  for family in 4 6; do
    address=10.0.1.9
    [ "$family" = 6 ] && address=2001:db8:1::9
    PATIENCE=120 in_a python3 "$work/echo.py" talk "$address" 22 "$work/talking" >"$work/talk.$family" 2>&1 &
    eval "talk$family=$!"
  done
}
silence() {
  rm -f "$work/talking"
  # shellcheck disable=SC2154
  for family in 4 6; do
    local pid=talk$family
    wait "${!pid}" || fail "$1: the IPv$family session was cut: $(tail -n 3 "$work/talk.$family")"
    read -r lines longest <"$work/talk.$family"
    [ "$lines" -ge 10 ] || fail "$1: only $lines lines"
    [ "$longest" -le 3000 ] || fail "$1: a line of IPv$family took $longest ms"
    waits+="$longest "
  done
}
waits=

out=$(ctl create interface af_xdp host-if va 2>&1) && fail "took the port of the default route"
grep -q "carries the host's default route: add .pinhole host,dhcp. to share" <<<"$out" || fail "$out"
talk
sleep 0.3
take va 1 pinhole host,dhcp
take vb 2
await 10 reaches || fail "the router does not forward on the shared port: $(ctl show interface af_xdp)"
in_a iperf3 -c 10.0.2.2 -t 2 -J >/dev/null || fail "iperf3 through the shared port"
expect "pinhole" ctl set interface af_xdp va/0 pinhole ssh,arp
sleep 0.3
in_a ping -c 1 -W 1 10.0.1.9 >/dev/null && fail "ping reaches the host, which keeps SSH only"
expect "pinhole" ctl set interface af_xdp va/0 pinhole from:10.0.1.0/24,from:2001:db8:1::/64,host
await 5 in_a ping -c 1 -W 1 10.0.1.9 || fail "the pinhole does not open again"
expect "pinhole" ctl set interface af_xdp va/0 pinhole host,dhcp,others
says 'pinhole host,dhcp,others\|pinhole host,others,dhcp' ctl show interface af_xdp va/0 || fail "$(ctl show interface af_xdp va/0)"
says 'create interface af_xdp host-if va name va/0 hw-addr .* pinhole host,others,dhcp' ctl show running-config || fail "$(ctl show running-config)"
await 10 reaches || fail "the router does not forward any more"
expect "delete" ctl delete interface af_xdp va/0
sleep 0.3
silence "own MAC address"

# The same with one MAC address for both.
talk
sleep 0.3
take va 1 mac-reuse pinhole ssh,arp
await 10 reaches || fail "no forwarding with the kernel's MAC address: $(ctl show interface af_xdp)"
says 'mac-reuse' ctl show running-config || fail "$(ctl show running-config)"
expect "interface state" ctl set interface state va/0 down
await 5 in_a ping -c 1 -W 1 10.0.1.9 || fail "down, the host has not the port to itself"
expect "interface state" ctl set interface state va/0 up
await 10 reaches || fail "up again, but no forwarding"

# The router dies: the kernel takes the program away.
kill -9 "$router"
wait "$router" 2>/dev/null
router=
await 5 in_a ping -c 1 -W 1 10.0.1.9 || fail "the host is cut off by a router that died"
# On a fast machine all that takes less time than the sessions need for their lines.
sleep 2
silence "kernel's MAC address"
start_router
take va 1 pinhole host
alive
pass "TCP, TCP back, UDP, UDP back: ${rates}Mbit/s; longest waits of the host's sessions ${waits}ms"
