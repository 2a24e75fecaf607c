#!/usr/bin/env bash
# Real hosts behind DET44: what host b sees of host a is a port of a's own share, as `det44 reverse` says.
. "$(dirname "$0")/lib.sh"
need ping tcpdump iperf3 traceroute python3
begin cpu { workers 1 }
expect "det44" ctl det44 plugin enable
expect "map" ctl det44 add in 10.0.1.0/24 out 10.0.2.100/30
expect "sides" ctl set interface det44 inside host-va outside host-vb

in_a "$patient_ping" -q -i 0.05 -c 20 -W 2 10.0.2.2 | grep -q ' 0% packet loss' || fail "ping through DET44"
in_a "$patient_ping" -q -i 0.05 -c 5 -s 3000 -W 2 10.0.2.2 | grep -q ' 0% packet loss' || fail "ping in fragments"
in_b iperf3 -s -p 5201 -1 -D
await 5 listens "$B" 5201 || fail "iperf3 does not listen"
expect "tcp" in_a iperf3 -c 10.0.2.2 -p 5201 -t 2 -P 8
in_b iperf3 -s -p 5202 -1 -D
await 5 listens "$B" 5202 || fail "iperf3 does not listen"
expect "udp" in_a iperf3 -c 10.0.2.2 -p 5202 -u -b 20M -t 2 -R
says "10.0.1.1" in_a traceroute -n -w 2 -q 1 10.0.2.2 || fail "traceroute does not show the router"
says "10.0.2.2" in_a traceroute -n -w 2 -q 1 10.0.2.2 || fail "traceroute does not show the host"
says "refused" in_a bash -c ': </dev/tcp/10.0.2.2/9' || fail "a refused connection is not told"

# b tells the source it sees; the router finds the host of it.
tells='import socket; s = socket.socket(type=2); s.bind(("10.0.2.2", 7)); _, who = s.recvfrom(9); s.sendto(("%s:%d" % who).encode(), who)'
in_b python3 -c "$tells" &
helpers+=($!)
await 5 says 10.0.2.2:7 in_b ss -lun || fail "the server of datagrams does not listen"
asks='import socket; s = socket.socket(type=2); s.settimeout(5); s.connect(("10.0.2.2", 7)); s.send(b"who?"); print(s.recv(99).decode())'
seen=$(in_a python3 -c "$asks")
says "10.0.1.2" ctl det44 reverse "$seen" || fail "b saw $seen, which is not a's: $(ctl det44 reverse "$seen")"
says "${seen%:*}:<" ctl det44 forward 10.0.1.2 || fail "a has another address than $seen"
says "in 10.0.1.2:" ctl show det44 sessions || fail "sessions are not listed"
# Connections that have ended are gone at once.
says "tcp-established" ctl show det44 sessions && fail "a connection that has ended is still listed"
alive
stop_router || fail "the router did not stop"
pass
