#!/usr/bin/env bash
# Servers behind the load balancer's tunnels and DSCP, of both families, that answer clients themselves; datagrams to servers whose
# addresses are replaced; clients of one Maglev table that keep their back end while others come and go.
. "$(dirname "$0")/lib.sh"
need python3 curl nft
begin cpu { workers 1 } cnat { session-max-age 60 session-max 10000 }
for ns in "$A" "$B"; do ip netns exec "$ns" sysctl -qw net.ipv6.conf.all.disable_ipv6=0 net.ipv6.conf.eth0.disable_ipv6=0; done
ip -n "$A" addr add fd00:1::2/64 dev eth0 nodad
ip -n "$A" -6 route replace default via fd00:1::1
ip -n "$A" route replace default via 10.0.1.1
ip -n "$B" route replace default via 10.0.2.1
ip -n "$B" -6 route replace default via fd00:2::1
for n in 2 3 4; do ip -n "$B" addr replace "fd00:2::$n/64" dev eth0 nodad; done
for n in 3 4; do ip -n "$B" addr add "10.0.2.$n/24" dev eth0; done
expect "ip6 a" ctl set interface ip address host-va fd00:1::1/64
expect "ip6 b" ctl set interface ip address host-vb fd00:2::1/64
expect "sources" ctl lb conf ip4-src-address 10.0.2.1 ip6-src-address fd00:2::1

# The servers' host has the virtual addresses, too, and answers from them: what comes back does not pass the balancer.
for address in 198.51.100.1/32 198.51.100.2/32 198.51.100.3/32; do ip -n "$B" addr add "$address" dev lo; done
for address in fd00:99::1/128 fd00:99::2/128; do ip -n "$B" addr add "$address" dev lo nodad; done
ip netns exec "$B" sysctl -qw net.ipv4.conf.all.rp_filter=0 net.ipv4.conf.eth0.rp_filter=0 net.ipv4.conf.default.rp_filter=0

# Unpacks GRE of both families: what is inside comes in by a tun device, as through a tunnel of the kernel's, which may have none.
unpack='import fcntl, os, select, socket, struct, subprocess
tun = os.open("/dev/net/tun", os.O_RDWR)
fcntl.ioctl(tun, 0x400454ca, struct.pack("16sH22x", b"gre", 0x1001))
subprocess.run(["ip", "link", "set", "gre", "up"], check=True)
open("/proc/sys/net/ipv4/conf/gre/rp_filter", "w").write("0")
open("/proc/sys/net/ipv6/conf/gre/disable_ipv6", "w").write("0")
both = {socket.socket(family, socket.SOCK_RAW, 47): family for family in (socket.AF_INET, socket.AF_INET6)}
print("ready", flush=True)
while True:
  for one in select.select(list(both), [], [])[0]:
    data = one.recv(65535)
    outer = 4 if both[one] == socket.AF_INET else 6
    if outer == 4: data = data[(data[0] & 15) * 4:]
    flags, kind = struct.unpack(">HH", data[:4])
    assert flags == 0 and kind in (0x0800, 0x86dd), data[:4]
    print(f"outer {outer} inner {data[4] >> 4}", flush=True)
    os.write(tun, data[4:])'
PATIENCE=110 in_b python3 -c "$unpack" >"$work/unpack.log" 2>&1 &
helpers+=($!)
await 10 says ready cat "$work/unpack.log" || fail "GRE is not unpacked: $(cat "$work/unpack.log")"

# One web server of both families. It says which of its addresses was asked.
web='import http.server, socket
class Tell(http.server.BaseHTTPRequestHandler):
  protocol_version = "HTTP/1.1"
  def do_GET(self):
    host = self.request.getsockname()[0].removeprefix("::ffff:")
    body = f"{host} {self.client_address[0].removeprefix(chr(58) * 2 + chr(102) * 4 + chr(58))} {self.path}\n".encode() * 200
    self.send_response(200); self.send_header("Content-Length", str(len(body))); self.end_headers(); self.wfile.write(body)
  def log_message(self, *_): pass
class Both(http.server.ThreadingHTTPServer):
  address_family = socket.AF_INET6
  def server_bind(self):
    self.socket.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0)
    super().server_bind()
Both(("::", 80), Tell).serve_forever()'
PATIENCE=110 in_b python3 -c "$web" >"$work/web.log" 2>&1 &
helpers+=($!)
await 10 listens "$B" 80 || fail "the web server does not listen: $(cat "$work/web.log")"

# `page ADDRESS CLIENT`: three pages that came from the address, one after the other by one connection.
page() {
  local url=$1 got
  case $1 in *:*) url="[$1]" ;; esac
  got=$(in_a curl -sS --max-time 10 "http://$url/one" "http://$url/two" "http://$url/three") || fail "no page of $1: $got
$(ctl show errors)"
  [ "$(grep -c "^$1 $2 /" <<<"$got")" = 600 ] || fail "not the pages of $1 for $2: $(head -n 3 <<<"$got")"
}
balanced() {
  says "lb_vip_add ok" ctl lb vip "$1/$2" encap "${@:4}" || fail "no virtual address $1: $(ctl lb vip "$1/$2" encap "${@:4}")"
  expect "a server of $1" ctl lb as "$1/$2" "$3"
}
balanced 198.51.100.1 32 10.0.2.2 gre4
balanced 198.51.100.2 32 fd00:2::2 gre6
balanced fd00:99::1 128 10.0.2.2 gre4
balanced fd00:99::2 128 fd00:2::2 gre6
for way in "198.51.100.1 10.0.1.2 4 4" "198.51.100.2 10.0.1.2 6 4" "fd00:99::1 fd00:1::2 4 6" "fd00:99::2 fd00:1::2 6 6"; do
  read -r address client outer inner <<<"$way"
  page "$address" "$client"
  says "outer $outer inner $inner" cat "$work/unpack.log" || fail "$address came without its tunnel: $(sort -u "$work/unpack.log")"
done

# L3DSR: the server knows by the DSCP which address was meant. The checksum of TCP is still that of this address, so that the server's
# kernel must not change it with the destination: a plain word is written, after the IP header's own checksum has been looked at.
balanced 198.51.100.3 32 10.0.2.3 l3dsr dscp 7
in_b nft -f - <<'RULES' || fail "nft does not take the rules"
table ip dsr {
  chain in { type filter hook prerouting priority raw; ip daddr 10.0.2.3 ip dscp 7 counter @nh,128,32 set 0xc6336403; }
}
RULES
page 198.51.100.3 10.0.1.2
[ "$(in_b nft list table ip dsr | awk '/counter/ { for (n = 1; n < NF; n++) if ($n == "packets") print $(n + 1) }')" -ge 6 ] ||
  fail "the DSCP was not seen: $(in_b nft list table ip dsr)"

# Datagrams to servers whose addresses are replaced, both families: answers come from the virtual address.
says "lb_vip_add ok" ctl lb vip 198.51.100.8/32 protocol udp port 53 encap nat4 type clusterip target_port 5353 || fail "no NAT4"
expect "servers" ctl lb as 198.51.100.8/32 protocol udp port 53 10.0.2.2 10.0.2.3 10.0.2.4
says "lb_vip_add ok" ctl lb vip fd00:99::8/128 protocol udp port 53 encap nat6 type clusterip target_port 5353 || fail "no NAT6"
expect "servers" ctl lb as fd00:99::8/128 protocol udp port 53 fd00:2::2 fd00:2::3 fd00:2::4
expect "answers" ctl lb set interface nat4 in host-vb
expect "answers" ctl lb set interface nat6 in host-vb
echoes='import select, socket, sys
def of(address, port):
  one = socket.socket(socket.AF_INET6 if ":" in address else socket.AF_INET, socket.SOCK_DGRAM)
  one.bind((address, port))
  return one
all = [of(address, port) for address in sys.argv[1:] for port in (5353, 5354)]
print("ready", flush=True)
while True:
  for one in select.select(all, [], [])[0]:
    data, client = one.recvfrom(2000)
    one.sendto(one.getsockname()[0].encode() + b" " + client[0].encode() + b" " + data, client)'
PATIENCE=110 in_b python3 -c "$echoes" 10.0.2.{2,3,4} fd00:2::{2,3,4} >"$work/echoes.log" 2>&1 &
helpers+=($!)
await 10 says ready cat "$work/echoes.log" || fail "datagrams are not answered: $(cat "$work/echoes.log")"
# `ask ADDRESS N FIRST`: so many clients, by their ports, two datagrams each: `PORT SERVER`, the same for both.
ask='import socket, sys
address, count, first = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
for port in range(first, first + count):
  s = socket.socket(socket.AF_INET6 if ":" in address else socket.AF_INET, socket.SOCK_DGRAM)
  s.bind(("", port)); s.settimeout(5)
  s.connect((address, 53))
  seen = set()
  for word in b"one", b"two":
    s.send(word); server, client, back = s.recv(2000).split()
    assert back == word, back
    seen.add(server.decode())
  assert len(seen) == 1, seen
  print(port, *seen)'
for way in "198.51.100.8 10.0.2." "fd00:99::8 fd00:2::"; do
  read -r address net <<<"$way"
  got=$(in_a python3 -c "$ask" "$address" 40 20000 2>&1) || fail "datagrams to $address: $got"
  [ "$(awk '{ print $2 }' <<<"$got" | sort -u | grep -c "^$net")" = 3 ] || fail "not all servers of $address are asked: $got"
done

# Cloud NAT with Maglev: of new connections of clients that were seen before, those to two of three back ends go there again when the
# third is taken out, and all do when it comes back. Back ends have another port: answers from the other one are the load balancer's.
expect "feature a" ctl set cnat feature host-va enable
expect "feature b" ctl set cnat feature host-vb enable
# A socket of Linux has a flow label of its own, which is part of what is hashed: without it clients are told by addresses and ports.
ip netns exec "$A" sysctl -qw net.ipv6.auto_flowlabels=0
maglev() {
  local address=$1 protocol=UDP
  shift
  expect "translation" ctl cnat translation add proto "$protocol" vip "$address" 53 "$@" lb maglev
}
for way in "198.51.100.9 10.0.2." "fd00:99::9 fd00:2::"; do
  read -r address net <<<"$way"
  all=() two=()
  for n in 2 3 4; do all+=(to "->$net$n" 5354); done
  for n in 2 3; do two+=(to "->$net$n" 5354); done
  maglev "$address" "${all[@]}"
  before=$(in_a python3 -c "$ask" "$address" 60 30000 2>&1) || fail "datagrams to $address: $before"
  [ "$(awk '{ print $2 }' <<<"$before" | sort -u | wc -l)" = 3 ] || fail "not all back ends of $address are asked: $before"
  maglev "$address" "${two[@]}"
  expect "sessions end" ctl cnat purge
  after=$(in_a python3 -c "$ask" "$address" 60 30000 2>&1) || fail "datagrams to two back ends of $address: $after"
  grep -q " ${net}4$" <<<"$after" && fail "a back end that was taken out is asked: $after"
  # Of the places of the other two few are others than before.
  moved=$(join <(grep -v " ${net}4$" <<<"$before") <(sort <<<"$after") | awk '$2 != $3' | wc -l)
  [ "$moved" -le 10 ] || fail "$moved clients of the back ends of $address that stay have another one now"
  maglev "$address" "${all[@]}"
  expect "sessions end" ctl cnat purge
  again=$(in_a python3 -c "$ask" "$address" 60 30000 2>&1) || fail "datagrams to three back ends of $address: $again"
  [ "$again" = "$before" ] || fail "clients of $address have other back ends than at first: $(diff <(echo "$before") <(echo "$again"))"
done

# Nothing of the load balancer changed by that; its addresses and those of cloud NAT work side by side.
page 198.51.100.1 10.0.1.2
page fd00:99::2 fd00:1::2
alive
stop_router || fail "the router did not stop"
pass
