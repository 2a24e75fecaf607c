#!/usr/bin/env bash
# A routing daemon that flaps a full table: BIRD beside the router announces ROUTES4 and ROUTES6 routes to the kernel and takes them away again,
# for MINUTES, while two hosts ping each other. Each cycle prints how long the router's table took to be full and empty, the router's memory
# and how often announcements were lost. An audit begins whenever routes go, and one at last tells what differs from the kernel's table.
#
#   scripts/in-namespace.sh tests/netns/measure-flap.sh
#   MINUTES=60 ROUTES4=1000000 ROUTES6=200000 WORKERS=1 scripts/in-namespace.sh tests/netns/measure-flap.sh
#
# It fails if a table does not become full or empty, if the audit finds a difference, or if pings are lost. Memory is shown and not judged.
: "${MINUTES:=10}" "${ROUTES4:=1000000}" "${ROUTES6:=200000}" "${WORKERS:=0}" "${CTL_TIMEOUT:=300}"
. "$(dirname "$0")/lib.sh"
need python3 ping bird birdc
PATIENCE=$((MINUTES * 60 + 900))
begin linux-cp { lcp-sync }
for _ in $(seq "$WORKERS"); do expect "worker" ctl create worker; done
with_ip6 "$A"
beside
ip netns exec "$L" sysctl -qw net.ipv6.conf.all.disable_ipv6=0 net.ipv6.conf.default.disable_ipv6=0 net.ipv6.route.max_size=2147483647 ||
  skip "the kernel has no IPv6"
for port in va:e0 vb:e1; do
  expect "lcp create" ctl lcp create "host-${port%:*}" host-if "${port#*:}" netns "$L"
done
expect "interface address" ctl set interface ip address host-va 2001:db8:1::1/64
await 15 usable "$L" e0 e1 || fail "images: $(ip -n "$L" -6 addr)"
python3 - "$ROUTES4" "$ROUTES6" "$work" <<'PYTHON'
import sys
routes4, routes6, work = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3]
with open(f"{work}/routes4.conf", "w") as out:
    for n in range(routes4):
        print(f"route {20 + (n >> 20)}.{n >> 12 & 255}.{n >> 4 & 255}.{(n & 15) << 4}/28 via 10.0.1.2;", file=out)
with open(f"{work}/routes6.conf", "w") as out:
    for n in range(routes6):
        print(f"route 2600:{n >> 16:x}:{n & 0xffff:x}::/48 via 2001:db8:1::2;", file=out)
PYTHON
cat >"$work/flap.conf" <<CONF
router id 10.0.1.1;
protocol device { scan time 10; }
protocol kernel { scan time 600; ipv4 { export all; }; }
protocol kernel { scan time 600; ipv6 { export all; }; }
protocol static feed4 {
  disabled; ipv4;
  include "$work/routes4.conf";
}
protocol static feed6 {
  disabled; ipv6;
  include "$work/routes6.conf";
}
CONF
start_bird "$L" flap
await 60 ask_bird flap show status || fail "bird: $(cat "$work/flap.log")"
netlink() { ctl show lcp netlink | sed -n "$1"; }
# What the kernel has of its own is there without the daemon.
least=$(followed)
most=$((least + ROUTES4 + ROUTES6))
is_full() { [ "$(followed)" -eq "$most" ]; }
is_empty() { [ "$(followed)" -eq "$least" ]; }
# BIRD answers when it is done with what it has begun.
BIRD_TIMEOUT=300
feeds() { ask_bird flap "$1" feed4 && ask_bird flap "$1" feed6; }
memory() { awk '/^VmRSS/ { print int($2 / 1024) }' "/proc/$router/status"; }
in_a "$patient_ping" -q -c $((MINUTES * 60 * 20)) -i 0.05 -W 10 10.0.2.2 >"$work/ping" 2>&1 &
pings=$!
end=$((SECONDS + MINUTES * 60)) cycle=0
while [ "$SECONDS" -lt "$end" ]; do
  cycle=$((cycle + 1)) begun=$SECONDS
  feeds enable >"$work/answer" || fail "birdc: $(cat "$work/answer")"
  await 300 is_full || fail "the table is not full: $(ctl show lcp netlink)"
  full=$((SECONDS - begun)) with=$(memory) begun=$SECONDS
  feeds disable >"$work/answer" || fail "birdc: $(cat "$work/answer")"
  # The kernel lists routes while they go.
  expect "audit" ctl lcp audit
  await 300 is_empty || fail "the table is not empty: $(ctl show lcp netlink)"
  echo "cycle $cycle: full after $full s with $with MB, empty after $((SECONDS - begun)) s with $(memory) MB, announcements lost $(announcements_lost) times"
done
feeds enable >"$work/answer" && await 300 is_full || fail "the table is not full: $(ctl show lcp netlink)"
audits() { netlink 's/.*listings:.* audit \([0-9]*\).*/\1/p'; }
before=$(audits)
expect "audit" ctl lcp audit
audited() { [ "$(audits)" -gt "$before" ] && says 'last: audit.* entries in ' ctl show lcp netlink; }
await 120 audited || fail "no audit: $(ctl show lcp netlink)"
# After a loss the listing finds what was lost; an audit must find nothing.
differences=$(netlink 's/.*differences found after losses and by audits: //p')
drift=$(ctl show lcp drift)
if [ "$(announcements_lost)" -gt 0 ]; then drift=$(grep 'audit: ' <<<"$drift") && fail "differences: $drift"
else [ "$differences" -eq 0 ] || fail "$differences differences: $drift"; fi
wait "$pings" || fail "pings: $(cat "$work/ping")"
alive
await 10 no_buffers_used || fail "$(buffers_used) buffers are still in use"
pass "$cycle cycles; $(grep 'packets transmitted' "$work/ping")"
