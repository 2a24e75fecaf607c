#!/usr/bin/env bash
# What the router takes of a processor at each load, with eight ports up, and how late the first packet after a quiet
# second is: docs/power.md says how to read it. Nothing is judged, figures are for docs.
#
#   scripts/in-namespace.sh scripts/power.sh
#   RATES="0 1000" EACH=5 WORKERS=1 MODE=adaptive scripts/in-namespace.sh scripts/power.sh
#
#   generator (a router of its own) === memif0/1   router   memif0/2 === the same generator
#                        host a --- veth | host-va          host-vb | veth --- host b, and four ports without traffic
. "$(dirname "$0")/../tests/netns/lib.sh"
need ip ping python3
: "${RATES:=0 1000 10000 100000 1000000}" "${EACH:=5}" "${WORKERS:=1}" "${MODE:=adaptive}" "${PINGS:=15}"
hosts
start_router cpu { workers "$WORKERS" }
attach va 10.0.1.1/24
attach vb 10.0.2.1/24
for n in 1 2 3 4; do
  ip -n "$R" link add "q$n" type veth peer name "p$n" || fail "cannot make a veth pair"
  ip netns exec "$R" sysctl -qw "net.ipv6.conf.q$n.disable_ipv6=1" "net.ipv6.conf.p$n.disable_ipv6=1"
  ip -n "$R" link set "p$n" up
  ip -n "$R" link set "q$n" up
  attach "q$n" "10.0.1$n.1/24"
done
for n in 1 2; do
  expect "memif" ctl create interface memif id $n master ring-size 2048 hw-addr 02:fe:00:00:01:0$n
  expect "address" ctl set interface ip address memif0/$n "10.0.2$n.1/24"
  expect "state" ctl set interface state memif0/$n up
done
expect "neighbour" ctl set ip neighbor memif0/2 10.0.22.2 02:00:00:00:00:02 static
if [ "$MODE" != adaptive ]; then
  for port in host-va host-vb host-q1 host-q2 host-q3 host-q4 memif0/1 memif0/2; do
    expect "mode" ctl set interface rx-mode "$port" "$MODE"
  done
fi
"$SHOAL" unix { nodaemon nosyslog runtime-dir "$work/peer" } configuration { directory "$work/peer-lib" } \
  >"$work/peer.log" 2>&1 &
helpers+=($!)
peer() { timeout 20 "$SHOALCTL" -s "$work/peer/cli.sock" "$@"; }
await 10 peer show version || fail "the generator does not answer: $(cat "$work/peer.log")"
expect "socket" peer create memif socket id 1 filename "$work/run/memif.sock"
for n in 1 2; do
  expect "memif" peer create interface memif id $n socket-id 1 slave ring-size 2048
  expect "state" peer set interface state memif1/$n up
done
expect "pg" peer create packet-generator interface pg0
up() { says 'flags.* connected' ctl show memif "$1"; }
await 20 up memif0/1 && await 20 up memif0/2 || fail "the generator does not connect"
await 5 in_a ping -c 1 -W 1 10.0.2.2 || fail "no answer from host b"

# Nanoseconds that all threads of the router have run.
ran() { cat /proc/"$router"/task/*/schedstat | awk '{ n += $1 } END { printf "%.0f", n }'; }
sent() { counter "$1" 'tx packets'; }
# rtts INTERVAL COUNT: round trips from host a to host b in microseconds, sorted: least, median, most.
rtts() {
  in_a ping -i "$1" -c "$2" -W 2 10.0.2.2 | sed -n 's/.*time=\([0-9.]*\) ms/\1/p' | tail -n +2 | sort -n \
    | awk '{ v[NR] = $1 * 1000 } END { printf "%d %d %d", v[1], v[int((NR + 1) / 2)], v[NR] }'
}

echo "$MODE, $WORKERS worker(s), $(nproc) processors with a load of $(cut -d' ' -f1 /proc/loadavg) before, $(grep -m1 'model name' /proc/cpuinfo | cut -d: -f2 | xargs)"
echo
echo '| packets a second | processor | forwarded | round trip, µs: least, median, most |'
echo '|---|---|---|---|'
for rate in $RATES; do
  if [ "$rate" -gt 0 ]; then
    expect "stream" peer packet-generator new "{ name s$rate limit $((rate * (EACH + 30))) rate $rate interface pg0 node memif1/1-tx size 64-64 data { IP4: 02:00:00:00:00:09 -> 02:fe:00:00:01:01 UDP: 10.0.21.2 -> 10.0.22.2 UDP: 1 -> 2 incrementing 14 } }"
    expect "enable" peer packet-generator enable-stream "s$rate"
  fi
  sleep 2
  before=$(ran) count=$(sent memif0/2) begun=$(date +%s.%N)
  sleep "$EACH"
  used=$(($(ran) - before)) count=$(($(sent memif0/2) - count)) ended=$(date +%s.%N)
  if [ "$rate" -gt 0 ]; then trip=$(rtts 0.01 150); else trip="$(rtts 1.1 "$PINGS") (each after a second of rest)"; fi
  awk -v r="$rate" -v u="$used" -v n="$count" -v a="$begun" -v e="$ended" -v t="$trip" \
    'BEGIN { d = e - a; printf "| %d | %.2f %% | %d/s | %s |\n", r, u / d / 1e7, n / d, t }'
  [ "$rate" -eq 0 ] || peer packet-generator delete "s$rate" >/dev/null
done
alive
pass
