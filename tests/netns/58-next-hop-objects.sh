#!/usr/bin/env bash
# Next hops and groups that routes of Linux name by number: what the kernel does with them, written out in routes or not, is what the
# router does, in both families. Host a pings addresses behind host b, by one next hop, by a group, after a replacement. Of a resilient
# group only the buckets of a member that goes move.
. "$(dirname "$0")/lib.sh"
need ping
begin
beside
in_l() { ip -n "$L" "$@"; }
in_l nexthop add id 999 blackhole 2>/dev/null || skip "the kernel has no next-hop objects"
in_l nexthop del id 999
for ns in "$A" "$B"; do
  ip netns exec "$ns" sysctl -qw net.ipv6.conf.all.disable_ipv6=0 net.ipv6.conf.eth0.disable_ipv6=0 || skip "the kernel has no IPv6"
done
ip -n "$A" addr add 2001:db8:1::2/64 dev eth0 nodad
ip -n "$A" route add default via 10.0.1.1
ip -n "$A" -6 route add default via 2001:db8:1::1
ip -n "$B" route add 10.0.1.0/24 via 10.0.2.1
for n in 2 3; do
  ip -n "$B" addr replace 10.0.2.$n/24 dev eth0
  ip -n "$B" addr add 2001:db8:2::$n/64 dev eth0 nodad
done
ip -n "$B" -6 route add 2001:db8:1::/64 via 2001:db8:2::1
ip -n "$B" addr add 198.51.100.1/32 dev lo
ip -n "$B" addr add 2001:db8:5::1/128 dev lo

expect "lcp-sync" ctl lcp lcp-sync on
for n in 1 2; do
  port=host-v$(tr 12 ab <<<$n)
  expect "lcp create" ctl lcp create "$port" host-if "e$n" netns "$L"
  expect "interface address" ctl set interface ip address "$port" "2001:db8:$n::1/64"
done
mirrored() { in_l -6 addr show dev e2 | grep '2001:db8:2::1/64' | grep -qv tentative; }
await 10 mirrored || fail "the addresses are not in Linux: $(in_l addr)"

# follows PREFIX NEXT-HOP...: whether the router has the route by these and no others.
follows() {
  local out=$1
  out=$(ctl show "$([[ $1 == *:* ]] && echo ip6 || echo ip)" fib "$1")
  shift
  [ "$(grep -o 'via [0-9a-f.:]* host-vb' <<<"$out" | sort -u | wc -l)" -eq $# ] || return 1
  local hop
  for hop in "$@"; do grep -q "via $hop host-vb" <<<"$out" || return 1; done
}
to4=198.51.100.0/24 to6=2001:db8:5::/48
both() { # both WHAT N...: by these neighbours, in both families
  local what=$1
  shift
  await 5 follows $to4 "${@/#/10.0.2.}" || fail "$what: $(ctl show ip fib $to4); Linux: $(in_l route show $to4; in_l nexthop)"
  await 5 follows $to6 "${@/#/2001:db8:2::}" || fail "$what: $(ctl show ip6 fib $to6); Linux: $(in_l -6 route show $to6; in_l nexthop)"
}
reached() {
  in_a ping -c 1 -W 1 198.51.100.1 && in_a ping -c 1 -W 1 2001:db8:5::1
}
# What an audit finds differs from what was heard: nothing, while nothing was lost.
audits=0
audited() { says "audit $audits\$" ctl show lcp netlink && ! says 'under way' ctl show lcp netlink; }
audit() {
  audits=$((audits + 1))
  expect "lcp audit" ctl lcp audit
  await 5 audited || fail "$1: no audit: $(ctl show lcp netlink)"
  [ -z "$(ctl show lcp drift)" ] || fail "$1: what was heard is not what there is: $(ctl show lcp drift)"
}
# A route by an interface without an image waits, and says for what.
in_l link add p0 type veth peer name p1 || fail "no veth pair"
in_l link set p0 up
in_l link set p1 up
in_l addr add 192.0.2.1/24 dev p0
expect "route" in_l route add 203.0.113.0/24 via 192.0.2.2
waits() { says '203.0.113.0/24 table 254 metric 0 waits for an image of this router: p0 is none' ctl show lcp pending; }
await 5 waits || fail "what waits is not told: $(ctl show lcp pending)"
for mode in 1 0; do
  ip netns exec "$L" sysctl -qw net.ipv4.nexthop_compat_mode=$mode || fail "nexthop_compat_mode cannot be set"
  at="mode $mode"
  for n in 2 3; do
    expect "next hop" in_l nexthop add id 1$n via 10.0.2.$n dev e2
    expect "next hop" in_l nexthop add id 2$n via 2001:db8:2::$n dev e2
  done
  expect "group" in_l nexthop add id 100 group 12,1/13,3
  expect "group" in_l nexthop add id 200 group 22,1/23,3
  expect "route" in_l route add $to4 nhid 12
  expect "route" in_l -6 route add $to6 nhid 22
  both "$at, one next hop" 2
  await 5 reached || fail "$at: host b is not reached: $(ctl show errors)"
  # Routes that name another number, a group with shares.
  expect "route" in_l route replace $to4 nhid 100
  expect "route" in_l -6 route replace $to6 nhid 200
  both "$at, a group" 2 3
  audit "$at, a group"
  says 'buckets:4' ctl show ip fib $to4 || fail "$at: the shares are not there: $(ctl show ip fib $to4)"
  await 5 reached || fail "$at: host b is not reached by a group"
  # A group and a next hop that become others, without a packet lost.
  in_a "$patient_ping" -q -i 0.01 -c 200 198.51.100.1 >"$work/ping" 2>&1 &
  ping=$!
  sleep 0.5
  expect "replace" in_l nexthop replace id 100 group 13
  expect "replace" in_l nexthop replace id 200 group 23
  both "$at, a group that was replaced" 3
  expect "replace" in_l nexthop replace id 13 via 10.0.2.2 dev e2
  expect "replace" in_l nexthop replace id 23 via 2001:db8:2::2 dev e2
  both "$at, a next hop that was replaced" 2
  wait $ping
  pings_answered "$work/ping" || fail "$at: packets were lost: $(tail -n 2 "$work/ping")"
  # A member that goes leaves the group; the last one takes group and routes along.
  expect "replace" in_l nexthop replace id 13 via 10.0.2.3 dev e2
  expect "replace" in_l nexthop replace id 23 via 2001:db8:2::3 dev e2
  expect "replace" in_l nexthop replace id 100 group 12/13
  expect "replace" in_l nexthop replace id 200 group 22/23
  both "$at, a group again" 2 3
  expect "delete" in_l nexthop del id 13
  expect "delete" in_l nexthop del id 23
  both "$at, a group that lost a member" 2
  audit "$at, a group that lost a member"
  expect "delete" in_l nexthop del id 12
  expect "delete" in_l nexthop del id 22
  both "$at, a group without members"
  # Routes by a blackhole.
  expect "next hop" in_l nexthop add id 30 blackhole
  expect "next hop" in_l -6 nexthop add id 31 blackhole
  expect "route" in_l route add $to4 nhid 30
  expect "route" in_l -6 route add $to6 nhid 31
  dropped() { says 'dpo-drop\|drop' ctl show ip fib $to4 && says 'dpo-drop\|drop' ctl show ip6 fib $to6; }
  await 5 dropped || fail "$at: no blackhole: $(ctl show ip fib $to4; ctl show ip6 fib $to6)"
  expect "flush" in_l nexthop flush
  gone() { ! says "^$to4" ctl show ip fib $to4 && ! says "^$to6" ctl show ip6 fib $to6; }
  await 5 gone || fail "$at: routes stay: $(ctl show ip fib $to4; ctl show ip6 fib $to6)"
  # An interface that goes down takes them along without a word of the kernel.
  expect "next hop" in_l nexthop add id 12 via 10.0.2.2 dev e2
  expect "next hop" in_l nexthop add id 22 via 2001:db8:2::2 dev e2
  expect "route" in_l route add $to4 nhid 12
  expect "route" in_l -6 route add $to6 nhid 22
  both "$at, before the interface goes down" 2
  audit "$at, before the interface goes down"
  expect "link" in_l link set e2 down
  await 5 gone || fail "$at: routes stay by an interface that is down: $(ctl show ip fib $to4; ctl show ip6 fib $to6)"
  expect "link" in_l link set e2 up
  await 5 mirrored || expect "address" in_l addr add 2001:db8:2::1/64 dev e2 nodad
  expect "no route comes back" gone
  in_l nexthop flush
done

# A resilient group has the kernel's number of buckets. A member that goes moves its own and no others; one that comes takes its share.
# spread: bucket and neighbour, a line each.
spread() { ctl show ip fib $to4 | sed -n 's/^ *\[\([0-9]*\)\] .*via \([0-9.]*\) host-vb.*/\1 \2/p'; }
# moved FILE FILE NEIGHBOUR: buckets that are another neighbour's in the second file, but those that were the neighbour's or are.
moved() { join "$1" "$2" | awk -v its="$3" '$2 != $3 && $2 != its && $3 != its { n++ } END { print n + 0 }'; }
resilient=
for n in 2 3 4; do expect "next hop" in_l nexthop add id 4$n via 10.0.2.$n dev e2; done
if in_l nexthop add id 300 group 42/43/44 type resilient buckets 64 idle_timer 60 2>/dev/null; then
  resilient=", a resilient group"
  expect "route" in_l route add $to4 nhid 300
  await 5 follows $to4 10.0.2.2 10.0.2.3 10.0.2.4 || fail "a resilient group: $(ctl show ip fib $to4); Linux: $(in_l nexthop)"
  says 'buckets:64' ctl show ip fib $to4 || fail "not as many buckets as Linux has: $(ctl show ip fib $to4)"
  spread | sort >"$work/first"
  expect "delete" in_l nexthop del id 43
  await 5 follows $to4 10.0.2.2 10.0.2.4 || fail "a resilient group that lost a member: $(ctl show ip fib $to4)"
  spread | sort >"$work/without"
  expect "next hop" in_l nexthop add id 43 via 10.0.2.3 dev e2
  expect "replace" in_l nexthop replace id 300 group 42/43/44 type resilient
  await 5 follows $to4 10.0.2.2 10.0.2.3 10.0.2.4 || fail "a resilient group with its member again: $(ctl show ip fib $to4)"
  spread | sort >"$work/again"
  [ "$(wc -l <"$work/first")" -eq 64 ] && [ "$(wc -l <"$work/again")" -eq 64 ] || fail "buckets are not shown: $(ctl show ip fib $to4)"
  [ "$(moved "$work/first" "$work/without" 10.0.2.3)" -eq 0 ] || fail "a member that goes moves others' buckets: $(join "$work/first" "$work/without")"
  [ "$(moved "$work/without" "$work/again" 10.0.2.3)" -eq 0 ] || fail "a member that comes moves others' buckets: $(join "$work/without" "$work/again")"
  [ "$(grep -c ' 10.0.2.3$' "$work/again")" -ge 20 ] || fail "a member that comes gets no share: $(cat "$work/again")"
  audit "a resilient group"
fi
alive
pass "two modes$resilient"
