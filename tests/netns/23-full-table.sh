#!/usr/bin/env bash
# A table like the Internet's, of both families, is loaded and withdrawn again while two hosts talk through the router:
# 200 next hops, a fifth of the routes recursive. A ping a millisecond and TCP go along a route that is replaced again
# and again meanwhile. No ping may be lost, the figures are printed.
#
#   ROUTES4=1000000 ROUTES6=230000 LIMIT=600 scripts/in-namespace.sh tests/netns/23-full-table.sh
: "${ROUTES4:=200000}" "${ROUTES6:=46000}"
# ALONE=how long pings take is limited
. "$(dirname "$0")/lib.sh"
need ping iperf3 python3
begin cpu { workers 1 }
for end in "$A va 1" "$B vb 2"; do
  read -r ns port n <<<"$end"
  ip netns exec "$ns" sysctl -qw net.ipv6.conf.all.disable_ipv6=0 net.ipv6.conf.eth0.disable_ipv6=0 || skip "the kernel has no IPv6"
  expect "interface address" ctl set interface ip address "host-$port" "2001:db8:$n::1/64"
  ip -n "$ns" addr add "2001:db8:$n::2/64" dev eth0 nodad
  ip -n "$ns" route replace default via "2001:db8:$n::1"
done
# What the two hosts talk by: a prefix of the table.
ip -n "$B" addr add 198.18.0.1/32 dev lo && ip -n "$B" addr add 2001:db8:18::1/128 dev lo
expect route ctl ip route add 198.18.0.0/24 via 10.0.2.2
expect route ctl ip route add 2001:db8:18::/48 via 2001:db8:2::2
await 5 in_a ping -c 1 -W 1 198.18.0.1 || fail "no answer from host b's IPv4 address"
await 5 in_a ping -6 -c 1 -W 1 2001:db8:18::1 || fail "no answer from host b's IPv6 address"

# Lengths as in the Internet's tables, roughly; the next hops are neighbours that are never asked for.
python3 - "$ROUTES4" "$ROUTES6" "$work" <<'PYTHON' || fail "no table"
import random, sys
n4, n6, work = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3]
rng = random.Random(23)
four, six = set(), set()
while len(four) < n4:
    (l,) = rng.choices((16, 18, 19, 20, 21, 22, 23, 24), (2, 3, 3, 5, 5, 12, 11, 60))
    a = rng.randrange(20 << 24, 192 << 24)
    if a >> 24 != 127:
        four.add((a >> (32 - l) << (32 - l), l))
while len(six) < n6:
    (l,) = rng.choices((32, 36, 40, 44, 46, 48), (20, 8, 12, 12, 6, 42))
    six.add(((0x2a << 40 | rng.getrandbits(36)) >> (48 - l) << (48 - l), l))
lines = []
for n in range(200):
    lines.append(f"10.255.0.{n}/32 via 10.0.2.{n + 10}")
    lines.append(f"fd00:ffff::{n:x}/128 via 2001:db8:2::{n + 16:x}")
def via(direct, recursive):
    n = rng.randrange(200)
    return (recursive if rng.random() < 0.2 else direct)(n)
for a, l in sorted(four, key=lambda _: rng.random()):
    hop = via(lambda n: f"10.0.2.{n + 10}", lambda n: f"10.255.0.{n}")
    lines.append(f"{a >> 24}.{a >> 16 & 255}.{a >> 8 & 255}.{a & 255}/{l} via {hop}")
for a, l in sorted(six, key=lambda _: rng.random()):
    hop = via(lambda n: f"2001:db8:2::{n + 16:x}", lambda n: f"fd00:ffff::{n:x}")
    lines.append(f"{a >> 32:x}:{a >> 16 & 0xffff:x}:{a & 0xffff:x}::/{l} via {hop}")
with open(f"{work}/add.cli", "w") as add, open(f"{work}/del.cli", "w") as gone:
    for line in lines:
        print("ip route add", line, file=add)
        print("ip route del", line.split()[0], file=gone)
PYTHON
routes() { ctl --json show fib capacity | python3 -c 'import json, sys; print(sum(r["used"] for r in json.load(sys.stdin)["limits"] if r["what"].endswith(" routes")))'; }
before=$(routes)

# Traffic, both families, until told to end.
in_b iperf3 -s -D -I "$work/iperf.pid" >/dev/null || fail "iperf3 server"
await 5 listens "$B" 5201 || fail "iperf3 does not listen at host b"
PATIENCE=600 in_a ping -q -i 0.001 -W 2 198.18.0.1 >"$work/ping4" 2>&1 &
talk=($!)
PATIENCE=600 in_a ping -6 -q -i 0.005 -W 2 2001:db8:18::1 >"$work/ping6" 2>&1 &
talk+=($!)
PATIENCE=600 in_a iperf3 -c 198.18.0.1 -t 500 -b 200M >"$work/iperf" 2>&1 &
talk+=($!)
talking() { [ "$(running "$A" ping | wc -l)" -eq 2 ] && [ -n "$(running "$A" iperf3)" ]; }
await 10 talking || fail "two pings and iperf3 do not run: $(running "$A" ping iperf3 | wc -l) processes do"
sleep 1

now() { date +%s%N; }
say=()
# load FILE WHAT: runs a file of commands; a route that is in use changes meanwhile.
load() {
  local from pid n=0
  from=$(now)
  CTL_TIMEOUT=400 ctl exec "$work/$1" >"$work/out" 2>&1 &
  pid=$!
  while kill -0 "$pid" 2>/dev/null; do
    n=$((n + 1))
    ctl ip route add 198.18.0.0/16 via 10.0.2.2 >/dev/null && ctl ip route del 198.18.0.0/16 >/dev/null \
      && ctl ip route add 2001:db8:18::/64 via 2001:db8:2::2 >/dev/null && ctl ip route del 2001:db8:18::/64 >/dev/null \
      || fail "a change beside $1 was refused"
    sleep 0.05
  done
  wait "$pid" || fail "$1: $(tail -n 5 "$work/out")"
  local ms=$((($(now) - from) / 1000000))
  say+=("$2 in $ms ms ($(($(wc -l <"$work/$1") * 1000 / (ms + 1)))/s, $n changes beside)")
}
load add.cli "$ROUTES4 + $ROUTES6 routes"
count=$(routes)
[ "$count" -eq $((before + ROUTES4 + ROUTES6 + 400)) ] || fail "$count routes, there were $before"
ctl show fib capacity >"$work/capacity"
load del.cli "withdrawn"
all_gone() { [ "$(routes)" -eq "$before" ]; }
await 5 all_gone || fail "$(routes) routes are left, there were $before"
out=$(CTL_TIMEOUT=60 ctl show fib check)
grep -q 'all is well' <<<"$out" || fail "$out"

interrupt "$A" ping iperf3
wait "${talk[@]}"
for file in ping4 ping6; do
  # Sent, received; the last one may be under way when the program ends.
  read -r sent received <<<"$(awk '/packets transmitted/ { print $1, $4 }' "$work/$file")"
  [ -n "$received" ] && [ "$sent" -gt 100 ] || fail "$file said: $(cat "$work/$file")"
  [ $((sent - received)) -le 1 ] || fail "$((sent - received)) of $sent pings lost: $(cat "$work/$file") ${say[*]}"
  say+=("$file: $sent sent, $(sed -n 's|^rtt min/avg/max/mdev = \([^ ]*\).*|\1|p' "$work/$file") ms")
done
rate=$(awk '/sender/ { print $7, $8 }' "$work/iperf" | tail -n 1)
alive
await 10 no_buffers_used || fail "$(buffers_used) buffers are still in use"
pass "$(IFS=';'; echo "${say[*]}"); iperf3 $rate; $(tail -n 1 "$work/capacity"); resident $(awk '/VmHWM/ { print $2 }' "/proc/$router/status") kB at most"
