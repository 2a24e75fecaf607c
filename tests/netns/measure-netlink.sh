#!/usr/bin/env bash
# How fast the router follows routes of Linux: the kernel gets a table in a namespace of images as fast as it takes it, gets another next hop for
# all of it, loses it, and gets it again, for which the router has the memory by then. Prints, of each phase, how long the kernel needed, how much later the router had all, the processor time of the router's main
# thread for each route, and what happened meanwhile: how late a client of the binary API was answered at worst, for how much of that
# the router was ready to run and had no processor, how many packets between two hosts were lost, and how often announcements were lost
# (`listings: lost`). The client goes before all others that want a processor, or it would measure how long it waits for one itself.
#
#   scripts/in-namespace.sh tests/netns/measure-netlink.sh
#   ROUTES=1000000 WORKERS=1 scripts/in-namespace.sh tests/netns/measure-netlink.sh
#   APART=1 scripts/in-namespace.sh tests/netns/measure-netlink.sh
#
# With APART the program that gives routes, for which the kernel works, has the first processor, and the router, the client and the hosts
# have the others: what the client waits for is the router then, and not the kernel, which enlarges its own table without giving way.
# ROUTES is 14 million at most. The client needs vpp_papi (scripts/papi.sh makes target/papi). Nothing is judged.
: "${ROUTES:=1000000}" "${WORKERS:=0}" "${CTL_TIMEOUT:=300}" "${APART:=}"
. "$(dirname "$0")/lib.sh"
need python3 ping chrt taskset
giver=()
if [ -n "$APART" ]; then
  [ "$(nproc)" -gt 1 ] || skip "there is one processor"
  taskset -p -c "1-$(($(nproc --all) - 1))" $$ >/dev/null || skip "processors cannot be chosen"
  giver=(taskset -c 0)
fi
begin
for _ in $(seq "$WORKERS"); do expect "worker" ctl create worker; done
beside
for port in va:e0:1 vb:e1:2; do
  IFS=: read -r cable image net <<<"$port"
  expect "lcp create" ctl lcp create "host-$cable" host-if "$image" netns "$L"
  expect "address" ip -n "$L" addr add "10.0.$net.1/24" dev "$image"
done
cat >"$work/give.py" <<'PYTHON'
# Gives the kernel all routes of a phase as fast as it takes them, many with one system call and without waiting for answers.
import random, socket, struct, sys
phase, routes = sys.argv[1], int(sys.argv[2])
NEW, DELETE, REQUEST, REPLACE, CREATE = 24, 25, 1, 0x100, 0x400
gateway, image = {"add": ("10.0.1.2", "e0"), "replace": ("10.0.2.2", "e1"), "del": ("10.0.2.2", "e1")}[phase]
kind, flags = (DELETE, REQUEST) if phase == "del" else (NEW, REQUEST | CREATE | (REPLACE if phase == "replace" else 0))
rest = struct.pack("=HHI", 8, 6, 20)
if phase != "del":
    rest += struct.pack("=HHI", 8, 4, socket.if_nametoindex(image)) + struct.pack("=HH", 8, 5) + socket.inet_aton(gateway)
head = struct.pack("=IHHII", 16 + 12 + 8 + len(rest), kind, flags, 0, 0) + struct.pack("=BBBBBBBBI", 2, 28, 0, 0, 254, 186, 0, 1, 0)
head += struct.pack("=HH", 8, 1)
order = list(range(routes))
# In no order, as a daemon tells them.
random.Random(1).shuffle(order)
messages = [head + struct.pack("!I", (20 << 24) + (n << 4)) + rest for n in order]
some = [order[at * (routes - 1) // 7] for at in range(8)]
open(sys.argv[3], "w").write(" ".join(socket.inet_ntoa(struct.pack("!I", (20 << 24) + (n << 4))) + "/28" for n in some))
chunks = [b"".join(messages[at:at + 200]) for at in range(0, routes, 200)]
kernel = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 0)
kernel.bind((0, 0))
print("ready", flush=True)
sys.stdin.readline()
for chunk in chunks:
    kernel.send(chunk)
print("done", flush=True)
PYTHON
papi=
if [ -x "$root/target/papi/bin/python" ]; then
  papi=1
  PATIENCE=100000 in_ns "$R" chrt -f 10 "$root/target/papi/bin/python" -B - "$work" "$root/share/api" "$router" >"$work/papi.log" 2>&1 <<'PYTHON' &
import glob, os, signal, sys, time
from vpp_papi import VPPApiClient
work, share, router = sys.argv[1:4]
client = VPPApiClient(apifiles=glob.glob(share + "/**/*.api.json", recursive=True), server_address=work + "/run/api.sock")
client.connect("measure-netlink")
# Seconds that the router's main thread was ready to run and had no processor.
def waited():
    return int(open(f"/proc/{router}/task/{router}/schedstat").read().split()[1]) / 1e9
worst, count = (0, 0), 0
def say(*_):
    global worst, count
    late, without = (1000 * part for part in worst)
    open(work + "/worst", "w").write(f"{late:.1f} ms of {count}, {without:.1f} of it without a processor")
    worst, count = (0, 0), 0
signal.signal(signal.SIGUSR1, say)
open(work + "/papi-ready", "w").write(str(os.getpid()))
while True:
    before, from_ = waited(), time.perf_counter()
    client.api.control_ping()
    worst, count = max(worst, (time.perf_counter() - from_, waited() - before)), count + 1
    time.sleep(0.002)
PYTHON
  await 10 test -s "$work/papi-ready" || papi=
fi
worst() {
  [ -n "$papi" ] || { echo "not asked, there is no vpp_papi"; return; }
  rm -f "$work/worst"
  kill -USR1 "$(cat "$work/papi-ready")"
  await 10 test -s "$work/worst"
  cat "$work/worst"
}
# Processor time of the main thread, in hundredths of a second.
spent() { awk '{ print $14 + $15 }' "/proc/$router/task/$router/stat"; }
has() { [ "$(followed)" -eq "$1" ]; }
now() { date +%s%N; }
phase() {
  local name=$1 want=$2 begun cpu kernel lost_before said gives
  coproc GIVE { ip netns exec "$L" "${giver[@]}" python3 "$work/give.py" "$name" "$ROUTES" "$work/some"; }
  gives=$GIVE_PID
  read -r said <&"${GIVE[0]}" || fail "no routes can be given to the kernel"
  lost_before=$(announcements_lost)
  PATIENCE=100000 in_a ping -i 0.002 10.0.2.2 >"$work/ping" 2>&1 &
  worst >/dev/null
  cpu=$(spent) begun=$(now)
  echo go >&"${GIVE[1]}"
  read -r said <&"${GIVE[0]}" || fail "the kernel has not taken all routes"
  kernel=$(now)
  if [ "$name" = replace ]; then await 120 replaced; else await 120 has "$want"; fi
  printf '%-8s %d routes: kernel %d ms, router %d ms later, %s us of the main thread for each, %s times announcements were lost; API at worst %s; ' \
    "$name" "$ROUTES" $(((kernel - begun) / 1000000)) $((($(now) - kernel) / 1000000)) \
    "$(awk -v t=$(($(spent) - cpu)) -v n="$ROUTES" 'BEGIN { printf "%.2f", t * 10000 / n }')" \
    "$(($(announcements_lost) - lost_before))" "$(worst)"
  interrupt "$A" ping
  wait "$gives" || true
  awk '/ packets transmitted/ { print "ping " $1 - $4 " of " $1 " lost" }' "$work/ping"
}
# Some routes, the one that is given last among them, lead to the other image.
replaced() {
  local prefix
  for prefix in $(cat "$work/some"); do says host-vb ctl show ip fib "$prefix" || return 1; done
}
worst >/dev/null
sleep 5
echo "at rest: API at worst $(worst)"
phase add "$ROUTES"
phase replace "$ROUTES"
phase del 0
phase add "$ROUTES"
pass
