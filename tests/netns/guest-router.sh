# What scripts of guests share that have a router, and hosts in namespaces, in the guest. A script sources it as /router.sh; the image has
# it by "${guest_router[@]}" (guest.sh), and `ip` as /bin/iproute2.
#
# ip, c, dp, host WHO         Linux's ip; the router's CLI; ip in dp, the namespace of images; a command in a namespace.
# until_ok COMMAND            repeats it for $patience seconds, 20 unless set; then the guest's script ends, with what the router and
#                             Linux know, and with what `more_is_known` prints.
# four_hosts                  hosts h0 to h3, namespaces with an eth0, and a router with images e0 to e3 in dp: h0 and h2 are
#                             10.0.1.2 and 2001:db8:1::2, h1 and h3 are 10.0.2.2 and 2001:db8:2::2, the router's side is to be .1 and ::1.
patience=20
mount -t tmpfs run /run
mkdir -p /run/netns /tmp/run /var
ln -s /run /var/run
ip() { iproute2 "$@"; }
c() { shoalctl -s /tmp/run/cli.sock "$@"; }
dp() { iproute2 -n dp "$@"; }
host() { local of=$1; shift; iproute2 netns exec "$of" "$@"; }
more_is_known() { :; }
until_ok() {
  local by=$(($(cut -d. -f1 /proc/uptime) + patience))
  while :; do
    "$@" >/tmp/out 2>&1 && { say "ok $*"; return; }
    [ "$(cut -d. -f1 /proc/uptime)" -lt "$by" ] || break
    sleep 0.2
  done
  say "FAILED $*"
  { cat /tmp/out; c show lcp; c show lcp vrf; c show lcp vlan; c show lcp netlink; c show lcp pending; c show interface address
    c show errors; c show ip fib; dp addr; dp route show table all; more_is_known; tail -n 20 /tmp/shoal.log; } 2>&1 | sed 's/^/GUEST: /'
  # What comes after it would fail, too, and take its time.
  say done
  while :; do sleep 1000; done
}
shows() { local want=$1; shift; "$@" 2>&1 | grep -q -- "$want"; }
lacks() { local want=$1; shift; ! "$@" 2>&1 | grep -q -- "$want"; }
reach() { host "$1" ping -c 1 -W 1 "$2"; }
reach6() { host "$1" ping6 -c 1 -W 1 "$2"; }
four_hosts() {
  sysctl -q -w net.ipv6.conf.default.accept_dad=0 2>/dev/null
  ip netns add dp
  ip netns exec dp sysctl -q -w net.ipv6.conf.default.accept_dad=0
  ip -n dp link set lo up
  for n in 0 1 2 3; do
    ip netns add h$n
    ip netns exec h$n sysctl -q -w net.ipv6.conf.default.accept_dad=0
    ip link add p$n type veth peer name eth0 netns h$n
    ip link set p$n mtu 1600 up
    ip -n h$n link set lo up
    ip -n h$n link set eth0 mtu 1600 up
    net=$((n % 2 + 1))
    ip -n h$n addr add 10.0.$net.2/24 dev eth0
    ip -n h$n addr add 2001:db8:$net::2/64 dev eth0 nodad
    ip -n h$n route add default via 10.0.$net.1
    ip -n h$n -6 route add default via 2001:db8:$net::1
  done
  shoal unix { nodaemon nosyslog runtime-dir /tmp/run } configuration { directory /tmp/lib } buffers { buffers-per-numa 8192 } >/tmp/shoal.log 2>&1 &
  # On a machine that is busy with others it takes its time.
  patience=90 until_ok c show version
  for n in 0 1 2 3; do
    run c create host-interface name p$n
    run c set interface state host-p$n up
    run c lcp create host-p$n host-if e$n netns dp
  done
}
