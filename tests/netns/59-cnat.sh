#!/usr/bin/env bash
# Cloud NAT between a client and two real back ends: connections to a virtual address are spread over both, in both families, and go on
# while back ends change; the back ends' own connections leave with a shared address.
. "$(dirname "$0")/lib.sh"
need ping python3
begin cpu { workers 2 } cnat { session-max-age 60 session-max 10000 }
for ns in "$A" "$B"; do ip netns exec "$ns" sysctl -qw net.ipv6.conf.all.disable_ipv6=0 net.ipv6.conf.eth0.disable_ipv6=0; done
ip -n "$A" addr add fd00:1::2/64 dev eth0 nodad
ip -n "$A" -6 route replace default via fd00:1::1
ip -n "$B" addr add fd00:2::2/64 dev eth0 nodad
ip -n "$B" addr add fd00:2::3/64 dev eth0 nodad
ip -n "$B" addr add 10.0.2.3/24 dev eth0
# The far side knows nothing of the back ends' networks but the shared addresses: without them no answer comes.
ip -n "$B" -6 route replace default via fd00:2::1
ip -n "$B" route replace default via 10.0.2.1
for net in 198.51.100.0/24 203.0.113.0/24; do ip -n "$A" route replace "$net" via 10.0.1.1; done
expect "ip6 a" ctl set interface ip address host-va fd00:1::1/64
expect "ip6 b" ctl set interface ip address host-vb fd00:2::1/64

# Back ends: each tells its address, and its client's, and echoes lines as long as the connection lasts.
serve='import socketserver as s, sys, threading, socket
class Tell(s.StreamRequestHandler):
  def handle(self):
    for line in self.rfile:
      own, peer = self.request.getsockname()[0], self.request.getpeername()[0]
      self.wfile.write(f"{own} {peer} ".encode() + line)
class Six(s.ThreadingTCPServer):
  address_family = socket.AF_INET6
  allow_reuse_address = True
s.ThreadingTCPServer.allow_reuse_address = True
for at in sys.argv[1:]:
  of = Six if ":" in at else s.ThreadingTCPServer
  threading.Thread(target=of((at, 8080), Tell).serve_forever).start()'
PATIENCE=200 in_b python3 -c "$serve" 10.0.2.2 10.0.2.3 fd00:2::2 fd00:2::3 >"$work/backends.log" 2>&1 &
helpers+=($!)
PATIENCE=200 in_a python3 -c "$serve" 10.0.1.2 fd00:1::2 >"$work/far.log" 2>&1 &
helpers+=($!)
await 10 listens "$B" 8080 || fail "the back ends do not listen: $(cat "$work/backends.log")"
await 10 listens "$A" 8080 || fail "the far host does not listen: $(cat "$work/far.log")"

expect "translation" ctl cnat translation add proto TCP vip 198.51.100.1 80 to "->10.0.2.2" 8080 to "->10.0.2.3" 8080
expect "translation 6" ctl cnat translation add proto TCP vip fd00:99::1 80 to "->fd00:2::2" 8080 to "->fd00:2::3" 8080 lb maglev
expect "feature a" ctl set cnat feature host-va enable
expect "feature b" ctl set cnat feature host-vb enable

# `spread ADDRESS PORT N`: so many connections; how many each server has, and their clients.
spread='import collections, socket, sys
seen = collections.Counter()
for n in range(int(sys.argv[3])):
  s = socket.create_connection((sys.argv[1], int(sys.argv[2])), timeout=5)
  f = s.makefile("rw")
  for word in "one", "two": print(word, file=f, flush=True); answer = f.readline().split(); assert answer[2] == word
  seen[answer[0] + "<-" + answer[1]] += 1
  s.close()
print(*(f"{way}={count}" for way, count in sorted(seen.items())))'
both() {
  local got
  got=$(in_a python3 -c "$spread" "$1" 80 40) || fail "connections to $1: $got"
  [ "$(wc -w <<<"$got")" = 2 ] || fail "one back end has all connections to $1: $got"
  says "<-$2=" echo "$got" || fail "back ends do not see the client $2: $got"
}
await 10 in_a python3 -c "$spread" 198.51.100.1 80 1 || fail "no connection: $(in_a python3 -c "$spread" 198.51.100.1 80 1 2>&1)"
await 10 in_a python3 -c "$spread" fd00:99::1 80 1 || fail "no connection by IPv6"
both 198.51.100.1 10.0.1.2
both fd00:99::1 fd00:1::2

# A connection that lasts keeps its back end while that is taken out.
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
expect "one back end" ctl cnat translation add proto TCP vip 198.51.100.1 80 to "->$other" 8080
got=$(in_a python3 -c "$spread" 198.51.100.1 80 20) || fail "connections to the other: $got"
[ "$got" = "$other<-10.0.1.2=20" ] || fail "a back end that was taken out has new connections: $got"
wait "$connection" || fail "the connection broke: $(tail -n 1 "$work/last")"
says "198.51.100.1;80 TCP lb:default" ctl show cnat translation || fail "not shown"
says "cnat translation add proto TCP vip 198.51.100.1 80 to ->$other 8080" ctl show running-config || fail "not saved"
says "198.51.100.1;80. => .10.0.1.2;" ctl show cnat session verbose 1 || fail "no sessions: $(ctl show cnat session verbose 1)"

# What the back ends' host begins leaves with the shared address, whose route the far host alone has.
ip -n "$A" -6 route del default
ip -n "$A" -6 route add fd00:77::/64 via fd00:1::1
ip -n "$A" -6 route add fd00:99::/64 via fd00:1::1
expect "shared" ctl set cnat snat-policy addr 203.0.113.7 fd00:77::7
expect "v4" ctl set cnat snat-policy if table include-v4 host-vb
expect "v6" ctl set cnat snat-policy if table include-v6 host-vb
expect "prefix" ctl set cnat snat-policy prefix 10.0.2.0/24
expect "policy" ctl set cnat snat-policy k8s
for way in "10.0.1.2 203.0.113.7" "fd00:1::2 fd00:77::7"; do
  read -r to from <<<"$way"
  got=$(in_b python3 -c "$spread" "$to" 8080 20) || fail "connections to $to: $got"
  [ "$got" = "$to<-$from=20" ] || fail "connections to $to do not come from $from: $got"
  in_b ping -c 2 -i 0.2 -W 2 "$to" >"$work/ping" 2>&1 || fail "no echo of $to: $(cat "$work/ping")"
done
expect "purge" ctl cnat purge
says "empty, uninitialized" ctl show cnat session || says "active elements" ctl show cnat session || fail "sessions are not shown"
alive
stop_router || fail "the router did not stop"
pass
