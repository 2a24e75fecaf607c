#!/usr/bin/env bash
# Real hosts behind NAT44: host a shares an address of the router towards host b. TCP, UDP, ping and traceroute go out,
# a port leads in, two hosts inside reach each other by the outside port, and unexpected packets stay outside.
. "$(dirname "$0")/lib.sh"
need ping tcpdump iperf3 traceroute curl python3
begin cpu { workers 1 }

expect "nat" ctl nat44 plugin enable
expect "in" ctl set interface nat44 in host-va out host-vb
expect "pool" ctl nat44 add address 10.0.2.100

# What b sees of a: never its own address.
ip netns exec "$B" tcpdump -i eth0 -Unn --immediate-mode -w "$work/b.pcap" ip 2>"$work/b.log" &
helpers+=($!)
await 10 says "listening on" cat "$work/b.log" || fail "tcpdump: $(cat "$work/b.log")"

in_a "$patient_ping" -q -i 0.05 -c 20 -W 2 10.0.2.2 | grep -q ' 0% packet loss' || fail "ping through NAT"
in_a "$patient_ping" -q -i 0.05 -c 5 -s 3000 -W 2 10.0.2.2 | grep -q ' 0% packet loss' || fail "ping in fragments"

in_b iperf3 -s -p 5201 -1 -D --logfile "$work/iperf.log"
await 5 listens "$B" 5201 || fail "iperf3 does not listen"
expect "tcp" in_a iperf3 -c 10.0.2.2 -p 5201 -t 2 -P 8
in_b iperf3 -s -p 5202 -1 -D
await 5 listens "$B" 5202 || fail "iperf3 does not listen"
expect "udp" in_a iperf3 -c 10.0.2.2 -p 5202 -u -b 20M -t 2 -R

says "10.0.1.1" in_a traceroute -n -w 2 -q 1 10.0.2.2 || fail "traceroute does not show the router"
says "10.0.2.2" in_a traceroute -n -w 2 -q 1 10.0.2.2 || fail "traceroute does not show the host"

# A closed port: the RST, and the ICMP error, come back to the client.
says "refused" in_a bash -c ': </dev/tcp/10.0.2.2/9' || fail "a refused connection is not told"
# traceroute has used up what Linux sends of these in a second.
in_b sysctl -qw net.ipv4.icmp_ratelimit=0
unreachable='import socket; s = socket.socket(type=2); s.settimeout(5); s.connect(("10.0.2.2", 9)); s.send(b"x"); s.recv(9)'
says "refused" in_a python3 -c "$unreachable" || fail "a closed port is not reported"

# A port leads to a's server; a second address of a is another host inside.
ip -n "$A" addr add 10.0.1.3/24 dev eth0
# Not `python3 -m http.server`, which asks for its own name first.
serve='import http.server as h, socketserver as s; s.TCPServer(("10.0.1.2", 8000), h.SimpleHTTPRequestHandler).serve_forever()'
(cd "$work" && PATIENCE=100 in_a python3 -c "$serve") >/dev/null 2>&1 &
helpers+=($!)
echo "served inside" >"$work/page"
await 10 listens "$A" 8000 || fail "the server does not listen"
expect "mapping" ctl nat44 add static mapping tcp local 10.0.1.2 8000 external 10.0.2.100 80
says "served inside" in_b curl -s -m 5 http://10.0.2.100/page || fail "the port does not lead in"
says "served inside" in_a curl -s -m 5 --interface 10.0.1.3 http://10.0.2.100/page || fail "hosts inside do not reach each other"

! in_b curl -s -m 2 http://10.0.2.100:81/ >/dev/null || fail "an unasked connection got in"

kill "${helpers[0]}"
seen=$(tcpdump -r "$work/b.pcap" -nn 'src net 10.0.1.0/24 and not src host 10.0.1.1' 2>/dev/null | wc -l)
[ "$seen" -eq 0 ] || fail "b saw $seen packets with an inside address"
[ "$(tcpdump -r "$work/b.pcap" -nn 'src host 10.0.2.100' 2>/dev/null | wc -l)" -gt 100 ] || fail "b saw too little of the shared address"

# Each session of the listing was seen by b.
sessions=$(ctl show nat44 sessions)
grep -q "twice-nat" <<<"$sessions" && fail "no session hides b"
grep -q "hairpinning" <<<"$sessions" || fail "the hairpin session is not listed"
alive
stop_router || fail "the router did not stop"
pass
