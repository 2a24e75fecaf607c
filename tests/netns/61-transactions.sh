#!/usr/bin/env bash
# A commit that cuts the path goes back by itself; a router that is killed before a commit is confirmed comes up with the old
# configuration; a live change loses no packet.
# LIMIT=240
. "$(dirname "$0")/lib.sh"
need ping
begin cpu { workers 1 }
pings() { in_a ping -c 1 -W 1 10.0.2.2; }
not() { ! "$@"; }
logged() { grep -q "$1" "$work/shoal.log"; }
await 10 pings || fail "host b does not answer through the router"
expect "write" ctl write
ctl show running-config >"$work/before"

# A candidate changes nothing; clients that come for one command share that of their user.
expect "configure" ctl configure set interface mtu 1400 host-vb
says '^+set interface mtu 1400 host-vb$' ctl compare || fail "compare: $(ctl compare)"
same=$(diff -u "$work/before" <(ctl show running-config)) || fail "the candidate changed the router: $same"

# Live changes under a stream of echo requests: none is lost.
ip netns exec "$A" ping -i 0.01 -c 1500 10.0.2.2 >"$work/ping" 2>&1 &
stream=$!
helpers+=("$stream")
expect "commit" ctl commit comment "smaller packets"
for n in 1 2 3; do
  for line in "set interface tag host-va round$n" "ip route add 198.51.$n.0/24 via 10.0.2.2 host-vb" \
    "set interface mtu $((1400 + n)) host-vb" "ip route add 203.0.113.0/24 via 10.0.2.$((n + 1)) host-vb"; do
    expect "$line" ctl configure "$line"
  done
  # A route whose path changes is one change; what is new comes before the old goes.
  [ "$n" = 1 ] || says '^-ip route add 203.0.113.0/24' ctl compare || fail "compare: $(ctl compare)"
  expect "commit check" ctl commit check
  says interrupts ctl commit check && fail "a live change interrupts: $(ctl commit check)"
  out=$(ctl commit) || fail "commit: $out"
  grep -q "^[45] changes by .* saved as revision" <<<"$out" || fail "commit: $out"
done
wait "$stream"
grep -q ' 0% packet loss' "$work/ping" || fail "live changes lost packets: $(tail -n 3 "$work/ping")"
says '203.0.113.0/24' ctl show ip fib 203.0.113.0/24 || fail "the route is not there"
[ "$(ctl show ip fib 203.0.113.0/24 | grep -c '10.0.2.4')" -gt 0 ] || fail "the route leads elsewhere: $(ctl show ip fib 203.0.113.0/24)"

# A commit that fails ends where it began: the address is another interface's.
ctl show running-config >"$work/before"
for line in "create loopback interface instance 5" "set interface state loop5 up" "set interface ip address loop5 10.0.2.1/24"; do
  expect "$line" ctl configure "$line"
done
out=$(ctl commit 2>&1) && fail "a commit with an address that is taken: $out"
grep -q 'all is as it was before' <<<"$out" || fail "commit: $out"
same=$(diff -u "$work/before" <(ctl show running-config)) || fail "a commit that failed left something: $same"
expect "discard" ctl configure discard

# Cut off: it comes back by itself.
expect "configure" ctl configure set interface state host-vb down
begun=$SECONDS
out=$(ctl commit confirm 1 comment cut) || fail "commit confirm: $out"
await 10 not pings || fail "the path is not cut"
out=$(ctl write 2>&1) && fail "what is not confirmed was saved: $out"
await 90 pings || fail "the path does not come back: $(ctl show running-config)"
[ $((SECONDS - begun)) -ge 45 ] || fail "it came back after $((SECONDS - begun)) seconds"
same=$(diff -u "$work/before" <(ctl show running-config)) || fail "another configuration than before: $same"
logged 'was not confirmed in time' || fail "the log does not say so"

# Killed before it is confirmed: the old configuration, and the log says why.
expect "configure" ctl configure set interface state host-vb down
expect "commit confirm" ctl commit confirm 5
[ -s "$work/lib/pending" ] || fail "no record of the commit"
pid=$router router=
kill -9 "$pid"
wait "$pid" 2>/dev/null
: >"$work/shoal.log"
start_router cpu { workers 1 }
await 20 logged 'startup.cli: .* commands restored' || fail "nothing was restored"
logged 'ended before the commit by' || fail "the log does not say that a commit was lost"
[ ! -e "$work/lib/pending" ] || fail "the record is still there"
await 10 pings || fail "the old configuration does not forward"
same=$(diff -u "$work/before" <(ctl show running-config)) || fail "another configuration than the old one: $same"

# Confirmed, and rolled back.
expect "configure" ctl configure set interface tag host-va confirmed
expect "commit confirm" ctl commit confirm 5
out=$(ctl confirm) || fail "confirm: $out"
revision=$(ctl show configuration revisions --json | grep -o '"revision": *[0-9]*' | tail -n 1 | grep -o '[0-9]*$')
expect "rollback" ctl rollback $((revision - 1))
same=$(diff -u "$work/before" <(ctl show running-config)) || fail "rollback: $same"
says 'root .*smaller packets' ctl show configuration revisions || fail "revisions: $(ctl show configuration revisions)"
out=$(ctl --json show configuration drift) || fail "drift: $out"
grep -q '"added": *0' <<<"$out" || fail "drift: $out"
alive
pass "$(grep -c . <(ctl show configuration revisions)) lines of revisions"
