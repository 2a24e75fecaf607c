#!/usr/bin/env bash
# The router is the first hop, the other host the second; UDP, ICMP and TCP probes.
. "$(dirname "$0")/lib.sh"
need traceroute
begin
for kind in '' -I '-T -p 9'; do
  # shellcheck disable=SC2086
  out=$(in_a traceroute -n -w 1 -q 1 -m 4 $kind 10.0.2.2 2>&1)
  sed -n 2p <<<"$out" | grep -q '10\.0\.1\.1' || fail "hop 1 is not the router (traceroute $kind): $out"
  sed -n 3p <<<"$out" | grep -q '10\.0\.2\.2' || fail "hop 2 is not host b (traceroute $kind): $out"
done
# A destination without a route: silence, as in VPP, or the router says so.
in_a ping -c 1 -W 1 203.0.113.1 2>&1 | grep -qi 'unreachable' && fail "an unwanted destination unreachable"
ctl set ip unreachables on
out=$(in_a ping -c 1 -W 1 203.0.113.1 2>&1)
grep -qi 'unreachable' <<<"$out" || fail "no destination unreachable from the router: $out"
pass
