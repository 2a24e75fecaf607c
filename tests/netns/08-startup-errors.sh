#!/usr/bin/env bash
# A start-up configuration with mistakes is refused whole, with exit code 2, and touches nothing; a command file with
# mistakes is named line by line and the router runs on; a second router is refused; the end leaves nothing.
. "$(dirname "$0")/lib.sh"
hosts
mkdir -p "$work/run"
cat >"$work/bad.conf" <<CONF
unix { nodaemon runtime-dir $work/new }
cpu { wrokers 1 }
buffers { buffers-per-numa many }
nosuchstanza { }
CONF
"$SHOAL" -c "$work/bad.conf" >"$work/out" 2>&1
code=$?
[ "$code" -eq 2 ] || fail "exit code $code, not 2: $(cat "$work/out")"
for word in bad.conf:2 bad.conf:3 bad.conf:4 workers; do
  grep -q "$word" "$work/out" || fail "'$word' is not in: $(cat "$work/out")"
done
[ ! -e "$work/new" ] || fail "the runtime directory was made although the configuration is wrong"
"$SHOAL" --check-config unix { gid no-such-group } >"$work/out" 2>&1 && fail "a group that is not there passes"
"$SHOAL" --check-config unix { nodaemon } dpdk { dev 0000:00:00.0 } >"$work/out" 2>&1 || fail "dpdk stanza: $(cat "$work/out")"
grep -q dpdk "$work/out" || fail "no warning names dpdk: $(cat "$work/out")"

printf 'create host-interface name va\nset interface state host-va sideways\nset int ip address host-va 10.0.1.1/24\nnonsense\n' >"$work/commands"
start_router unix { exec "$work/commands" pidfile shoal.pid }
await 5 grep -q 'commands:2' "$work/shoal.log" || fail "line 2 is not named"
grep -q 'commands:4' "$work/shoal.log" || fail "line 4 is not named"
says '10.0.1.1/24' ctl show interface address || fail "the right lines of the bad file were not run"
[ "$(cat "$work/run/shoal.pid")" = "$router" ] || fail "the pid file is wrong"
"$SHOAL" unix { nodaemon nosyslog runtime-dir "$work/run" } >"$work/out" 2>&1 && fail "a second router runs"
grep -q 'another process' "$work/out" || fail "the second router does not say why: $(cat "$work/out")"
ctl show version >/dev/null || fail "the second router has taken the first one's socket"
before=$(date +%s%N)
stop_router || fail "the router's exit code is not 0"
took=$((($(date +%s%N) - before) / 1000000))
[ "$took" -lt 2000 ] || fail "the end took $took ms"
[ -z "$(ls -A "$work/run")" ] || fail "left behind: $(ls -A "$work/run")"

# In the background: the command returns when the router is up, and says so if it is not.
"$SHOAL" unix { runtime-dir "$work/run" pidfile shoal.pid } configuration { restore off } >"$work/out" 2>&1 || fail "background: $(cat "$work/out")"
pid=$(cat "$work/run/shoal.pid")
ctl show version >/dev/null || { kill "$pid"; fail "no CLI although the command has returned"; }
"$SHOAL" unix { runtime-dir "$work/run" } >"$work/out" 2>&1 && fail "a second router runs in the background"
kill "$pid"
await 5 not_running "$pid" || fail "the router in the background does not end"
printf 'show version\nquit\n' | timeout 20 "$SHOAL" unix { interactive runtime-dir "$work/run" } configuration { restore off } >"$work/out" 2>&1
grep -qi shoal "$work/out" || fail "the console does not answer: $(cat "$work/out")"
pass
