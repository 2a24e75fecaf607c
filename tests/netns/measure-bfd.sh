#!/usr/bin/env bash
# Many BFD sessions at short intervals between two routers, while one of them is given a full table, prints it, gets and loses workers,
# forwards traffic, and is flooded with packets of strangers: how many sessions went down without a reason. At last the other router is
# stopped: how long it takes until each session is down.
#
#   scripts/in-namespace.sh tests/netns/measure-bfd.sh
#   SESSIONS=1000 INTERVAL=50000 ROUTES4=1000000 WORKERS=1 TRAFFIC=100000 FLOOD=100000 scripts/in-namespace.sh tests/netns/measure-bfd.sh
#
# INTERVAL is in microseconds; a session goes down after three intervals of silence. TRAFFIC and FLOOD are packets a second. WORKERS says
# how many the router has all the time. Nothing is judged.
: "${SESSIONS:=1000}" "${INTERVAL:=50000}" "${ROUTES4:=1000000}" "${WORKERS:=0}" "${TRAFFIC:=100000}" "${FLOOD:=100000}" "${CTL_TIMEOUT:=300}"
. "$(dirname "$0")/lib.sh"
need python3
ip netns add "$R" 2>"$work/why" || skip "no network namespaces here: $(cat "$work/why")"
start_router logging { default-log-level info }
start_far logging { default-log-level info }
expect "memif socket" ctl create memif socket id 1 filename "$work/memif.sock"
expect "memif socket" far create memif socket id 1 filename "$work/memif.sock"
expect "memif" ctl create interface memif id 0 socket-id 1 master
expect "memif" far create interface memif id 0 socket-id 1 slave
expect "generator" far create packet-generator interface pg0
for _ in $(seq "$WORKERS"); do
  expect "worker" ctl create worker
  expect "worker" far create worker
done
mac() { "$1" show hardware-interfaces memif1/0 | grep -o -m1 -E '([0-9a-f]{2}:){5}[0-9a-f]{2}'; }
python3 - "$SESSIONS" "$INTERVAL" "$ROUTES4" "$work" "$(mac ctl)" "$(mac far)" "$TRAFFIC" "$FLOOD" <<'PYTHON'
import socket, struct, sys
sessions, interval, routes, work = int(sys.argv[1]), sys.argv[2], int(sys.argv[3]), sys.argv[4]
to, source = (bytes.fromhex(mac.replace(":", "")) for mac in sys.argv[5:7])
peers = [f"10.1.{1 + n // 250}.{1 + n % 250}" for n in range(sessions)]
times = f"desired-min-tx {interval} required-min-rx {interval} detect-mult 3"
with open(f"{work}/near.cli", "w") as near, open(f"{work}/far.cli", "w") as far:
    print("set interface ip address memif1/0 10.1.0.1/16\nset interface state memif1/0 up", file=near)
    for peer in peers:
        print(f"set interface ip address memif1/0 {peer}/16", file=far)
    print("set interface state memif1/0 up", file=far)
    for peer in peers:
        print(f"bfd udp session add interface memif1/0 local-addr 10.1.0.1 peer-addr {peer} {times}", file=near)
        print(f"bfd udp session add interface memif1/0 local-addr {peer} peer-addr 10.1.0.1 {times}", file=far)
with open(f"{work}/routes.cli", "w") as out:
    for n in range(routes):
        print(f"ip route add {20 + (n >> 16)}.{n >> 8 & 255}.{n & 255}.0/24 via 10.1.1.1", file=out)

def packet(src, dst, ports, data):
    ip = struct.pack("!BBHHHBBH4s4s", 0x45, 0, 28 + len(data), 0, 0, 255, 17, 0, socket.inet_aton(src), socket.inet_aton(dst))
    total = sum(struct.unpack("!10H", ip))
    total = (total & 0xffff) + (total >> 16)
    ip = ip[:10] + struct.pack("!H", ~((total & 0xffff) + (total >> 16)) & 0xffff) + ip[12:]
    return (to + source + b"\x08\x00" + ip + struct.pack("!HHHH", *ports, 8 + len(data), 0) + data).hex()

# A session that is not there, of a station that is on the link.
stranger = struct.pack("!BBBBIIIII", 0x20, 0xc0, 3, 24, 7, 0xdeadbeef, 50000, 50000, 0)
streams = {
    "traffic": (sys.argv[7], packet("10.1.1.1", "20.0.1.1", (1, 2), bytes(32))),
    "flood": (sys.argv[8], packet("10.1.1.1", "10.1.0.1", (50000, 3784), stranger)),
}
with open(f"{work}/streams.cli", "w") as out:
    for name, (rate, frame) in streams.items():
        print(f"packet-generator new {{ name {name} limit 0 rate {rate} interface pg0 node memif1/0-tx "
              f"size {len(frame) // 2}-{len(frame) // 2} data {{ hex 0x{frame} }} }}", file=out)
PYTHON
expect "sessions" far exec "$work/far.cli"
expect "sessions" ctl exec "$work/near.cli"
expect "streams" far exec "$work/streams.cli"
up() { grep -c 'Up' <<<"$(ctl show bfd sessions)"; }
all_up() { [ "$(up)" -ge "$SESSIONS" ]; }
if [ "$WORKERS" -gt 0 ]; then
  expect "placement" ctl set interface rx-placement memif1/0 worker 0
  expect "placement" far set interface rx-placement memif1/0 worker 0
fi
await 60 all_up || fail "only $(up) sessions are up: $(ctl show bfd sessions | tail -n 5)"
downs() { cat "$work/shoal.log" "$work/far.log" | grep -c 'bfd: .* is [Dd]own'; }
phase() {
  local before after begun=$SECONDS
  before=$(downs)
  "${@:2}" >"$work/answer" 2>&1 || fail "$1: $(head -c 400 "$work/answer")"
  sleep 1
  after=$(downs)
  printf '%-38s %3d s, %d sessions went down, %d are up\n' "$1" $((SECONDS - begun)) $((after - before)) "$(up)"
  await 60 all_up
}
# Threads that wait for interrupts take what their work takes, and no more.
mode() { ctl set interface rx-mode memif1/0 "$1" && far set interface rx-mode memif1/0 "$1"; }
expect "mode" mode interrupt
busy() { awk '{ print $14 + $15 }' "/proc/$router/task/$1/stat" 2>/dev/null; }
all_busy() { for task in "/proc/$router/task"/*; do echo "$(cat "$task/comm") $(busy "${task##*/}")"; done; }
all_busy >"$work/used"
phase 'nothing else' sleep 10
all_busy | paste "$work/used" - | awk -v what="$SESSIONS sessions at $INTERVAL us" '
  $4 - $2 > 0 { printf "%s %s took %.1f %% of a processor", sum ? "," : what ":", $1, ($4 - $2) / 10; sum += $4 - $2 }
  END { print "" }'
expect "mode" mode adaptive
phase "$ROUTES4 routes" ctl exec "$work/routes.cli"
echo "$(ctl show ip fib summary | awk '/^ *[0-9]/ { all += $2 } END { print all }') prefixes are in the table"
phase 'show ip fib' ctl show ip fib
phase 'show running-config' ctl show running-config
ten_times() { for _ in $(seq 10); do "$@" || return; done; }
come_and_go() {
  # Numbers are those of threads: the next one is the one that has come.
  ctl create worker && ctl delete worker "$WORKERS"
}
phase 'workers come and go, 10 times' ten_times come_and_go
during() {
  far packet-generator enable-stream "$1"
  "${@:2}"
  far packet-generator disable-stream "$1"
}
phase "$TRAFFIC packets a second" during traffic sleep 10
phase 'the same, workers come and go' during traffic ten_times come_and_go
phase "$FLOOD packets of strangers a second" during flood sleep 10
wait_for_downs() {
  python3 - "$work/shoal.log" "$SESSIONS" "${helpers[0]}" "$INTERVAL" <<'PYTHON'
import os, signal, sys, time
log, sessions, far, interval = open(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]), int(sys.argv[4])
log.seek(0, 2)
os.kill(far, signal.SIGSTOP)
begun, found, rest = time.monotonic(), [], ""
while len(found) < sessions and time.monotonic() < begun + 10:
    rest += log.read()
    *lines, rest = rest.split("\n")
    found += [(time.monotonic() - begun) * 1000] * sum(" is Down" in line for line in lines)
    time.sleep(0.0002)
os.kill(far, signal.SIGCONT)
found.sort()
if found:
    at = lambda part: found[min(len(found) - 1, int(len(found) * part))]
    print(f"the other end is stopped: {len(found)} sessions are down after {found[0]:.1f} (first) {at(.5):.1f} (half) "
          f"{at(.99):.1f} (99 %) {found[-1]:.1f} ms (last); three intervals are {interval * 3 / 1000} ms")
PYTHON
}
await 60 all_up
wait_for_downs
ended=1
