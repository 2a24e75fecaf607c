#!/usr/bin/env bash
# What a setting of the host interfaces costs or gains: latency, TCP, UDP and its losses, on this machine.
#
#   scripts/in-namespace.sh tests/netns/measure.sh [WORDS of create host-interface]
#   DRIVER=af_xdp scripts/in-namespace.sh tests/netns/measure.sh [WORDS of create interface af_xdp]
#   ROUNDS=3 WORKERS=1 RATE=200M TIME=3 WINDOW=4M scripts/in-namespace.sh tests/netns/measure.sh v2
#
# One line for each round. Nothing is judged: figures are for docs, and for comparing two settings run in turn.
. "$(dirname "$0")/lib.sh"
need iperf3 ping python3
words=$*
: "${ROUNDS:=3}" "${WORKERS:=1}" "${RATE:=200M}" "${TIME:=3}"
# WINDOW: the receiving socket's buffer, up to net.core.rmem_max.
udp=(-u -b "$RATE" ${WINDOW:+-w "$WINDOW"})
# The same names for both drivers, which the counters below ask for.
if [ "${DRIVER:-af_packet}" = af_xdp ]; then
  attach() {
    expect "create interface af_xdp" ctl create interface af_xdp host-if "$1" name "host-$1" "${@:3}"
    expect "interface state" ctl set interface state "host-$1" up
    expect "interface address" ctl set interface ip address "host-$1" "$2"
  }
fi
hosts
start_router cpu { workers "$WORKERS" }
attach va 10.0.1.1/24 "$@"
attach vb 10.0.2.1/24 "$@"
await 5 in_a ping -c 1 -W 1 10.0.2.2 || fail "no answer from host b"
in_b iperf3 -s -D -I "$work/iperf.pid" >/dev/null || fail "iperf3 server"
await 5 listens "$B" 5201 || fail "iperf3 does not listen at host b"

# pings INTERVAL COUNT: least/average/most round-trip time in ms.
pings() {
  in_a ping -q -i "$1" -c "$2" -W 2 10.0.2.2 | sed -n 's|^rtt [^=]*= \([^/]*\)/\([^/]*\)/\([^/]*\)/.*|\1/\2/\3|p'
}
# iperf WORDS: what the receiver got, as JSON would say it.
iperf() {
  # shellcheck disable=SC2086
  in_a iperf3 -c 10.0.2.2 -t "$TIME" -J "$@" >"$work/iperf.json" 2>&1 || fail "iperf3 $*: $(head -c 400 "$work/iperf.json")"
  python3 - "$work/iperf.json" <<'PYTHON'
import json, sys
end = json.load(open(sys.argv[1]))["end"]
if s := end.get("sum"):
    print(f'{s["bits_per_second"] / 1e6:.0f} Mbit/s lost {s["lost_packets"]}/{s["packets"]}', end="")
else:
    print(f'{end["sum_received"]["bits_per_second"] / 1e6:.0f} Mbit/s', end="")
PYTHON
}
# Where packets were lost, as far as anybody counted: the router's rings, its transmit queues, all other reasons of
# the router, the receiving programs' sockets.
losses() {
  local what sum=()
  for what in rx-miss tx-error drops; do
    sum+=("$what=$(($(counter host-va "$what") + $(counter host-vb "$what")))")
  done
  for ns in "$A" "$B"; do
    sum+=("socket=$(ip netns exec "$ns" awk '/^Udp:/ && $2 ~ /[0-9]/ { print $6 }' /proc/net/snmp)")
  done
  echo "${sum[*]}"
}
for round in $(seq "$ROUNDS"); do
  echo "${DRIVER:-af_packet} ${words:-default} #$round: ping every 0.2 s $(pings 0.2 25) ms, every 1 ms $(pings 0.001 1000) ms," \
    "TCP $(iperf), back $(iperf -R), UDP $(iperf "${udp[@]}"), back $(iperf "${udp[@]}" -R); in all: $(losses)"
done
alive
pass
