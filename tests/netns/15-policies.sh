#!/usr/bin/env bash
# Features of the input and output arcs between real hosts, in both families: a source that is not where it claims to be
# is dropped (uRPF), a port goes to another next hop (policy routing), connections ask for smaller segments (MSS).
. "$(dirname "$0")/lib.sh"
need ping tcpdump python3
begin

# Host b has a second link, and an address of its own that is reached by either.
ip -n "$R" link add name vc type veth peer name eth1 netns "$B" || fail "cannot make a veth pair"
ip netns exec "$R" sysctl -qw net.ipv6.conf.vc.disable_ipv6=1
ip -n "$R" link set vc up
ip -n "$B" addr add 10.0.3.2/24 dev eth1
ip -n "$B" link set eth1 up
ip -n "$B" addr add 10.9.9.9/32 dev lo
for interface in all eth0 eth1; do
  ip netns exec "$B" sysctl -qw "net.ipv4.conf.$interface.rp_filter=0"
done
attach vc 10.0.3.1/24
await 5 in_b ping -c 1 -W 1 10.0.3.1 || fail "the router does not answer host b's other ping"
expect "route" ctl ip route add 10.9.9.9/32 via 10.0.2.2 host-vb
for end in "$A va 1" "$B vb 2"; do
  read -r ns port n <<<"$end"
  ip netns exec "$ns" sysctl -qw net.ipv6.conf.lo.disable_ipv6=0 net.ipv6.conf.eth0.disable_ipv6=0 net.ipv6.conf.eth0.accept_ra=0 || skip "the kernel has no IPv6"
  ip -n "$ns" addr add "2001:db8:$n::2/64" dev eth0 nodad
  ip -n "$ns" route replace default via "2001:db8:$n::1"
  expect "interface address" ctl set interface ip address "host-$port" "2001:db8:$n::1/64"
done
await 10 in_a ping -c 1 -W 1 10.9.9.9 || fail "host b does not answer on its own address"
await 10 in_a ping -6 -c 1 -W 1 2001:db8:2::2 || fail "host b does not answer IPv6"

# capture NAME INTERFACE FILTER...: what host b receives, a line for each packet.
capture() {
  local name=$1 interface=$2
  shift 2
  ip netns exec "$B" tcpdump -n -l -i "$interface" --immediate-mode "$@" >"$work/$name" 2>"$work/$name.err" &
  disown
  await 5 grep -q 'listening on' "$work/$name.err" || fail "tcpdump: $(cat "$work/$name.err")"
}
lines() { grep -c . "$work/$1"; }
captured() { [ "$(lines "$1")" -ge "$2" ]; }
dropped() { ctl show errors | awk -v node="$1" '$2 == node && /uRPF Drop/ { n += $1 } END { print n + 0 }'; }

# A spoofed source: host a has addresses that do not belong to its network.
ip -n "$A" addr add 192.0.2.66/32 dev lo
ip -n "$A" addr add 2001:db8:66::66/128 dev lo nodad
capture spoofed eth0 "src 192.0.2.66 or src 2001:db8:66::66"
in_a ping -c 2 -i 0.2 -W 1 -I 192.0.2.66 10.0.2.2 >/dev/null
in_a ping -6 -c 2 -i 0.2 -W 1 -I 2001:db8:66::66 2001:db8:2::2 >/dev/null
await 5 captured spoofed 4 || fail "spoofed packets did not arrive while no check was on: $(cat "$work/spoofed")"
before=$(lines spoofed)
expect "urpf" ctl set urpf ip4 rx strict host-va
expect "urpf" ctl set urpf ip6 rx strict host-va
in_a ping -c 3 -i 0.2 -W 1 -I 192.0.2.66 10.0.2.2 >/dev/null && fail "an answer to a spoofed source"
in_a ping -6 -c 3 -i 0.2 -W 1 -I 2001:db8:66::66 2001:db8:2::2 >/dev/null && fail "an answer to a spoofed source"
in_a ping -c 3 -i 0.2 -W 10 10.0.2.2 >/dev/null || fail "an honest source is dropped too"
in_a ping -6 -c 3 -i 0.2 -W 10 2001:db8:2::2 >/dev/null || fail "an honest source is dropped too"
[ "$(lines spoofed)" -eq "$before" ] || fail "spoofed packets got through: $(cat "$work/spoofed")"
for node in ip4-rx-urpf-strict ip6-rx-urpf-strict; do
  [ "$(dropped "$node")" -eq 3 ] || fail "$node: $(ctl show errors)"
done
out=$(ctl show interface features host-va)
grep -q ip4-rx-urpf-strict <<<"$out" || fail "show interface features: $out"
says 'ip4 rx strict' ctl show urpf || fail "show urpf: $(ctl show urpf)"

# One port goes to host b by its other link.
cat >"$work/udp.py" <<'PY'
import socket, sys
sock = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
for port in (8080, 8081):
    for _ in range(5):
        sock.sendto(b"policy", ("10.9.9.9", port))
PY
capture first eth0 "udp and dst host 10.9.9.9"
capture second eth1 "udp and dst host 10.9.9.9"
expect "policy" ctl abf policy add id 1 proto udp dport 8080 via 10.0.3.2 host-vc
expect "attach" ctl abf attach ip4 policy 1 priority 10 host-va
in_a python3 "$work/udp.py"
await 5 captured second 5 || fail "port 8080 did not come by the other link: $(ctl show abf policy)"
await 5 captured first 5 || fail "port 8081 did not come by the usual link"
grep -q '\.8081' "$work/second" && fail "port 8081 took the policy's way: $(cat "$work/second")"
grep -q '\.8080' "$work/first" && fail "port 8080 took its route: $(cat "$work/first")"
says 'matched 5 packets' ctl show abf policy 1 || fail "show abf policy: $(ctl show abf policy)"
expect "detach" ctl abf attach ip4 del policy 1 host-va
expect "delete" ctl abf policy del id 1

# Connections ask for smaller segments.
capture syns eth0 "(tcp[tcpflags] & tcp-syn != 0) or (ip6 and tcp)"
expect "clamp" ctl set interface tcp-mss-clamp host-va ip4 rx ip4-mss 1000 ip6 rx ip6-mss 900
cat >"$work/tcp.py" <<'PY'
import socket, sys
try:
    socket.create_connection((sys.argv[1], 7777), timeout=2)
except ConnectionRefusedError:
    pass
PY
in_a python3 "$work/tcp.py" 10.0.2.2 || fail "no answer to a clamped SYN"
in_a python3 "$work/tcp.py" 2001:db8:2::2 || fail "no answer to a clamped SYN"
await 5 grep -q 'IP 10.0.1.2.*mss 1000,' "$work/syns" || fail "no MSS of 1000: $(cat "$work/syns")"
await 5 grep -q 'IP6 2001:db8:1::2.*mss 900,' "$work/syns" || fail "no MSS of 900: $(cat "$work/syns")"
says 'ip4: rx mss 1000 ip6: rx mss 900' ctl show interface tcp-mss-clamp || fail "$(ctl show interface tcp-mss-clamp)"
# On the way out it is the same.
expect "clamp" ctl set interface tcp-mss-clamp host-va ip4 disable ip6 disable
expect "clamp" ctl set interface tcp-mss-clamp host-vb ip4 tx ip4-mss 800 ip6 tx ip6-mss 700
in_a python3 "$work/tcp.py" 10.0.2.2 || fail "no answer to a clamped SYN"
in_a python3 "$work/tcp.py" 2001:db8:2::2 || fail "no answer to a clamped SYN"
await 5 grep -q 'IP 10.0.1.2.*mss 800,' "$work/syns" || fail "no MSS of 800: $(cat "$work/syns")"
await 5 grep -q 'IP6 2001:db8:1::2.*mss 700,' "$work/syns" || fail "no MSS of 700: $(cat "$work/syns")"
alive
await 10 no_buffers_used || fail "$(buffers_used) buffers are still in use"
pass
