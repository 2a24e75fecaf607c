#!/usr/bin/env bash
# BFD with BIRD as the other end, both families, at 200 ms: sessions come up, stay up, and are down soon after BIRD stops; the route by
# host a gives way to the one by host b meanwhile.
# ALONE=a session goes down if the router gets no processor
. "$(dirname "$0")/lib.sh"
need bird birdc python3
begin
ip netns exec "$A" sysctl -qw net.ipv6.conf.all.disable_ipv6=0 net.ipv6.conf.eth0.disable_ipv6=0 || skip "the kernel has no IPv6"
ip -n "$A" addr add 2001:db8:1::2/64 dev eth0 nodad
expect "address" ctl set interface ip address host-va 2001:db8:1::1/64
for host in "$A" "$B"; do ip -n "$host" addr add 198.51.100.1/32 dev lo; done
expect "route" ctl ip route add 198.51.100.0/24 via 10.0.1.2 host-va preference 0
expect "route" ctl ip route add 198.51.100.0/24 via 10.0.2.2 host-vb preference 1

cat >"$work/bird.conf" <<CONF
router id 10.0.1.2;
protocol device { }
protocol bfd {
  accept direct;
  interface "eth0" { min rx interval 200 ms; min tx interval 200 ms; idle tx interval 400 ms; multiplier 5; };
  neighbor 10.0.1.1 dev "eth0" local 10.0.1.2;
  neighbor 2001:db8:1::1 dev "eth0" local 2001:db8:1::2;
}
CONF
start_bird() {
  ip netns exec "$A" bird -f -c "$work/bird.conf" -s "$work/bird.ctl" -P "$work/bird.pid" >"$work/bird.log" 2>&1 &
  disown
}
start_bird
times='desired-min-tx 200000 required-min-rx 200000 detect-mult 5'
# shellcheck disable=SC2086
expect "session" ctl bfd udp session add interface host-va local-addr 10.0.1.1 peer-addr 10.0.1.2 $times
# shellcheck disable=SC2086
expect "session" ctl bfd udp session add interface host-va local-addr 2001:db8:1::1 peer-addr 2001:db8:1::2 $times
states() {
  ctl --json show bfd sessions | python3 -c 'import json, sys; print(*sorted(s["state"] for s in json.load(sys.stdin)["sessions"]))'
}
up() { [ "$(states)" = 'Up Up' ]; }
down() { [ "$(states)" = 'Down Down' ]; }
await 20 up || fail "not up: $(ctl show bfd sessions); $(birdc -s "$work/bird.ctl" show bfd sessions)"
[ "$(birdc -s "$work/bird.ctl" show bfd sessions | grep -c ' Up ')" = 2 ] ||
  fail "BIRD says $(birdc -s "$work/bird.ctl" show bfd sessions)"
before=$(grep -c 'bfd: .* is Down' "$work/shoal.log")
sleep 3
[ "$(grep -c 'bfd: .* is Down' "$work/shoal.log")" = "$before" ] || fail "a session went down by itself: $(tail -n 5 "$work/shoal.log")"
# Where packets go now: to host a.
packets() { ip -n "$1" -s -j link show dev eth0 | python3 -c 'import json, sys; print(json.load(sys.stdin)[0]["stats64"]["rx"]["packets"])'; }
answered() { ctl ping 198.51.100.1 repeat 2 interval 0.2; }
expect "ping" answered
ip -n "$A" addr del 198.51.100.1/32 dev lo
answered >/dev/null && fail "host b is asked while the session of host a is up"
kill -9 "$(cat "$work/bird.pid")"
await 4 down || fail "still up without BIRD: $(ctl show bfd sessions)"
expect "ping by host b" answered
# It comes back, and so does the route.
ip -n "$A" addr add 198.51.100.1/32 dev lo
ip -n "$B" addr del 198.51.100.1/32 dev lo
start_bird
await 20 up || fail "not up again: $(ctl show bfd sessions)"
expect "ping by host a" answered
ctl bfd udp session set-flags admin down interface host-va local-addr 10.0.1.1 peer-addr 10.0.1.2
told() { birdc -s "$work/bird.ctl" show bfd sessions | grep '10.0.1.1' | grep -q Down; }
await 5 told || fail "BIRD does not hear that the session is switched off: $(birdc -s "$work/bird.ctl" show bfd sessions)"
alive
pass "BIRD"
