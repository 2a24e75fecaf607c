#!/usr/bin/env bash
# Workers come and go under TCP and a thousand pings a second of both families, while packets of the two single-queue
# devices are spread over all of them: nothing is lost, nothing is left behind, and no flow changes its order so much
# that TCP could not move on.
. "$(dirname "$0")/lib.sh"
need ping iperf3 python3
[ "$(nproc)" -ge 2 ] || skip "needs two cores"
begin cpu { workers 2 }
# IPv6 on both cables, beside the IPv4 that is there.
for host in "$A" "$B"; do
  ip netns exec "$host" sysctl -qw net.ipv6.conf.all.disable_ipv6=0 net.ipv6.conf.eth0.accept_dad=0 || fail "IPv6 in $host"
done
ip -n "$A" addr add 2001:db8:1::2/64 dev eth0 nodad && ip -n "$A" route add default via 2001:db8:1::1 || fail "host a's IPv6"
ip -n "$B" addr add 2001:db8:2::2/64 dev eth0 nodad && ip -n "$B" route add default via 2001:db8:2::1 || fail "host b's IPv6"
expect "address" ctl set interface ip address host-va 2001:db8:1::1/64
expect "address" ctl set interface ip address host-vb 2001:db8:2::1/64
expect "spread" ctl set interface handoff host-va auto
expect "spread" ctl set interface handoff host-vb auto symmetrical
await 10 in_a ping -6 -c 1 -W 1 2001:db8:2::2 || fail "no way over IPv6"
says '^host-va: workers 0,1 (auto)' ctl show handoff queues || fail "host-va is not spread: $(ctl show handoff queues)"

in_b iperf3 -s -D -I "$work/iperf.pid" >/dev/null || fail "iperf3 server"
await 5 listens "$B" 5201 || fail "iperf3 does not listen at host b"
# Well below what the machine can do: a kernel that has no room for a packet is not what is tested here.
in_a iperf3 -c 10.0.2.2 -P 4 -b 5M -t 12 -J >"$work/iperf.json" 2>&1 &
iperf=$!
# Without a processor of its own it takes longer than the ten seconds.
PATIENCE=100 in_a "$patient_ping" -q -i 0.001 -c 10000 10.0.2.2 >"$work/ping" 2>&1 &
ping4=$!
PATIENCE=100 in_b "$patient_ping" -6 -q -i 0.001 -c 10000 2001:db8:1::2 >"$work/ping6" 2>&1 &
ping6=$!
changes=0
imbalance=
while kill -0 "$ping4" 2>/dev/null || kill -0 "$ping6" 2>/dev/null; do
  expect "start a third worker" ctl create worker
  expect "start a fourth worker" ctl create worker
  says '^host-va: workers 0,1,2,3 (auto)' ctl show handoff queues || fail "new workers take nothing: $(ctl show handoff queues)"
  sleep 0.2
  # It is of the last second: where nothing passes any more there is none.
  if says '^Imbalance of workers' ctl show workers; then imbalance=shown; fi
  # One that the queues are on goes too: they move.
  expect "end a worker" ctl delete worker 0
  expect "end a worker" ctl delete worker 3
  expect "start one again" ctl create worker
  expect "end a worker" ctl delete worker 2
  changes=$((changes + 6))
done
wait "$ping4"; wait "$ping6"; wait "$iperf" || fail "iperf3: $(head -c 400 "$work/iperf.json")"
for family in ping ping6; do
  grep -q ' 0% packet loss' "$work/$family" || fail "$family after $changes changes: $(tail -n 3 "$work/$family")"
done
for why in 'handoff ring full' 'interface or node was deleted'; do
  ! says "$why" ctl show errors || fail "packets were lost: $(ctl show errors | grep "$why")"
done
rate=$(python3 -c 'import json, sys; print(int(json.load(open(sys.argv[1]))["end"]["sum_received"]["bits_per_second"] / 1e6))' "$work/iperf.json")
[ "$rate" -ge 10 ] || fail "TCP moved no more than $rate Mbit/s of 20"
[ "$changes" -ge 12 ] || fail "only $changes changes"
[ "$imbalance" = shown ] || fail "show workers never said how unequal the workers are: $(ctl show workers)"
alive
await 10 no_buffers_used || fail "$(buffers_used) buffers are still in use"
pass "$changes changes, TCP $rate Mbit/s"
