#!/usr/bin/env bash
# What leaves the router has right checksums when it has to: host b's side is captured with checksum offload off, so
# that a packet whose checksum the router left to somebody else shows.
. "$(dirname "$0")/lib.sh"
need tcpdump ethtool python3 iperf3
begin
in_b ethtool -K eth0 rx off tx off >/dev/null 2>&1 || skip "ethtool cannot switch offloads"
in_r ethtool -K vb rx off tx off gro off >/dev/null 2>&1
ip netns exec "$B" tcpdump -i eth0 -U -w "$work/b.pcap" -s 0 ip >"$work/tcpdump" 2>&1 &
tcpdump=$!
await 5 grep -q 'listening on' "$work/tcpdump" || fail "tcpdump: $(cat "$work/tcpdump")"
in_b iperf3 -s -D -I "$work/iperf.pid" >/dev/null
await 5 listens "$B" 5201 || fail "iperf3 does not listen at host b"
expect "TCP" in_a iperf3 -c 10.0.2.2 -n 5M
expect "UDP" in_a iperf3 -c 10.0.2.2 -u -b 5M -t 1
expect "ping" in_a ping -q -c 5 -i 0.05 -W 2 10.0.2.2
kill "$tcpdump"
await 5 not_running "$tcpdump" || fail "tcpdump does not end"
# Packets that host b itself sends carry good checksums too, as its offload is off.
tcpdump -n -vv -r "$work/b.pcap" 2>/dev/null >"$work/text"
lines=$(grep -c 'cksum' "$work/text")
[ "$lines" -gt 100 ] || fail "only $lines packets with checksums captured"
bad=$(grep -Ec 'incorrect|bad cksum|wrong' "$work/text")
[ "$bad" -eq 0 ] || fail "$bad of $lines packets have wrong checksums: $(grep -E 'incorrect|bad cksum|wrong' "$work/text" | head -n 3)"
alive
pass "$lines packets"
