#!/usr/bin/env bash
# Real hosts behind endpoint-independent NAT44, and two routers that know each other's sessions: the first is killed, and all
# connections go on through the second.
#
#   host a --- active  --- host b        a: 10.0.1.2 (and 10.0.3.2), b: 10.0.2.2 (and 10.0.4.2)
#       \       | 10.0.9.0/24 /          the shared address is 203.0.113.1, which b reaches by the router that works
#        \--- standby -------/
. "$(dirname "$0")/lib.sh"
need ping tcpdump iperf3 traceroute python3
begin cpu { workers 1 }

second=$work/second/cli.sock
ctl2() { timeout 20 "$SHOALCTL" -s "$second" "$@"; }
# Hosts take packets by another cable than they sent by, and ask for a router with the address of its cable.
for ns in "$A" "$B"; do in_ns "$ns" sysctl -qw net.ipv4.conf.all.rp_filter=0 net.ipv4.conf.all.arp_announce=2; done
wire() { # NAMESPACE INTERFACE NAME ADDRESS: another cable of a host
  ip -n "$R" link add name "$3" type veth peer name "$2" netns "$1" || fail "cannot make a veth pair"
  in_ns "$1" sysctl -qw "net.ipv4.conf.$2.rp_filter=0"
  ip -n "$R" link set "$3" up
  ip -n "$1" addr add "$4" dev "$2"
  ip -n "$1" link set "$2" up
}
wire "$A" eth1 va2 10.0.3.2/24
wire "$B" eth1 vb2 10.0.4.2/24
ip -n "$R" link add name hl0 type veth peer name hl1 && ip -n "$R" link set hl0 up && ip -n "$R" link set hl1 up ||
  fail "cannot make the cable between the routers"
ip netns exec "$R" "$SHOAL" unix { nodaemon nosyslog runtime-dir "$work/second" } cpu { workers 1 } \
  configuration { directory "$work/lib2" } >>"$work/second.log" 2>&1 &
helpers+=($!)
await 10 "$SHOALCTL" -s "$second" show version || fail "the second router does not answer: $(tail -n 5 "$work/second.log")"
put() { # CTL INTERFACE ADDRESS
  expect "interface" "$1" create host-interface name "$2"
  expect "up" "$1" set interface state "host-$2" up
  expect "address" "$1" set interface ip address "host-$2" "$3"
}
put ctl hl0 10.0.9.1/24
put ctl2 hl1 10.0.9.2/24
put ctl2 va2 10.0.3.1/24
put ctl2 vb2 10.0.4.1/24
# The host is reached by its first address, through any cable that works.
expect "way to a" ctl2 ip route add 10.0.1.0/24 via 10.0.3.2 host-va2
expect "way to b" ctl2 ip route add 10.0.2.0/24 via 10.0.4.2 host-vb2
ip -n "$B" route add 203.0.113.0/24 via 10.0.2.1

for it in "ctl host-va host-vb" "ctl2 host-va2 host-vb2"; do
  read -r which in out <<<"$it"
  expect "nat" "$which" nat44 ei plugin enable sessions 20000 user-sessions 20000
  expect "sides" "$which" set interface nat44 ei in "$in" out "$out"
  expect "pool" "$which" nat44 ei add address 203.0.113.1
done
expect "listener" ctl nat44 ei ha listener 10.0.9.1:1234
expect "failover" ctl nat44 ei ha failover 10.0.9.2:1234
expect "listener" ctl2 nat44 ei ha listener 10.0.9.2:1234
expect "failover" ctl2 nat44 ei ha failover 10.0.9.1:1234
await 5 ctl ping 10.0.9.2 repeat 1 || fail "the routers do not reach each other"

in_a "$patient_ping" -q -i 0.05 -c 20 -W 2 10.0.2.2 | grep -q ' 0% packet loss' || fail "ping through NAT"
in_a "$patient_ping" -q -i 0.05 -c 5 -s 3000 -W 2 10.0.2.2 | grep -q ' 0% packet loss' || fail "ping in fragments"
in_b iperf3 -s -p 5201 -1 -D
await 5 listens "$B" 5201 || fail "iperf3 does not listen"
expect "tcp" in_a iperf3 -c 10.0.2.2 -p 5201 -t 2 -P 8
in_b iperf3 -s -p 5202 -1 -D
await 5 listens "$B" 5202 || fail "iperf3 does not listen"
expect "udp" in_a iperf3 -c 10.0.2.2 -p 5202 -u -b 20M -t 2 -R
says "10.0.2.2" in_a traceroute -n -w 2 -q 1 10.0.2.2 || fail "traceroute does not show the host"
says "refused" in_a bash -c ': </dev/tcp/10.0.2.2/9' || fail "a refused connection is not told"

# One port outside for all that a's port speaks with (RFC 4787, REQ-1): b says the same at two of its ports.
cat >"$work/who.py" <<'P'
import socket, threading
def serve(port):
    s = socket.socket(type=2); s.bind(("10.0.2.2", port))
    while True:
        _, who = s.recvfrom(9); s.sendto(("%s:%d" % who).encode(), who)
threading.Thread(target=serve, args=(7,), daemon=True).start(); serve(8)
P
PATIENCE=120 in_b python3 "$work/who.py" &
helpers+=($!)
await 5 says 10.0.2.2:8 in_b ss -lun || fail "the server of datagrams does not listen"
asks='import socket; s = socket.socket(type=2); s.settimeout(5); seen = []
for port in (7, 8): s.sendto(b"who?", ("10.0.2.2", port)); seen.append(s.recv(99).decode())
print(*seen)'
read -r one other <<<"$(in_a python3 -c "$asks")"
[ -n "$one" ] && [ "$one" = "$other" ] || fail "one port of a is $one to one port of b and $other to another"

# With blocks of ports, the log of a collector says who had a port.
cat >"$work/collect.py" <<'P'
import socket, sys
s = socket.socket(type=2); s.bind(("10.0.2.2", 514))
while True: print(s.recv(2000).decode(), flush=True)
P
PATIENCE=120 in_b python3 "$work/collect.py" >"$work/nat.log" &
helpers+=($!)
await 5 says 10.0.2.2:514 in_b ss -lun || fail "the collector does not listen"
expect "syslog" ctl set syslog sender collector 10.0.2.2 src 10.0.2.1
expect "blocks" ctl nat44 ei addr-port-assignment-alg port-blocks size 252
read -r one _ <<<"$(in_a python3 -c "$asks")"
await 5 says PBADD cat "$work/nat.log" || fail "no block is logged: $(cat "$work/nat.log")"
now=$(date -u -d '+1 second' +%FT%TZ)
says "^10.0.1.2 vrf 0: ports" "$SHOALCTL" nat-log "$one" --at "$now" "$work/nat.log" || fail "the log does not say who had $one"
"$SHOALCTL" nat-log "$one" --at 2020-01-01T00:00:00Z "$work/nat.log" && fail "the log says who had $one before it was given out"
expect "no blocks" ctl nat44 ei addr-port-assignment-alg default

# 200 connections, answered before and after the first router is killed.
cat >"$work/echo.py" <<'P'
import selectors, socket
s = socket.create_server(("10.0.2.2", 9000), backlog=512); sel = selectors.DefaultSelector(); sel.register(s, 1)
while True:
    for key, _ in sel.select():
        if key.fileobj is s: sel.register(s.accept()[0], 1)
        else:
            data = key.fileobj.recv(99)
            if data: key.fileobj.send(data)
            else: sel.unregister(key.fileobj); key.fileobj.close()
P
cat >"$work/many.py" <<'P'
import os, socket, sys, time
def say(s, what):
    try: s.send(what); return s.recv(99) == what
    except OSError: return False
all = [socket.create_connection(("10.0.2.2", 9000), 5, source_address=("10.0.1.2", 0)) for _ in range(200)]
print("before", sum(say(s, b"one") for s in all), flush=True)
while not os.path.exists(sys.argv[1]): time.sleep(0.1)
for s in all: s.settimeout(10)
print("after", sum(say(s, b"two") for s in all), flush=True)
P
PATIENCE=120 in_b python3 "$work/echo.py" &
helpers+=($!)
await 5 listens "$B" 9000 || fail "the echo server does not listen"
PATIENCE=120 in_a python3 "$work/many.py" "$work/over" >"$work/many.out" 2>&1 &
client=$!
await 20 says "before 200" cat "$work/many.out" || fail "connections are not answered: $(cat "$work/many.out")"
expect "flush" ctl nat44 ei ha flush
sessions() { "$1" show nat44 ei summary | sed -n 's/^total tcp sessions: //p'; }
has_all() { [ "$(sessions ctl2)" -ge 200 ]; }
await 10 has_all || fail "the second router has $(sessions ctl2) of $(sessions ctl) sessions"

kill -9 "$router"
wait "$router" 2>/dev/null
router=
ip -n "$A" route replace default via 10.0.3.1 dev eth1
ip -n "$B" route replace 203.0.113.0/24 via 10.0.4.1
# What was there when the first one died is known to the second: nothing is asked from it again.
touch "$work/over"
wait "$client"
says "after 200" cat "$work/many.out" || fail "connections were lost: $(cat "$work/many.out")"
# New ones begin there, too.
says "203.0.113.1:" in_a python3 -c "${asks//s = socket.socket(type=2)/s = socket.socket(type=2); s.bind((\"10.0.1.2\", 0))}" ||
  fail "the second router begins no session"
says "translation" ctl2 show nat44 ei sessions detail || fail "sessions are not listed"
pass "200 connections went on"
