#!/usr/bin/env bash
# Multicast between real hosts, both families: two receivers join a group, a sender streams, the router forwards to both;
# what comes from the wrong side is dropped and counted.
. "$(dirname "$0")/lib.sh"
need python3
C=shoal-c-$id
cleanup_c() {
  local pids
  if [ -e "/run/netns/$C" ]; then
    pids=$(ip netns pids "$C" 2>/dev/null)
    # shellcheck disable=SC2086
    [ -z "$pids" ] || kill -9 $pids 2>/dev/null
    ip netns del "$C"
  fi
  cleanup
}
trap cleanup_c EXIT
begin
ip netns add "$C" || fail "cannot make a third host"
cable "$C" vc 10.0.3.2/24 10.0.3.1
attach vc 10.0.3.1/24
n=0
for end in "$A va" "$B vb" "$C vc"; do
  read -r ns port <<<"$end"
  n=$((n + 1))
  ip netns exec "$ns" sysctl -qw net.ipv6.conf.all.disable_ipv6=0 net.ipv6.conf.eth0.disable_ipv6=0 || skip "the kernel has no IPv6"
  ip -n "$ns" addr add "2001:db8:$n::2/64" dev eth0 nodad
  expect "interface address" ctl set interface ip address "host-$port" "2001:db8:$n::1/64"
done

cat >"$work/receive.py" <<'PY'
import socket, struct, sys
group, out = sys.argv[1], sys.argv[2]
eth0 = socket.if_nametoindex("eth0")
if ":" in group:
    s = socket.socket(socket.AF_INET6, socket.SOCK_DGRAM)
    s.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_JOIN_GROUP, socket.inet_pton(socket.AF_INET6, group) + struct.pack("@I", eth0))
else:
    s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    s.setsockopt(socket.IPPROTO_IP, socket.IP_ADD_MEMBERSHIP, struct.pack("4s4si", socket.inet_aton(group), bytes(4), eth0))
# A slow machine must not make the receiver lose what the router has delivered: SO_RCVBUFFORCE.
s.setsockopt(socket.SOL_SOCKET, 33, 16 << 20)
s.bind((group, 5001))
open(out, "w").write("0")
seen = set()
while True:
    data, _ = s.recvfrom(4000)
    seen.add(data[:8])
    open(out, "w").write(str(len(seen)))
PY
cat >"$work/send.py" <<'PY'
import socket, sys, time
group, count, size = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
eth0 = socket.if_nametoindex("eth0")
if ":" in group:
    s = socket.socket(socket.AF_INET6, socket.SOCK_DGRAM)
    s.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_MULTICAST_IF, eth0)
    s.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_MULTICAST_HOPS, 8)
    to = (group, 5001, 0, eth0)
else:
    s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    s.setsockopt(socket.IPPROTO_IP, socket.IP_MULTICAST_IF, bytes(8) + eth0.to_bytes(4, sys.byteorder))
    s.setsockopt(socket.IPPROTO_IP, socket.IP_MULTICAST_TTL, 8)
    to = (group, 5001)
for n in range(count):
    s.sendto(b"%08d" % n + bytes(size - 8), to)
    time.sleep(0.002)
PY

has() { [ "$(cat "$work/$1" 2>/dev/null)" = "$2" ]; }
rpf() { ctl show errors | awk -v node="$1" '$2 == node && /RPF check failed/ { n += $1 } END { print n + 0 }'; }
for family in '232.1.1.1 ip4 1400' 'ff3e::1234 ip6 1200'; do
  read -r group short size <<<"$family"
  expect "mroute" ctl ip mroute add "$group" via host-va Accept via host-vb Forward via host-vc Forward
  for ns in "$B" "$C"; do
    ip netns exec "$ns" python3 "$work/receive.py" "$group" "$work/$short-$ns" 2>>"$work/receive.log" &
    await 5 has "$short-$ns" 0 || fail "a receiver does not start: $(cat "$work/receive.log")"
  done
  in_a python3 "$work/send.py" "$group" 300 "$size" || fail "the sender fails"
  for ns in "$B" "$C"; do
    await 5 has "$short-$ns" 300 || fail "$ns got $(cat "$work/$short-$ns") of 300 packets to $group: $(ctl show errors; ctl show ip mfib)"
  done
  # The same group from the wrong side.
  in_b python3 "$work/send.py" "$group" 20 200 || fail "the wrong sender fails"
  wrong() { [ "$(rpf "$short-mfib-forward-rpf")" -eq 20 ]; }
  await 5 wrong || fail "not 20 RPF drops: $(ctl show errors)"
  has "$short-$C" 300 || fail "packets from the wrong side were forwarded"
  expect "mroute" ctl ip mroute del "$group" via host-vc Forward
  in_a python3 "$work/send.py" "$group" 330 100
  await 5 has "$short-$B" 330 || fail "$B does not get the group any more"
  has "$short-$C" 300 || fail "$C still gets the group"
done
# A datagram that is cut at the sender comes in pieces, to be put together by the receiver.
in_a python3 "$work/send.py" 232.1.1.1 340 4000
await 5 has "ip4-$B" 340 || fail "pieces are lost: $(cat "$work/ip4-$B")"
alive
await 10 no_buffers_used || fail "$(buffers_used) buffers are still in use"
pass "300 packets to two receivers, both families"
