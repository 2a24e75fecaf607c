#!/usr/bin/env bash
# Routes until memory ends: under `memory { main-heap-size }`, and in a control group where one can be made. The router
# refuses in words, forwards on, has nothing half done, and takes routes again when others have gone.
# ALONE=it takes a processor and much memory for long
. "$(dirname "$0")/lib.sh"
need ping nsenter
group=
leave() {
  cleanup
  [ -z "$group" ] || rmdir "$group" 2>/dev/null
}
hosts

# full WHAT: adds routes until they are refused, in bulks and one by one, and looks around.
full() {
  local n out from added=0
  attach va 10.0.1.1/24
  attach vb 10.0.2.1/24
  await 5 in_a ping -c 1 -W 1 10.0.2.2 || fail "no answer from host b"
  PATIENCE=100 in_a ping -q -i 0.005 -W 2 10.0.2.2 >"$work/ping" 2>&1 &
  # A bulk each /8, of /24s and hosts, so that plies and entries grow.
  for n in $(seq 20 120); do
    out=$(ctl ip route add count 200000 "$n.0.0.1/32" via 10.0.2.2 2>&1) || break
    out=$(ctl ip route add count 30000 "$n.128.0.0/24" via 10.0.2.9 2>&1) || break
    added=$((added + 230000))
  done
  # Of a bulk, the notes how to undo it may be what there is no memory for.
  grep -Eq "(does not fit into table 0|too many at once, nearest [0-9]+): no memory: tables take .* MiB, and $2" <<<"$out" || fail "$1: no refusal: $out"
  alive
  for n in $(seq 130 140); do
    out=$(ctl ip route add count 1000 "$n.0.0.1/32" via 10.0.2.2 2>&1) || break
    added=$((added + 1000))
  done
  in_a ping -c 1 -W 10 10.0.2.2 >/dev/null || fail "$1: no forwarding when memory is full"
  out=$(CTL_TIMEOUT=60 ctl show fib check)
  grep -q 'all is well' <<<"$out" || fail "$1: $out"
  expect "$1: capacity" ctl show fib capacity
  # A bulk goes and comes again, twice; in pieces, because the notes of one bulk need memory too.
  for _ in 1 2; do
    expect "$1: withdraw" ctl ip route del count 100000 20.0.0.1/32
    for from in 0 20480 40960 61440 81920; do
      n=$((from == 81920 ? 18080 : 20480))
      out="ip route add count $n 20.$((from / 65536)).$((from / 256 % 256)).1/32 via 10.0.2.2"
      await 5 ctl $out || fail "$1: what was withdrawn does not fit again: $(ctl $out 2>&1)"
    done
  done
  for n in $(ip netns pids "$A"); do kill -INT "$n" 2>/dev/null; done
  await 5 grep -q 'packets transmitted' "$work/ping" || fail "$1: ping says nothing"
  read -r sent received <<<"$(awk '/packets transmitted/ { print $1, $4 }' "$work/ping")"
  [ $((sent - received)) -le 1 ] || fail "$1: $((sent - received)) of $sent pings lost"
  said+=("$1: $added routes, resident $(awk '/VmHWM/ { print int($2 / 1024) }' "/proc/$router/status") MiB at most, $sent pings")
}
said=()

start_router cpu { workers 1 } memory { main-heap-size 48m }
full "main-heap-size 48m" '.memory main-heap-size'
stop_router || fail "the router did not end"

# A control group of either version, if this is a place where one may be made.
for parent in /sys/fs/cgroup/memory /sys/fs/cgroup; do
  limit=memory.max
  [ -e "$parent/memory.limit_in_bytes" ] && limit=memory.limit_in_bytes
  if mkdir "$parent/shoal-$id" 2>/dev/null; then
    group=$parent/shoal-$id
    trap leave EXIT
    if echo $((256 << 20)) 2>/dev/null >"$group/$limit"; then break; fi
    rmdir "$group"
    group=
  fi
done
if [ -n "$group" ]; then
  mkdir -p "$work/run"
  # `ip netns exec` would hide the control groups from the router.
  (echo "$BASHPID" >"$group/cgroup.procs" && exec nsenter --net="/run/netns/$R" "$SHOAL" \
    unix { nodaemon nosyslog runtime-dir "$work/run" } configuration { restore off } cpu { workers 1 }) >>"$work/shoal.log" 2>&1 &
  router=$!
  await 10 "$SHOALCTL" -s "$sock" show version || fail "the router does not answer within 10 seconds"
  # Another router, another hardware address.
  ip -n "$A" neigh flush all && ip -n "$B" neigh flush all
  full "control group of 256 MiB" 'the control group may have 256'
else
  said+=("no control group can be made here")
fi
pass "$(IFS=';'; echo "${said[*]}")"
