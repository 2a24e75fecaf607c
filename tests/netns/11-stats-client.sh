#!/usr/bin/env bash
# VPP's own stats client (vpp_papi of PyPI) reads the segment while packets flow.
. "$(dirname "$0")/lib.sh"
need python3 ping
venv=$root/target/papi-venv
if ! "$venv/bin/python" -c 'import vpp_papi' 2>/dev/null; then
  python3 -m venv "$venv" >"$work/pip" 2>&1 && "$venv/bin/pip" install -q vpp_papi >>"$work/pip" 2>&1 \
    || skip "vpp_papi cannot be installed: $(tail -n 1 "$work/pip")"
fi
begin
in_a ping -q -i 0.01 -c 100 -W 2 10.0.2.2 >/dev/null || fail "ping"
"$venv/bin/python" - "$work/run/stats.sock" >"$work/out" 2>&1 <<'PY' || fail "$(cat "$work/out")"
import sys
from vpp_papi.vpp_stats import VPPStats
stats = VPPStats(sys.argv[1])
stats.connect()
names = list(stats["/if/names"])
at = names.index("host-va")
rx = stats["/if/rx"][:, at]
assert rx.sum_packets() >= 100, rx
assert rx.sum_octets() >= 100 * 98, rx
linked = stats["/interfaces/host-va/rx"]
assert linked.sum_packets() >= 100, linked
errors = [n for n in stats.directory if n.startswith("/err/")]
assert errors, "no error counters"
for name in errors:
    assert stats[name].sum() >= 0
assert stats["/sys/heartbeat"] >= 1
assert stats["/sys/num_worker_threads"] == 0
assert stats["/buffer-pools/default-numa-0/available"] > 0
for name in stats.directory:
    stats[name]
print(len(stats.directory))
PY
pass "$(tail -n 1 "$work/out") entries"
