#!/usr/bin/env bash
# Real hosts through NAT64: host a has IPv6 alone, host b IPv4 alone. Ping (in fragments, too), TCP, UDP, traceroute and errors go
# from a to b, a port of a is reached from b, and a second worker takes over half of the hosts while a connection runs.
. "$(dirname "$0")/lib.sh"
need ping tcpdump iperf3 traceroute curl python3
begin cpu { workers 1 }
ip netns exec "$A" sysctl -qw net.ipv6.conf.all.disable_ipv6=0 net.ipv6.conf.eth0.disable_ipv6=0 || skip "the kernel has no IPv6"
# traceroute uses up what Linux sends of these in a second.
ip netns exec "$A" sysctl -qw net.ipv6.icmp.ratelimit=0
in_b sysctl -qw net.ipv4.icmp_ratelimit=0
ip -n "$A" addr flush dev eth0 scope global
ip -n "$A" addr add 2001:db8:1::2/64 dev eth0 nodad
ip -n "$A" route replace default via 2001:db8:1::1
expect "inside" ctl set interface ip address host-va 2001:db8:1::1/64

expect "nat64" ctl nat64 plugin enable
expect "in" ctl set interface nat64 in host-va
expect "out" ctl set interface nat64 out host-vb
expect "pool" ctl nat64 add pool address 10.0.2.100
b=64:ff9b::10.0.2.2

ip netns exec "$B" tcpdump -i eth0 -Unn --immediate-mode -w "$work/b.pcap" 2>"$work/b.log" &
helpers+=($!)
await 10 says "listening on" cat "$work/b.log" || fail "tcpdump: $(cat "$work/b.log")"
await 10 in_a ping -6 -c 1 -W 1 $b || fail "no answer through NAT64: $(in_a ping -6 -c 2 -W 1 $b)"
in_a "$patient_ping" -6 -q -i 0.05 -c 20 -W 2 $b | grep -q ' 0% packet loss' || fail "ping through NAT64"

in_b iperf3 -s -p 5201 -1 -D
await 5 listens "$B" 5201 || fail "iperf3 does not listen"
expect "tcp" in_a iperf3 -6 -c $b -p 5201 -t 2 -P 8
in_b iperf3 -s -p 5202 -1 -D
await 5 listens "$B" 5202 || fail "iperf3 does not listen"
expect "udp" in_a iperf3 -6 -c $b -p 5202 -u -b 20M -t 2 -R
# Datagrams that are larger than a packet, both ways.
fragments_echoed "$A" $b "$B" 10.0.2.2 || fail "datagrams in fragments do not come back"

says "2001:db8:1::1" in_a traceroute -6 -n -w 2 -q 1 -m 4 $b || fail "traceroute does not show the router"
says "64:ff9b::a00:202" in_a traceroute -6 -n -w 2 -q 1 -m 4 $b || fail "traceroute does not show the host"
refused='import socket, sys; s = socket.socket(socket.AF_INET6, type=2); s.settimeout(5); s.connect((sys.argv[1], 9)); s.send(b"x"); s.recv(9)'
says "refused" in_a python3 -c "$refused" $b || fail "a port without a server is not told"
says "refused" in_a bash -c ": </dev/tcp/$b/9" || fail "a refused connection is not told"

# A port leads to a's server.
serve='import http.server as h, socket, socketserver as s
class Six(s.TCPServer): address_family = socket.AF_INET6
Six(("2001:db8:1::2", 8000), h.SimpleHTTPRequestHandler).serve_forever()'
(cd "$work" && PATIENCE=100 in_a python3 -c "$serve") >/dev/null 2>&1 &
helpers+=($!)
echo "served by IPv6" >"$work/page"
await 10 listens "$A" 8000 || fail "the server does not listen"
expect "binding" ctl nat64 add static bib 2001:db8:1::2 8000 10.0.2.100 80 tcp
says "served by IPv6" in_b curl -s -m 5 http://10.0.2.100/page || fail "the port does not lead in"
says "served by IPv6" in_a curl -s -m 5 'http://[64:ff9b::10.0.2.100]/page' || fail "a does not reach itself by the outside"
! in_b curl -s -m 2 http://10.0.2.100:81/ >/dev/null || fail "an unasked connection got in"

says "2001:db8:1::2 8000 10.0.2.100 80 protocol tcp vrf 0 static" ctl show nat64 bib tcp || fail "the binding is not listed"
says "10.0.2.2 5201 protcol tcp" ctl show nat64 session table tcp || fail "sessions are not listed"

# Another worker comes: the port a had may be another thread's then, but a goes on.
expect "worker" ctl create worker
in_a "$patient_ping" -6 -q -i 0.05 -c 10 -W 2 $b | grep -q ' 0% packet loss' || fail "ping with another worker"
in_b iperf3 -s -p 5203 -1 -D
await 5 listens "$B" 5203 || fail "iperf3 does not listen"
expect "tcp with another worker" in_a iperf3 -6 -c $b -p 5203 -t 1 -P 8

kill "${helpers[0]}"
[ "$(tcpdump -r "$work/b.pcap" -nn 'src host 10.0.2.100' 2>/dev/null | wc -l)" -gt 100 ] || fail "b saw too little of the shared address"
bad=$(tcpdump -r "$work/b.pcap" -nnv 'src host 10.0.2.100 and (icmp or udp) and ip[6:2] & 0x3fff = 0' 2>/dev/null | grep -c 'bad.*cksum\|wrong icmp' || true)
[ "$bad" -eq 0 ] || fail "$bad packets of NAT64 have bad checksums"
# NAT44 by the same interfaces, with a pool of its own: each has its answers.
ip -n "$A" addr add 10.0.1.2/24 dev eth0
ip -n "$A" route replace default via 10.0.1.1
expect "nat44" ctl nat44 plugin enable
expect "nat44" ctl set interface nat44 in host-va out host-vb
expect "nat44" ctl nat44 add address 10.0.2.101
await 10 in_a ping -c 1 -W 1 10.0.2.2 || fail "no answer through NAT44 beside NAT64: $(ctl show errors)"
await 10 in_a ping -6 -c 1 -W 1 $b || fail "no answer through NAT64 beside NAT44: $(ctl show errors)"
says '10.0.2.101' ctl show nat44 sessions || fail "NAT44 has no session: $(ctl show nat44 sessions)"
alive
stop_router || fail "the router did not stop"
pass
