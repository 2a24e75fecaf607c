#!/usr/bin/env bash
# A load balancer between a client and two real servers: connections to one address are spread over both and keep their server while
# others come and go; IPv6 likewise; tunnels reach a host with the bytes that were sent.
. "$(dirname "$0")/lib.sh"
need ping tcpdump python3
begin cpu { workers 1 }
for ns in "$A" "$B"; do ip netns exec "$ns" sysctl -qw net.ipv6.conf.all.disable_ipv6=0 net.ipv6.conf.eth0.disable_ipv6=0; done
ip -n "$A" addr add fd00:1::2/64 dev eth0 nodad
ip -n "$A" -6 route replace default via fd00:1::1
ip -n "$B" addr add fd00:2::2/64 dev eth0 nodad
ip -n "$B" addr add fd00:2::3/64 dev eth0 nodad
ip -n "$B" addr add 10.0.2.3/24 dev eth0
ip -n "$B" -6 route replace default via fd00:2::1
ip -n "$A" route replace default via 10.0.1.1
expect "ip6 a" ctl set interface ip address host-va fd00:1::1/64
expect "ip6 b" ctl set interface ip address host-vb fd00:2::1/64

# Two servers: each tells its address, and echoes lines as long as the connection lasts.
serve='import socketserver as s, sys, threading, time, socket
class Tell(s.StreamRequestHandler):
  def handle(self):
    for line in self.rfile: self.wfile.write(self.request.getsockname()[0].encode() + b" " + line)
class Six(s.ThreadingTCPServer):
  address_family = socket.AF_INET6
  allow_reuse_address = True
s.ThreadingTCPServer.allow_reuse_address = True
for a in "10.0.2.2", "10.0.2.3": threading.Thread(target=s.ThreadingTCPServer((a, 8080), Tell).serve_forever).start()
for a in "fd00:2::2", "fd00:2::3": threading.Thread(target=Six((a, 8080), Tell).serve_forever).start()'
PATIENCE=200 in_b python3 -c "$serve" >"$work/servers.log" 2>&1 &
helpers+=($!)
await 10 listens "$B" 8080 || fail "the servers do not listen: $(cat "$work/servers.log")"

says "lb_vip_add ok 1" ctl lb vip 198.51.100.1/32 protocol tcp port 80 encap nat4 type clusterip target_port 8080 || fail "no virtual address"
expect "servers" ctl lb as 198.51.100.1/32 protocol tcp port 80 10.0.2.2 10.0.2.3
says "lb_vip_add ok 2" ctl lb vip fd00:99::1/128 protocol tcp port 80 encap nat6 type clusterip target_port 8080 || fail "no IPv6 address"
expect "servers" ctl lb as fd00:99::1/128 protocol tcp port 80 fd00:2::2 fd00:2::3
expect "answers" ctl lb set interface nat4 in host-vb
expect "answers" ctl lb set interface nat6 in host-vb

# `spread ADDRESS N`: so many connections; how many each server has.
spread='import collections, socket, sys
seen = collections.Counter()
for n in range(int(sys.argv[2])):
  s = socket.create_connection((sys.argv[1], 80), timeout=5)
  f = s.makefile("rw")
  for word in "one", "two": print(word, file=f, flush=True); answer = f.readline().split(); assert answer[1] == word
  seen[answer[0]] += 1
  s.close()
print(*(f"{server}={count}" for server, count in sorted(seen.items())))'
both() {
  local got
  got=$(in_a python3 -c "$spread" "$1" 40) || fail "connections to $1: $got"
  [ "$(wc -w <<<"$got")" = 2 ] || fail "one server has all connections to $1: $got"
}
await 10 in_a python3 -c "$spread" 198.51.100.1 1 || fail "no connection: $(in_a python3 -c "$spread" 198.51.100.1 1 2>&1)"
await 10 in_a python3 -c "$spread" fd00:99::1 1 || fail "no connection by IPv6"
both 198.51.100.1
both fd00:99::1

# A connection that lasts keeps its server while that gets no new ones.
last='import socket, sys, time
s = socket.create_connection(("198.51.100.1", 80), timeout=5)
f = s.makefile("rw")
servers = set()
for n in range(60):
  print(n, file=f, flush=True)
  servers.add(f.readline().split()[0])
  print(*servers, flush=True)
  time.sleep(0.05)
assert len(servers) == 1, servers'
PATIENCE=30 in_a python3 -c "$last" >"$work/last" 2>&1 &
connection=$!
await 5 says "10.0.2" cat "$work/last" || fail "the connection does not start: $(cat "$work/last")"
its=$(head -n 1 "$work/last")
other=10.0.2.2
[ "$its" = 10.0.2.3 ] || other=10.0.2.3
expect "retire" ctl lb as 198.51.100.1/32 protocol tcp port 80 "$its" del
got=$(in_a python3 -c "$spread" 198.51.100.1 20) || fail "connections to the other: $got"
[ "$got" = "$other=20" ] || fail "a server that was taken away has new connections: $got"
wait "$connection" || fail "the connection broke: $(tail -n 1 "$work/last")"
says "$its 0 buckets" ctl show lb vips verbose || fail "the server is gone with its flows: $(ctl show lb vips verbose)"
says "lb as 198.51.100.1/32 protocol tcp port 80 $other" ctl show running-config || fail "not saved"
says "encap nat4 type clusterip target_port 8080" ctl show running-config || fail "not saved"

# A tunnel: the server's host gets what the client sent, within IPv4 and GRE.
expect "source" ctl lb conf ip4-src-address 10.0.2.1
expect "tunnel" ctl lb vip 198.51.100.2/32 encap gre4
expect "server" ctl lb as 198.51.100.2/32 10.0.2.2
ip netns exec "$B" tcpdump -i eth0 -nn -c 1 --immediate-mode 'ip proto 47' >"$work/gre" 2>"$work/gre.log" &
helpers+=($!)
await 10 says "listening on" cat "$work/gre.log" || fail "tcpdump: $(cat "$work/gre.log")"
in_a ping -c 3 -i 0.2 -W 1 198.51.100.2 >/dev/null
await 5 says "10.0.2.1 > 10.0.2.2: GREv0" cat "$work/gre" || fail "no tunnel: $(cat "$work/gre")"
says "10.0.1.2 > 198.51.100.2: ICMP echo request" cat "$work/gre" || fail "not what was sent: $(cat "$work/gre")"
alive
stop_router || fail "the router did not stop"
pass
