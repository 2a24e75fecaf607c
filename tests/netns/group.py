#!/usr/bin/env python3
"""Packets to a multicast group, IPv4 or IPv6, by a host's interface eth0.

    group.py send GROUP SECONDS       100 numbered packets a second; prints how many were sent
    group.py receive GROUP SECONDS    joins; prints how many arrived, the first number, how many are missing behind it, how many came again
"""
import socket
import struct
import sys
import time

word, group, seconds = sys.argv[1], sys.argv[2], float(sys.argv[3])
family, protocol = (socket.AF_INET6, socket.IPPROTO_IPV6) if ":" in group else (socket.AF_INET, socket.IPPROTO_IP)
eth0 = socket.if_nametoindex("eth0")
s = socket.socket(family, socket.SOCK_DGRAM)
end = time.monotonic() + seconds
if word == "send":
    if family == socket.AF_INET6:
        s.setsockopt(protocol, socket.IPV6_MULTICAST_HOPS, 8)
        s.setsockopt(protocol, socket.IPV6_MULTICAST_IF, eth0)
    else:
        s.setsockopt(protocol, socket.IP_MULTICAST_TTL, 8)
        s.setsockopt(protocol, socket.IP_MULTICAST_IF, struct.pack("=4s4si", bytes(4), bytes(4), eth0))
    n = 0
    while time.monotonic() < end:
        s.sendto(struct.pack("!I", n), (group, 5000))
        n += 1
        time.sleep(0.01)
    print(n)
else:
    s.bind((group, 5000))
    if family == socket.AF_INET6:
        s.setsockopt(protocol, socket.IPV6_JOIN_GROUP, socket.inet_pton(family, group) + struct.pack("=i", eth0))
    else:
        s.setsockopt(protocol, socket.IP_ADD_MEMBERSHIP, socket.inet_aton(group) + struct.pack("=4si", bytes(4), eth0))
    s.settimeout(0.5)
    seen = []
    while time.monotonic() < end:
        try:
            seen.append(struct.unpack("!I", s.recv(100))[0])
        except TimeoutError:
            pass
    again = len(seen) - len(set(seen))
    holes = max(seen) - min(seen) + 1 - len(set(seen)) if seen else -1
    print(len(seen), min(seen, default=-1), holes, again)
