#!/usr/bin/env bash
# Clients of the CLI that behave badly hold up neither the router nor other clients.
. "$(dirname "$0")/lib.sh"
need python3 ping
begin
cat >"$work/bad.py" <<'PY'
import os, socket, sys
path = sys.argv[1]
def client():
    s = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    s.settimeout(5)
    s.connect(path)
    return s
held = []
for payload in [os.urandom(100_000), b"\x00" * 10_000, b"\xff\xfa\x18", b"show " * 250_000 + b"\n", b"{" * 100_000]:
    s = client()
    try:
        s.sendall(payload)
    except OSError:
        pass  # refused: as good
    held.append(s)
# Asks a lot and reads nothing.
s = client()
try:
    for _ in range(20_000):
        s.sendall(b"show interface\nshow errors\n")
except OSError:
    pass
held.append(s)
for _ in range(200):
    client().close()
print("done", flush=True)
sys.stdin.read()
PY
mkfifo "$work/end"
sleep 100 >"$work/end" &
helpers+=($!)
python3 "$work/bad.py" "$sock" <"$work/end" >"$work/bad.out" 2>&1 &
helpers+=($!)
await 60 grep -q done "$work/bad.out" || fail "the bad client did not get through: $(cat "$work/bad.out")"
CTL_TIMEOUT=5 expect "another client" ctl show version
out=$(in_a "$patient_ping" -q -i 0.01 -c 100 -W 10 10.0.2.2) || fail "ping: $out"
grep -q ' 0% packet loss' <<<"$out" || fail "$out"
ctl shwo interface >"$work/out" 2>&1 && fail "a wrong command succeeds"
grep -qi 'show' "$work/out" || fail "no suggestion for a wrong command: $(cat "$work/out")"
ctl --json show interface | python3 -c 'import json, sys; json.load(sys.stdin)' || fail "--json is not JSON"
alive
pass
