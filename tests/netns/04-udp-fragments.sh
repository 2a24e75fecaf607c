#!/usr/bin/env bash
# Datagrams of 8,000 bytes go through in fragments, and come out whole; a smaller MTU at the far side fragments in
# the router, or says which MTU it is when that is forbidden.
. "$(dirname "$0")/lib.sh"
need python3 ping
begin
cat >"$work/echo.py" <<'PY'
import socket, sys
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
s.bind(("0.0.0.0", 7000))
while True:
    data, peer = s.recvfrom(65535)
    s.sendto(data, peer)
PY
cat >"$work/ask.py" <<'PY'
import os, socket, sys
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
s.settimeout(2)
lost = 0
for size in [1, 1000, 1472, 1473, 3000, 8000, 8000, 20000]:
    sent = os.urandom(size)
    for _ in range(3):
        s.sendto(sent, ("10.0.2.2", 7000))
        try:
            if s.recv(65535) != sent:
                sys.exit(f"{size} bytes came back changed")
            break
        except TimeoutError:
            lost += 1
    else:
        sys.exit(f"{size} bytes did not come back")
print(lost)
PY
ip netns exec "$B" python3 "$work/echo.py" &
await 5 in_b bash -c 'ss -uln | grep -q :7000' || fail "no echo server"
out=$(in_a python3 "$work/ask.py" 2>&1) || fail "$out"
[ "$out" = 0 ] || fail "$out datagrams had to be sent again"
# The far side takes 1,000 bytes only.
expect "mtu" ctl set interface mtu packet 1000 host-vb
out=$(in_a ping -c 1 -W 2 -M do -s 1400 10.0.2.2 2>&1)
grep -qi 'mtu *= *1000' <<<"$out" || fail "no 'fragmentation needed' with MTU 1000: $out"
in_a ip route flush cache
expect "fragments made by the router" in_a ping -c 3 -i 0.05 -W 2 -M dont -s 1400 10.0.2.2
alive
pass
