#!/usr/bin/env bash
# Two routers share the sessions of NAT44 and NAT64, and addresses by VRRP. The one that forwards is killed under 200 connections of
# IPv4 and 50 of IPv6: all go on through the other, and the longest silence of a stream of datagrams is printed. The first comes back
# as standby, hears of all sessions, and takes over when the second is killed.
#
#   host a ---+--- first  ---+--- host b     a: 10.0.1.2 and 2001:db8:1::2, its gateways 10.0.1.100 and fe80::7
#             |     | sync   |               b: 10.0.2.2 (NAT44, 203.0.113.1) and 10.0.4.2 (NAT64, 203.0.113.64)
#             +--- second ---+
# INTERVAL=5 has the routers say by VRRP every 50 ms that they live, not every 200 ms: for figures, on a machine with nothing else to do.
# ALONE=how long the routers are silent is limited
. "$(dirname "$0")/lib.sh"
need ping python3
: "${INTERVAL:=20}"
for ns in "$A" "$B" "$R"; do ip netns add "$ns" 2>"$work/why" || skip "no network namespaces here: $(cat "$work/why")"; done
ip netns exec "$A" sysctl -qw net.ipv6.conf.all.disable_ipv6=0 || skip "the kernel has no IPv6"
for ns in "$A" "$B"; do
  ip -n "$ns" link set lo up
  in_ns "$ns" sysctl -qw net.ipv4.conf.all.rp_filter=0 net.ipv4.conf.default.rp_filter=0
done
# switch NAME NAMESPACE INTERFACE: a host's interface and one of each router on one switch.
switch() {
  ip -n "$R" link add name "$1" type bridge mcast_snooping 0 2>"$work/why" || skip "no bridges here: $(cat "$work/why")"
  in_r sysctl -qw "net.ipv6.conf.$1.disable_ipv6=1"
  ip -n "$R" link set "$1" up
  ip -n "$R" link add name "$1h" type veth peer name "$3" netns "$2" || fail "cannot make a veth pair"
  local port
  for port in "$1"1 "$1"2; do ip -n "$R" link add name "$port" type veth peer name "${port}p" || fail "cannot make a veth pair"; done
  for port in "$1h" "$1"1p "$1"2p; do ip -n "$R" link set "$port" master "$1"; done
  for port in "$1h" "$1"1p "$1"2p "$1"1 "$1"2; do
    in_r sysctl -qw "net.ipv6.conf.$port.disable_ipv6=1"
    ip -n "$R" link set "$port" up
  done
}
switch in "$A" eth0
switch out "$B" eth0
switch six "$B" eth1
ip -n "$R" link add name hl1 type veth peer name hl2 && ip -n "$R" link set hl1 up && ip -n "$R" link set hl2 up ||
  fail "cannot make the cable between the routers"
in_a sysctl -qw net.ipv6.conf.eth0.disable_ipv6=0 net.ipv6.conf.eth0.dad_transmits=0 net.ipv6.conf.eth0.accept_ra=0
ip -n "$A" addr add 10.0.1.2/24 dev eth0
ip -n "$B" addr add 10.0.2.2/24 dev eth0
ip -n "$B" addr add 10.0.4.2/24 dev eth1
ip -n "$A" link set eth0 up
ip -n "$B" link set eth0 up
ip -n "$B" link set eth1 up
ip -n "$A" addr add 2001:db8:1::2/64 dev eth0 nodad
ip -n "$A" route add default via 10.0.1.100
ip -n "$A" -6 route add default via fe80::7 dev eth0
ip -n "$B" route add 203.0.113.1/32 via 10.0.2.100
ip -n "$B" route add 203.0.113.64/32 via 10.0.4.100

to() { timeout 20 "$SHOALCTL" -s "$work/$1/cli.sock" "${@:2}"; }
key=000102030405060708090a0b0c0d0e0f
declare -A process
# run N: starts router 1 or 2 and configures it.
run() {
  local n=$1 other=$((3 - $1)) priority=$((200 - 50 * $1)) of
  ip netns exec "$R" "$SHOAL" unix { nodaemon nosyslog runtime-dir "$work/$n" } cpu { workers 1 } \
    configuration { directory "$work/lib$n" } >>"$work/shoal.log" 2>&1 &
  process[$n]=$!
  helpers+=("$!")
  await 10 to "$n" show version || fail "router $n does not answer: $(tail -n 5 "$work/shoal.log")"
  for of in "in$n 10.0.1.$((n + 10))/24" "out$n 10.0.2.$((n + 10))/24" "six$n 10.0.4.$((n + 10))/24" "hl$n 10.0.9.$n/24"; do
    expect "interface" to "$n" create host-interface name "${of% *}"
    expect "up" to "$n" set interface state "host-${of% *}" up
    expect "address" to "$n" set interface ip address "host-${of% *}" "${of#* }"
  done
  expect "IPv6" to "$n" set interface ip address "host-in$n" "2001:db8:1::1$n/64"
  # First what says who forwards, so that a router that comes back does not forward before it knows the other.
  for of in "host-in$n vr_id 7 priority $priority interval $INTERVAL no_preempt accept_mode 10.0.1.100" \
    "host-in$n vr_id 7 ipv6 priority $priority interval $INTERVAL no_preempt accept_mode fe80::7" \
    "host-out$n vr_id 8 priority $priority interval $INTERVAL no_preempt accept_mode 10.0.2.100" \
    "host-six$n vr_id 9 priority $priority interval $INTERVAL no_preempt accept_mode 10.0.4.100"; do
    expect "VRRP" to "$n" vrrp vr add $of
  done
  expect "timers" to "$n" session-sync timers hello $((INTERVAL * 10)) dead $((INTERVAL * 50)) refresh 60
  expect "role" to "$n" session-sync role vrrp "host-in$n" vr_id 7
  expect "peer" to "$n" session-sync peer "10.0.9.$other" local "10.0.9.$n" key $key
  expect "nat44" to "$n" nat44 plugin enable sessions 20000
  expect "sides" to "$n" set interface nat44 in "host-in$n" out "host-out$n"
  expect "pool" to "$n" nat44 add address 203.0.113.1
  expect "nat64" to "$n" nat64 plugin enable
  expect "in" to "$n" set interface nat64 in "host-in$n"
  expect "out" to "$n" set interface nat64 out "host-six$n"
  expect "pool" to "$n" nat64 add pool address 203.0.113.64
  for of in "host-in$n vr_id 7" "host-in$n vr_id 7 ipv6" "host-out$n vr_id 8" "host-six$n vr_id 9"; do
    expect "start" to "$n" vrrp proto start $of
  done
}
role() { says "^role $2 " to "$1" show session-sync; }
known() { says "known for" to "$1" show session-sync; }
run 1
await 10 role 1 active || fail "the first router does not forward: $(to 1 show vrrp vr; to 1 show session-sync)"
run 2
await 10 known 1 || fail "the routers do not know each other: $(to 1 show session-sync; to 1 show errors; to 2 show session-sync)"
role 2 standby || fail "both forward: $(to 2 show session-sync)"
says "^session-sync peer 10.0.9.2 local 10.0.9.1 key $key" to 1 show running-config || fail "the configuration lacks the other router"
b6=64:ff9b::10.0.4.2
await 10 in_a ping -c 1 -W 1 10.0.2.2 || fail "no way by NAT44: $(to 1 show errors)"
await 10 in_a ping -6 -c 1 -W 1 $b6 || fail "no way by NAT64: $(to 1 show errors)"

cat >"$work/echo.py" <<'P'
import selectors, socket
sel = selectors.DefaultSelector()
for host in ("10.0.2.2", "10.0.4.2"):
    sel.register(socket.create_server((host, 9000), backlog=512), 1)
s = socket.socket(type=2); s.bind(("10.0.2.2", 9001)); sel.register(s, 1, "udp")
while True:
    for key, _ in sel.select():
        s = key.fileobj
        if key.data == "udp": s.sendto(*s.recvfrom(99))
        elif key.data is None: sel.register(s.accept()[0], 1, "tcp")
        else:
            try: data = s.recv(99)
            except OSError: data = b""
            if data: s.send(data)
            else: sel.unregister(s); s.close()
P
# Connections are asked whether they live each time a file comes, and whether they live with the next.
cat >"$work/many.py" <<'P'
import os, socket, sys, time
work = sys.argv[1]
def say(s, what):
    try: s.send(what); return s.recv(99) == what
    except OSError: return False
all = [socket.create_connection(("10.0.2.2", 9000), 5) for _ in range(200)]
all += [socket.create_connection(("64:ff9b::10.0.4.2", 9000), 5) for _ in range(50)]
print("round 0 alive", sum(say(s, b"0") for s in all), flush=True)
for n in (1, 2):
    while not os.path.exists(f"{work}/round{n}"): time.sleep(0.02)
    for s in all: s.settimeout(20)
    print("round", n, "alive", sum(say(s, b"%d" % n) for s in all), flush=True)
P
# A datagram every 5 ms; the longest time without an answer.
cat >"$work/stream.py" <<'P'
import os, socket, sys, threading, time
s = socket.socket(type=2); s.connect(("10.0.2.2", 9001)); s.settimeout(0.5)
def send():
    while True:
        try: s.send(b"x")
        except OSError: pass
        time.sleep(0.005)
threading.Thread(target=send, daemon=True).start()
s.recv(9); last = time.monotonic(); longest = 0
print("begun", flush=True)
while not os.path.exists(sys.argv[1]):
    try: s.recv(9)
    except OSError: continue
    now = time.monotonic(); longest = max(longest, now - last); last = now
print("longest silence", round(longest * 1000), "ms", flush=True)
P
PATIENCE=110 in_b python3 "$work/echo.py" &
helpers+=($!)
await 5 listens "$B" 9000 || fail "the echo server does not listen"
PATIENCE=110 in_a python3 "$work/many.py" "$work" >"$work/many.out" 2>&1 &
client=$!
await 20 says "round 0 alive 250" cat "$work/many.out" || fail "connections are not answered: $(cat "$work/many.out")"
# has N SESSIONS44 SESSIONS64: whether a router has at least so many TCP sessions of each.
count44() { to "$1" show nat44 summary | awk "/established:/ { print \$2 }"; }
count64() { to "$1" show nat64 session table tcp | grep -c "10.0.4.2 9000"; }
has_all() { [ "$(count44 "$1")" -ge 200 ] && [ "$(count64 "$1")" -ge 50 ]; }

# fail_over FROM ROUND: a router is killed; what became of the connections and of the stream.
fail_over() {
  local from=$1 other=$((3 - $1)) stream
  await 10 has_all "$other" || fail "router $other has $(count44 "$other") and $(count64 "$other") sessions: $(to "$other" show session-sync)"
  PATIENCE=60 in_a python3 "$work/stream.py" "$work/stop$2" >"$work/stream$2" 2>&1 &
  stream=$!
  await 10 says begun cat "$work/stream$2" || fail "the stream is not answered: $(cat "$work/stream$2")"
  sleep 3
  kill -9 "${process[$from]}"
  wait "${process[$from]}" 2>/dev/null
  touch "$work/round$2"
  await 25 says "round $2 alive" cat "$work/many.out" || fail "connections hang: $(cat "$work/many.out")"
  says "round $2 alive 250" cat "$work/many.out" || fail "connections were lost: $(cat "$work/many.out"); $(to "$other" show session-sync; to "$other" show errors)"
  role "$other" active || fail "router $other does not forward: $(to "$other" show session-sync)"
  sleep 1
  touch "$work/stop$2"
  wait "$stream"
  echo "router $from killed: 250 of 250 connections live, $(tail -n 1 "$work/stream$2")"
  [ "$(grep -o '[0-9]* ms' "$work/stream$2" | cut -d ' ' -f 1)" -lt 3000 ] || fail "the stream was silent for too long: $(cat "$work/stream$2")"
}
fail_over 1 1
# New ones begin at the second, and the first comes back as standby.
expect "a new connection" in_a python3 -c 'import socket; s = socket.create_connection(("10.0.2.2", 9000), 5); s.send(b"n"); assert s.recv(9) == b"n"'
run 1
await 10 known 1 || fail "the routers do not know each other again: $(to 1 show session-sync)"
role 1 standby || fail "the first router forwards at once: $(to 1 show session-sync; to 1 show vrrp vr)"
fail_over 2 2
says "nat44-ed: .* entered" to 1 show session-sync || fail "what was taken in is not shown: $(to 1 show session-sync)"
wait "$client"
kill -0 "${process[1]}" 2>/dev/null || fail "the first router has died"
pass "all connections went on twice"
