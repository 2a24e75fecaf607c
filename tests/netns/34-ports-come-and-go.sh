#!/usr/bin/env bash
# Ports of every kind are made, flap and are deleted under traffic, again and again, while hosts behind other ports notice
# nothing; no descriptor, buffer, thread, interface number or memory is left behind. A day in which each port comes and goes
# once a minute:
#
#   ROUNDS=1440 LIMIT=7200 scripts/in-namespace.sh tests/netns/34-ports-come-and-go.sh
#
#   host a --- router --- host b               nothing may be lost here
#   host a --- tap | veth (af_packet) | veth (af_xdp) | net_tap (DPDK, where it is) --- router
#   a second router --- memif --- router, vhost-user
# NEEDS=dpdk
. "$(dirname "$0")/lib.sh"
need ip ping
[ -w /dev/net/tun ] || skip "there is no /dev/net/tun that this user may open"
: "${ROUNDS:=20}"
with_dpdk
begin cpu { workers 1 } "${dpdk[@]}"
ip netns exec "$A" sysctl -qw net.ipv6.conf.all.disable_ipv6=0 net.ipv6.conf.default.accept_dad=0
start_far
# It has the slave's end all the time, and comes back each time that there is a master.
expect "socket" far create memif socket id 1 filename "$work/run/memif.sock"
expect "memif" far create interface memif id 5 socket-id 1 slave
expect "address" far set interface ip address memif1/5 10.9.5.2/24
expect "state" far set interface state memif1/5 up
for end in "vp 2" "vx 3"; do
  read -r port n <<<"$end"
  ip -n "$R" link add name "$port" type veth peer name "to-$port" netns "$A" || fail "cannot make a veth pair"
  ip netns exec "$R" sysctl -qw "net.ipv6.conf.$port.disable_ipv6=1"
  ip -n "$R" link set "$port" up
  ip -n "$A" link set "to-$port" up
  ip -n "$A" addr add "10.9.$n.2/24" dev "to-$port"
done

ports=(tap100 host-vp xdp memif0/5 VirtualEthernet0/0/0)
cat >"$work/create" <<SCRIPT
create tap id 100 host-ns $A host-if-name to-tap host-ip4-addr 10.9.1.2/24
create host-interface name vp
create interface af_xdp host-if vx name xdp
create interface memif id 5 master
create vhost-user socket churn.sock server
SCRIPT
cat >"$work/delete" <<SCRIPT
delete tap tap100
delete host-interface name vp
delete interface af_xdp xdp
delete interface memif memif0/5
delete vhost-user VirtualEthernet0/0/0
SCRIPT
if [ ${#dpdk[@]} -gt 0 ]; then
  ports+=(dpdk)
  echo "dpdk attach net_tap6,iface=dchurn num-tx-queues 1 name dpdk" >>"$work/create"
  echo "dpdk detach dpdk" >>"$work/delete"
fi
# Numbers of networks are those of hosts' addresses above; nothing is behind vhost-user.
for at in "${!ports[@]}"; do
  echo "set interface ip address ${ports[at]} 10.9.$((at + 1 + (at > 2))).1/24" >>"$work/create"
  echo "set interface ip address ${ports[at]} 2001:db8:9:$((at + 1))::1/64" >>"$work/create"
  echo "set interface state ${ports[at]} up" >>"$work/create"
done
expect "route" far ip route add 10.0.1.0/24 via 10.9.5.1 memif1/5

# Traffic on all of them, whether they are there or not, and beside them.
for to in 10.9.1.1 10.9.2.1 10.9.3.1 10.9.5.2; do
  ip netns exec "$A" ping -i 0.001 -q "$to" >/dev/null 2>&1 &
  helpers+=($!)
done
if [ ${#dpdk[@]} -gt 0 ]; then
  ip netns exec "$R" ping -i 0.001 -q 10.9.7.1 >/dev/null 2>&1 &
  helpers+=($!)
fi
ip netns exec "$A" ping -q -i 0.01 -W 2 10.0.2.2 >"$work/beside" 2>&1 &
beside=$!

# received: whether all ports that have somebody behind them have received something since they were made.
received() {
  local port shown
  shown=$(ctl show interface)
  for port in "${ports[@]}"; do
    [ "$port" != VirtualEthernet0/0/0 ] || continue
    awk -v port="$port" '/^[^ ]/ { here = $1 == port } here && /rx packets/ && $NF > 0 { found = 1 } END { exit !found }' \
      <<<"$shown" || return 1
  done
}
# What the router holds while no port is there.
fds() { find "/proc/$router/fd" -mindepth 1 | wc -l; }
field() { awk -v name="$1:" '$1 == name { print $2 }' "/proc/$router/status"; }
same_fds() { [ "$(fds)" -eq "$fds" ]; }

# Memory in kB after the fifth round, and after each third of those that follow.
held=()
took=$SECONDS
for round in $(seq "$ROUNDS"); do
  expect "round $round" ctl exec "$work/create"
  if [ ${#dpdk[@]} -gt 0 ]; then
    ip -n "$R" addr add 10.9.7.2/24 dev dchurn && ip -n "$R" link set dchurn up || fail "round $round: the TAP of net_tap"
  fi
  await 10 received || fail "round $round: a port receives nothing: $(ctl show interface)"
  # Links go and come, at the router and behind it.
  for port in host-vp xdp memif0/5 tap100; do expect "down" ctl set interface state "$port" down; done
  for port in to-vp to-vx to-tap; do ip -n "$A" link set "$port" down; done
  for port in host-vp xdp memif0/5 tap100; do expect "up" ctl set interface state "$port" up; done
  for port in to-vp to-vx to-tap; do ip -n "$A" link set "$port" up; done
  [ $((round % 2)) -eq 0 ] || await 10 in_a ping -c 1 -W 1 10.9.2.1 || fail "round $round: no answer after links came back"
  expect "round $round" ctl exec "$work/delete"
  alive
  if [ "$round" -eq 5 ]; then
    await 10 no_buffers_used || fail "$(buffers_used) buffers are in use after 5 rounds"
    fds=$(fds) threads=$(field Threads)
  fi
  if [ "$round" -eq $((5 + ${#held[@]} * (ROUNDS - 5) / 3)) ]; then held+=("$(field RssAnon)"); fi
done
kill -INT "$beside"
wait "$beside"
await 10 no_buffers_used || fail "$(buffers_used) buffers are in use after all"
pings_answered "$work/beside" || fail "hosts beside it have noticed: $(tail -n 3 "$work/beside")"
await 10 same_fds || fail "$(fds) descriptors are open, $fds were after 5 rounds: $(ls -l "/proc/$router/fd")"
[ "$(field Threads)" -eq "$threads" ] || fail "$(field Threads) threads, $threads after 5 rounds"
highest=$(ctl show interface | awk '/^[^ ]/ && $2 + 0 > most { most = $2 } END { print most + 0 }')
[ "$highest" -le 2 ] || fail "an interface is left behind: $(ctl show interface)"
# What is lost in each round grows in every third of them; tables in huge pages grow once, by 2 MB at a time. The stats
# segment does not count: its directories are kept for five seconds for clients that read them.
least=$((held[1] - held[0]))
for part in 2 3; do
  grown=$((held[part] - held[part - 1]))
  [ "$grown" -ge "$least" ] || least=$grown
done
[ "$least" -le 1024 ] || fail "the router grows: ${held[*]} kB after the fifth round and after each third of those that follow"
pass "$ROUNDS rounds of ${#ports[@]} ports, $((SECONDS - took)) s; $(grep -o '[0-9]* packets transmitted' "$work/beside") beside them, $((held[3] - held[0])) kB of memory more$without"
