#!/usr/bin/env bash
# A commit that cuts the path goes back by itself; a router that is killed before a commit is confirmed comes up with the old
# configuration; a live change loses no packet.
# LIMIT=240
. "$(dirname "$0")/lib.sh"
need ping python3
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
ip netns exec "$A" "$patient_ping" -i 0.01 -c 1500 10.0.2.2 >"$work/ping" 2>&1 &
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
logged 'ended before the commit of root' || fail "the log does not say that a commit was lost"
[ ! -e "$work/lib/pending" ] || fail "the record is still there"
await 10 pings || fail "the old configuration does not forward"
same=$(diff -u "$work/before" <(ctl show running-config)) || fail "another configuration than the old one: $same"

# What the machine does not have is found before anything is changed, all of it.
expect "configure" ctl configure create host-interface name va9
expect "configure" ctl configure create interface af_xdp host-if nosuch9 name xdp9
out=$(ctl commit check 2>&1) && fail "commit check of ports that are not there: $out"
grep -q "no interface 'va9' in this network namespace, did you mean 'va'" <<<"$out" || fail "commit check: $out"
grep -q "nosuch9" <<<"$out" || fail "commit check names one error of two: $out"
same=$(diff -u "$work/before" <(ctl show running-config)) || fail "commit check changed something: $same"
expect "configure discard" ctl configure discard

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

# Sessions: each has a candidate of its own, one may have the configuration for itself, all that stay are told.
cat >"$work/session.py" <<'PYTHON'
import socket, sys, time
s = socket.socket(socket.AF_UNIX)
s.connect(sys.argv[1])
heard = b""
def until(what):
    global heard
    end = time.time() + 20
    s.settimeout(1)
    while what not in heard:
        assert time.time() < end, heard
        try:
            heard += s.recv(65536)
        except TimeoutError:
            pass
    heard = heard.split(what, 1)[1]
until(b"shoal# ")
if len(sys.argv) > 2:
    print("ready", flush=True)
    until(sys.argv[2].encode())
    print("told", flush=True)
    sys.exit()
s.sendall(b"configure exclusive\n")
until(b"has the configuration for itself")
s.sendall(b"configure set interface tag host-vb session\n")
until(b"shoal# ")
print("ready", flush=True)
time.sleep(60)
PYTHON
ip netns exec "$R" python3 "$work/session.py" "$sock" >"$work/session" 2>&1 &
session=$!
helpers+=("$session")
await 20 grep -q ready "$work/session" || fail "no session: $(cat "$work/session")"
out=$(ctl configure set interface tag host-va mine 2>&1) && fail "another candidate beside one that is exclusive: $out"
grep -q 'session [0-9]* of root has the configuration for itself' <<<"$out" || fail "exclusive: $out"
says 'session [0-9]* of root: 1 changes.*exclusive' ctl show configuration candidates || fail "candidates: $(ctl show configuration candidates)"
kill "$session"
wait "$session" 2>/dev/null
await 10 says 'there is no candidate' ctl show configuration candidates || fail "a session left its candidate: $(ctl show configuration candidates)"
ip netns exec "$R" python3 "$work/session.py" "$sock" "% root has committed a configuration that goes back in 5 minutes" >"$work/told" 2>&1 &
helpers+=("$!")
await 20 grep -q ready "$work/told" || fail "no session: $(cat "$work/told")"
expect "configure" ctl configure set interface tag host-va told
expect "commit confirm" ctl commit confirm 5
await 20 grep -q told "$work/told" || fail "the session was not told: $(cat "$work/told")"
expect "rollback" ctl rollback

# Programs do the same by messages.
api() { timeout 20 "$SHOALCTL" api -s "$work/run/api.sock" call "$@"; }
out=$(api shoal_candidate_set '{"lines": "set interface tag host-vb program\nset interface mtu 1450 host-vb\n"}') || fail "shoal_candidate_set: $out"
grep -q '"changes": *2' <<<"$out" || fail "shoal_candidate_set: $out"
out=$(api shoal_candidate_compare)
grep -q '+set interface tag host-vb program' <<<"$out" || fail "shoal_candidate_compare: $out"
out=$(api shoal_commit '{"check": true}')
grep -q '"changes": *2' <<<"$out" || fail "shoal_commit, check: $out"
out=$(api shoal_commit '{"comment": "by a program"}')
grep -q '"error": *""' <<<"$out" || fail "shoal_commit: $out"
says 'by a program' ctl show configuration revisions || fail "revisions: $(ctl show configuration revisions)"
revision=$(grep -o '"revision": *[0-9]*' <<<"$out" | grep -o '[0-9]*$')
out=$(api shoal_rollback "{\"revision\": $((revision - 1))}")
grep -q '"error": *""' <<<"$out" || fail "shoal_rollback: $out"
out=$(api shoal_candidate_set '{"lines": "show version\n"}')
grep -q 'is no line of a configuration' <<<"$out" || fail "shoal_candidate_set with a line that is none: $out"
out=$(api shoal_commit_confirm)
grep -q 'no commit waits' <<<"$out" || fail "shoal_commit_confirm: $out"

# Devices: what makes them is taken back and made again.
for port in xa xb; do
  ip -n "$R" link add "$port" numtxqueues 2 numrxqueues 2 type veth peer name "${port}2"
  ip -n "$R" link set "$port" up
done
while read -r -a line; do
  expect "${line[*]}" ctl "${line[@]}"
done <<COMMANDS
create host-interface name xa
set interface rx-queues host-xa 2
set interface rx-placement host-xa queue 0 main
set interface rx-mode host-xa interrupt
set interface tx-queue host-xa queue 0 threads 1
create interface af_xdp host-if xb
set interface af_xdp xb/0 pinhole arp,dhcp
create tap id 6 host-if-name lsix
set tap offload tap6 csum-offload-disable
create tap id 7 host-if-name lseven tun
create memif socket id 1 filename $work/memif.sock
create interface memif id 0 socket-id 1 master
create vhost-user socket $work/vhost.sock server
lcp create host-va host-if image
set interface name tap6 inside
set interface state inside up
set interface ip address inside 10.6.0.1/24
COMMANDS
ctl show running-config >"$work/full"
for to in before full; do
  expect "load" ctl configure load "$work/$to" replace
  expect "compare" ctl compare
  expect "commit" ctl commit comment "devices: $to"
  same=$(diff -u <(grep -v '^#' "$work/$to" | sort) <(ctl show running-config | grep -v '^#' | sort)) || fail "$to: $same"
done
alive
pass "$(grep -c . <(ctl show configuration revisions)) lines of revisions"
