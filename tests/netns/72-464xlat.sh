#!/usr/bin/env bash
# 464XLAT (RFC 6877): programs of host a know IPv4 alone, its network IPv6 alone. Tayga is the customer's side in host a, which makes
# IPv6 of their packets by a prefix; NAT64 is the provider's, which makes IPv4 of them again for host b.
. "$(dirname "$0")/lib.sh"
need ping iperf3 curl python3 tayga
begin
ip netns exec "$A" sysctl -qw net.ipv6.conf.all.disable_ipv6=0 net.ipv6.conf.eth0.disable_ipv6=0 || skip "the kernel has no IPv6"
ip -n "$A" addr flush dev eth0 scope global
ip -n "$A" addr add 2001:db8:1::2/64 dev eth0 nodad
ip -n "$A" route replace default via 2001:db8:1::1
expect "inside" ctl set interface ip address host-va 2001:db8:1::1/64
expect "route" ctl ip route add 2001:db8:1:464::/64 via 2001:db8:1::2 host-va
expect "nat64" ctl nat64 plugin enable
# Tayga puts no private addresses behind the well-known prefix (RFC 6052, 3.1).
expect "prefix" ctl nat64 add prefix 2001:db8:64::/96
expect "in" ctl set interface nat64 in host-va
expect "out" ctl set interface nat64 out host-vb
expect "pool" ctl nat64 add pool address 10.0.2.100

# The customer's side: 192.0.0.1 (RFC 7335) is 2001:db8:1:464::1 outside, all else has the provider's prefix.
cat >"$work/tayga.conf" <<CONF
tun-device clat
ipv4-addr 192.0.0.2
ipv6-addr 2001:db8:1:464::2
prefix 2001:db8:64::/96
map 192.0.0.1 2001:db8:1:464::1
data-dir $work
CONF
in_a tayga --mktun -c "$work/tayga.conf" >/dev/null || skip "no TUN device: $(in_a tayga --mktun -c "$work/tayga.conf" 2>&1)"
ip netns exec "$A" sysctl -qw net.ipv6.conf.clat.disable_ipv6=0
ip -n "$A" link set clat up
ip -n "$A" addr add 192.0.0.1/32 dev clat
# Headers of IPv6 are longer by 20 bytes.
ip -n "$A" route replace default dev clat src 192.0.0.1 mtu 1480
ip -n "$A" -6 route add 2001:db8:1:464::/64 dev clat
ip netns exec "$A" sysctl -qw net.ipv4.ip_forward=1 net.ipv6.conf.all.forwarding=1
ip netns exec "$A" tayga -n -c "$work/tayga.conf" >"$work/tayga.log" 2>&1 &
helpers+=($!)
await 10 in_a ping -c 1 -W 1 10.0.2.2 || fail "no answer: $(cat "$work/tayga.log"); $(ctl show nat64 session table all 2>&1); $(in_a ping -6 -c 1 2001:db8:64::10.0.2.2)"
out=$(in_a "$patient_ping" -q -i 0.05 -c 20 -W 2 10.0.2.2) || fail "ping: $out"
says ' 0% packet loss' echo "$out" || fail "ping: $out"
# Datagrams that are larger than a packet, both ways; a translator without state drops fragments of ICMP (RFC 7915, 4.2).
fragments_echoed "$A" 10.0.2.2 "$B" 10.0.2.2 || fail "datagrams in fragments do not come back: $(ctl show errors)"

in_b iperf3 -s -p 5201 -1 -D
await 5 listens "$B" 5201 || fail "iperf3 does not listen"
expect "tcp" in_a iperf3 -4 -c 10.0.2.2 -p 5201 -t 2 -P 4
in_b iperf3 -s -p 5202 -1 -D
await 5 listens "$B" 5202 || fail "iperf3 does not listen"
expect "udp" in_a iperf3 -4 -c 10.0.2.2 -p 5202 -u -b 10M -t 2 -R

# A page that fits no packet; the server sees the shared address.
mkdir -p "$work/www"
head -c 200000 /dev/zero >"$work/www/page"
# Not `python3 -m http.server`, which asks for its own name first.
serve='import http.server as h, socketserver as s; s.TCPServer(("10.0.2.2", 8080), h.SimpleHTTPRequestHandler).serve_forever()'
(cd "$work/www" && exec ip netns exec "$B" python3 -u -c "$serve") >"$work/www.log" 2>&1 &
helpers+=($!)
await 10 listens "$B" 8080 || fail "no server: $(cat "$work/www.log")"
expect "page" in_a curl -s -4 -m 10 -o "$work/page" http://10.0.2.2:8080/page
cmp -s "$work/page" "$work/www/page" || fail "the page has come otherwise"
says '^10\.0\.2\.100 ' cat "$work/www.log" || fail "the server has seen another address: $(cat "$work/www.log")"
# An error about the far end comes back as IPv4's.
says 'Connection refused\|Failed to connect' in_a curl -sS -4 -m 5 http://10.0.2.2:8081/ || fail "no error comes back"
expect "udp error" in_a python3 -c '
import socket
s = socket.socket(type=socket.SOCK_DGRAM)
s.settimeout(5)
s.connect(("10.0.2.2", 9))
s.send(b"x")
try:
    s.recv(1)
    raise SystemExit("an answer")
except ConnectionRefusedError:
    pass
'
alive
await 10 no_buffers_used || fail "$(buffers_used) buffers are still in use"
pass
