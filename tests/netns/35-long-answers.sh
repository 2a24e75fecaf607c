#!/usr/bin/env bash
# Many clients ask for a large table again and again, and some leave in the middle, while one thread answers them and
# forwards a ping every few milliseconds. No ping may take long, and memory must not grow with the answers.
#
#   ROUTES=1000000 CLIENTS=64 MOST_MS=5 LIMIT=300 scripts/in-namespace.sh tests/netns/35-long-answers.sh
: "${ROUTES:=100000}" "${CLIENTS:=16}" "${SECONDS_LONG:=10}" "${MOST_MS:=0}"
# ALONE=how long pings take is limited
. "$(dirname "$0")/lib.sh"
need ping python3
begin cpu { workers 0 }
CTL_TIMEOUT=300 expect routes ctl ip route add count "$ROUTES" 20.0.0.0/24 via 10.0.2.2
await 5 in_a ping -c 1 -W 1 10.0.2.2 || fail "no answer from host b"

kilobytes() { awk '/^VmRSS/ { print $2 }' "/proc/$router/status"; }
before=$(kilobytes)
PATIENCE=120 in_a ping -q -i 0.01 -w "$SECONDS_LONG" 10.0.2.2 >"$work/ping" 2>&1 &
pinging=$!

python3 - "$sock" "$CLIENTS" "$SECONDS_LONG" "$router" >"$work/readers" 2>&1 <<'PYTHON' &
import random, selectors, socket, sys, time
path, clients, seconds, router = sys.argv[1], int(sys.argv[2]), float(sys.argv[3]), sys.argv[4]
rng, ways = random.Random(35), selectors.DefaultSelector()
left = answers = read = most = 0
def rss():
    for line in open(f"/proc/{router}/status"):
        if line.startswith("VmRSS"):
            return int(line.split()[1])
    return 0
def come():
    s = socket.socket(socket.AF_UNIX)
    s.connect(path)
    s.sendall(b'{"shoal":1}\n' + b'{"id":1,"execute":"show ip fib"}\n')
    s.setblocking(False)
    # Some leave in the middle, some never read at all.
    kind = rng.random()
    limit = rng.randrange(1 << 16, 1 << 22) if kind < 0.4 else None
    if kind < 0.9:
        ways.register(s, selectors.EVENT_READ, {"limit": limit, "got": 0, "tail": b""})
        return None
    return s
silent = [s for s in (come() for _ in range(clients)) if s]
end, looked = time.monotonic() + seconds, 0.0
while time.monotonic() < end:
    if time.monotonic() - looked > 0.2:
        looked = time.monotonic()
        most = max(most, rss())
    for key, _ in ways.select(0.1):
        s, state = key.fileobj, key.data
        try:
            data = s.recv(1 << 16)
        except (BlockingIOError, ConnectionResetError):
            data = b"" if sys.exc_info()[0] is ConnectionResetError else None
        if data is None:
            continue
        read += len(data)
        state["got"] += len(data)
        state["tail"] = (state["tail"] + data)[-200:]
        gone = not data or (state["limit"] and state["got"] > state["limit"])
        if b'"ok":true' in state["tail"] and not gone:
            answers += 1
            state["tail"] = b""
            s.sendall(b'{"id":1,"execute":"show ip fib"}\n')
        if gone:
            left += bool(data)
            ways.unregister(s)
            s.close()
            again = come()
            if again:
                silent.append(again)
print(answers, left, read >> 20, most)
PYTHON
readers=$!
wait "$readers" || fail "the readers failed: $(cat "$work/readers")"
wait "$pinging" || fail "pings were lost: $(cat "$work/ping")"
read -r answers left megabytes most <"$work/readers"
alive
[ "$left" -gt 0 ] || fail "no reader left in the middle: $(cat "$work/readers")"
[ "$megabytes" -gt 10 ] || fail "only $megabytes MB were read"
pings_answered "$work/ping" || fail "pings were lost: $(tail -2 "$work/ping")"
slowest=$(awk -F/ '/^rtt/ { print $6 }' "$work/ping")
grown=$(((most - before) / 1024))
[ "$grown" -lt 100 ] || fail "memory grew by $grown MB"
# Back afterwards: what clients had is given back when they have gone.
settled() { [ $((($(kilobytes) - before) / 1024)) -lt 30 ]; }
await 30 settled || fail "memory is $((($(kilobytes) - before) / 1024)) MB above what it was"
# How long a ping takes is a matter of the machine's load, so it is asserted only where that was asked for.
if [ "$MOST_MS" != 0 ]; then
  awk -v s="$slowest" -v m="$MOST_MS" 'BEGIN { exit !(s < m) }' || fail "a ping took $slowest ms"
fi
pass "$CLIENTS clients, $ROUTES routes: $answers answers, $left left, $megabytes MB; slowest ping $slowest ms, memory +$grown MB"
