#!/usr/bin/env bash
# How fast the router follows routes of Linux: `ip -batch` gives the kernel a table in a namespace of images, replaces all of it, and takes it
# away. Prints, of each phase, how long the kernel needed, how much later the router had all, the processor time of the router's main
# thread for each route, and what happened meanwhile: how late a client of the binary API was answered at worst, how many packets between two
# hosts were lost, and how often announcements were lost (`listings: lost`).
#
#   scripts/in-namespace.sh tests/netns/measure-netlink.sh
#   ROUTES=1000000 WORKERS=1 scripts/in-namespace.sh tests/netns/measure-netlink.sh
#
# A table is given to the kernel by BATCHES programs at once. The client needs vpp_papi (scripts/papi.sh makes target/papi). Nothing is judged.
: "${ROUTES:=1000000}" "${WORKERS:=0}" "${BATCHES:=1}" "${CTL_TIMEOUT:=300}"
. "$(dirname "$0")/lib.sh"
need python3 ping
begin
for _ in $(seq "$WORKERS"); do expect "worker" ctl create worker; done
beside
for port in va:e0:1 vb:e1:2; do
  IFS=: read -r cable image net <<<"$port"
  expect "lcp create" ctl lcp create "host-$cable" host-if "$image" netns "$L"
  expect "address" ip -n "$L" addr add "10.0.$net.1/24" dev "$image"
done
python3 - "$ROUTES" "$BATCHES" "$work" <<'PYTHON'
import sys
routes, batches, work = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3]
for phase, words, end in (("add", "route add", "via 10.0.1.2 dev e0"), ("replace", "route replace", "via 10.0.2.2 dev e1"), ("del", "route del", "")):
    files = [open(f"{work}/{phase}.{n}", "w") for n in range(batches)]
    for n in range(routes):
        # In no order, as a daemon tells them.
        at = n * 0x9e3779b1 % (1 << 24) if routes <= 1 << 23 else n
        print(f"{words} {20 + (at >> 18) % 64}.{at >> 10 & 255}.{at >> 2 & 255}.{(at & 3) << 6}/26 {end} proto 186 metric 20", file=files[n % batches])
PYTHON
papi=
if [ -x "$root/target/papi/bin/python" ]; then
  papi=1
  PATIENCE=100000 in_ns "$R" "$root/target/papi/bin/python" -B - "$work" "$root/share/api" >"$work/papi.log" 2>&1 <<'PYTHON' &
import glob, os, signal, sys, time
from vpp_papi import VPPApiClient
work, share = sys.argv[1:3]
client = VPPApiClient(apifiles=glob.glob(share + "/**/*.api.json", recursive=True), server_address=work + "/run/api.sock")
client.connect("measure-netlink")
worst, count = 0, 0
def say(*_):
    global worst, count
    open(work + "/worst", "w").write(f"{worst * 1000:.1f} ms of {count}")
    worst, count = 0, 0
signal.signal(signal.SIGUSR1, say)
open(work + "/papi-ready", "w").write(str(os.getpid()))
while True:
    from_ = time.perf_counter()
    client.api.control_ping()
    worst, count = max(worst, time.perf_counter() - from_), count + 1
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
followed() { ctl show lcp netlink | awk '/prefixes:/ { print $2 }'; }
has() { [ "$(followed)" -eq "$1" ]; }
now() { date +%s%N; }
lost() { ctl show lcp netlink | sed -n 's/.*listings:.* lost \([0-9]*\).*/\1/p'; }
phase() {
  local name=$1 want=$2 begun cpu kernel batches=() n lost_before
  lost_before=$(lost)
  PATIENCE=100000 in_a ping -i 0.002 10.0.2.2 >"$work/ping" 2>&1 &
  worst >/dev/null
  cpu=$(spent) begun=$(now)
  for n in $(seq 0 $((BATCHES - 1))); do
    ip netns exec "$L" ip -batch "$work/$name.$n" >"$work/batch.$n" 2>&1 &
    batches+=($!)
  done
  wait "${batches[@]}"
  kernel=$(now)
  if [ "$name" = replace ]; then
    last=$(tail -n 1 "$work/replace.0" | cut -d' ' -f3)
    await 120 says host-vb ctl show ip fib "$last"
  else
    await 120 has "$want"
  fi
  printf '%-8s %d routes: kernel %d ms, router %d ms later, %s us of the main thread for each, %s announcements lost; API at worst %s; ' \
    "$name" "$ROUTES" $(((kernel - begun) / 1000000)) $((($(now) - kernel) / 1000000)) \
    "$(awk -v t=$(($(spent) - cpu)) -v n="$ROUTES" 'BEGIN { printf "%.2f", t * 10000 / n }')" \
    "$(($(lost) - lost_before))" "$(worst)"
  interrupt "$A" ping
  awk '/ packets transmitted/ { print "ping " $1 - $4 " of " $1 " lost" }' "$work/ping"
}
phase add "$ROUTES"
phase replace "$ROUTES"
phase del 0
pass
