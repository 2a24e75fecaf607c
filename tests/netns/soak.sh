#!/usr/bin/env bash
# A long run, by hand: MINUTES (10) of mixed traffic while 10,000 routes come and go and queues move between two
# workers. Reports loss and the balance of buffers: scripts/in-namespace.sh tests/netns/soak.sh
. "$(dirname "$0")/lib.sh"
need ping iperf3 python3
minutes=${MINUTES:-10}
seconds=$((minutes * 60))
PATIENCE=$((seconds + 60))
begin cpu { workers 2 }
in_b iperf3 -s -p 5201 -D -I "$work/iperf1.pid" >/dev/null
in_b iperf3 -s -p 5202 -D -I "$work/iperf2.pid" >/dev/null
await 5 listens "$B" 5202 || fail "iperf3 does not listen at host b"

for n in $(seq 0 9999); do
  echo "ip route add 172.$((16 + n / 65536)).$((n / 256)).$((n % 256))/32 via 10.0.2.2"
done >"$work/add"
sed 's/^ip route add/ip route del/' "$work/add" >"$work/del"

ctl clear errors >/dev/null
ctl clear interfaces >/dev/null
end=$((SECONDS + seconds))
# Groups of a fixed number: a ping that is cut off by time counts what is still under way as lost.
while [ "$SECONDS" -lt "$end" ]; do in_a ping -q -i 0.01 -c 500 -W 2 10.0.2.2; done >"$work/ping" 2>&1 &
ping=$!
in_a iperf3 -c 10.0.2.2 -p 5201 -t "$seconds" -b 200M -J >"$work/tcp.json" 2>&1 &
tcp=$!
in_a iperf3 -c 10.0.2.2 -p 5202 -t "$seconds" -u -b 5M -l 1200 -J >"$work/udp.json" 2>&1 &
udp=$!
rounds=0 moves=0
while kill -0 "$ping" 2>/dev/null; do
  CTL_TIMEOUT=120 expect "add routes" ctl exec "$work/add"
  for worker in 0 1 0 1; do
    for interface in host-va host-vb; do
      expect "move" ctl set interface rx-placement "$interface" queue 0 worker "$worker"
      moves=$((moves + 1))
    done
  done
  CTL_TIMEOUT=120 expect "delete routes" ctl exec "$work/del"
  rounds=$((rounds + 1))
  alive
done
wait "$ping" "$tcp" "$udp"
echo "$minutes minutes, $rounds rounds of 10,000 routes added and removed, $moves moves of queues"
read -r sent received < <(awk '/packets transmitted/ { s += $1; r += $4 } END { print s + 0, r + 0 }' "$work/ping")
echo "ping: $((sent - received)) of $sent lost"
python3 - "$work/tcp.json" "$work/udp.json" <<'PY'
import json, sys
tcp, udp = (json.load(open(f))["end"] for f in sys.argv[1:])
print("TCP: %.0f MB received, %d retransmissions" % (tcp["sum_received"]["bytes"] / 1e6, tcp["sum_sent"]["retransmits"]))
print("UDP: %d of %d datagrams lost" % (udp["sum"]["lost_packets"], udp["sum"]["packets"]))
PY
# Where they were lost: the kernel counts what a socket's buffer had no room for, and what no processor took.
in_b awk '/^Udp: [0-9]/ { print "host b: " $6 " datagrams found the socket\047s buffer full" }' /proc/net/snmp
echo "host b: $(in_b cat /sys/class/net/eth0/statistics/rx_packets) packets received in all," \
  "$(in_b cat /sys/class/net/eth0/statistics/rx_dropped) dropped by its interface"
backlog=0
while read -r _ dropped _; do backlog=$((backlog + 16#$dropped)); done </proc/net/softnet_stat
echo "the system: $backlog packets dropped from full backlogs since it booted"
ctl show errors
ctl show interface
await 10 no_buffers_used || fail "$(buffers_used) buffers are still in use"
[ "$sent" -eq "$received" ] || fail "$((sent - received)) of $sent pings were lost"
pass "buffers balanced"
