#!/usr/bin/env python3
"""Records superframes and what the kernel itself cuts them into.  Run as root: python3 capture.py

   host a (offloads on) -- bridge --(tso, gso and tx checksum off)-- host b

A packet socket with PACKET_VNET_HDR where a's superframes enter the bridge sees them unfinished; another
at b sees the finished segments. Each file: line 1 is virtio_net_hdr and superframe, the rest the segments.
"""
import ctypes, os, socket, struct, subprocess, sys, threading, time

P = "shoal-test-cap-"
libc = ctypes.CDLL(None)

def sh(cmd):
    subprocess.run(cmd, shell=True, check=True)

def enter(ns):
    fd = os.open("/run/netns/" + P + ns, os.O_RDONLY)
    assert libc.setns(fd, 0x40000000) == 0
    os.close(fd)

def packet_socket(ns, dev):
    enter(ns)
    s = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 0)
    s.setsockopt(263, 15, 1)  # PACKET_VNET_HDR
    s.setsockopt(263, 23, 1)  # PACKET_IGNORE_OUTGOING
    s.bind((dev, 3))
    s.settimeout(1)
    return s

def drain(s):
    out = []
    try:
        while True:
            out.append(s.recv(70000))
    except TimeoutError:
        return out

def run(name, family, addr_a, addr_b, proto, mtu):
    for dev, ns in (("a0", "a"), ("a1", "br"), ("b1", "br"), ("b0", "b"), ("br0", "br")):
        sh(f"ip -n {P}{ns} link set {dev} mtu {mtu}")
    time.sleep(2)  # IPv6 duplicate address detection
    sup, seg = packet_socket("br", "a1"), packet_socket("b", "b0")
    enter("b")
    kind = socket.SOCK_STREAM if proto == "tcp" else socket.SOCK_DGRAM
    rx = socket.socket(family, kind)
    rx.bind((addr_b, 7777))
    if proto == "tcp":
        rx.listen()
    enter("a")
    tx = socket.socket(family, kind)
    size = (mtu - 40 - 12) if family == socket.AF_INET else (mtu - 60 - 12)
    data = bytes(i * 7 & 0xff for i in range(size * 2 + 101))
    if proto == "tcp":
        tx.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        tx.connect((addr_b, 7777))
        tx.send(b"warm"); time.sleep(0.2)
        tx.send(data)
    else:
        tx.setsockopt(17, 103, 400)  # UDP_SEGMENT
        tx.connect((addr_b, 7777))
        tx.send(data[:1001])
    sups = [f for f in drain(sup) if f[1] != 0]
    assert len(sups) == 1, len(sups)
    segs = [f for f in drain(seg) if len(f) > 120]
    segs = [f for f in segs if f[16:22] == sups[0][16:22]]
    assert all(f[0] & 1 == 0 for f in segs), "segments must be finished"
    with open(name + ".hex", "w") as out:
        out.write(sups[0].hex() + "\n")
        for f in segs:
            out.write(f[10:].hex() + "\n")
    print(name, sups[0][:10].hex(), len(sups[0]), [len(f) for f in segs])

try:
    for ns in ("a", "b", "br"):
        sh(f"ip netns add {P}{ns}; ip -n {P}{ns} link set lo up")
    sh(f"ip -n {P}a link add a0 type veth peer name a1 netns {P}br; ip -n {P}br link add b1 type veth peer name b0 netns {P}b")
    sh(f"ip -n {P}br link add br0 type bridge; for i in a1 b1; do ip -n {P}br link set $i master br0 up; done; ip -n {P}br link set br0 up")
    sh(f"ip netns exec {P}br ethtool -K b1 tso off gso off tx off tx-udp-segmentation off >/dev/null")
    for ns, dev, n in (("a", "a0", 1), ("b", "b0", 2)):
        sh(f"ip -n {P}{ns} addr add 10.9.9.{n}/24 dev {dev}; ip -n {P}{ns} link set {dev} up")
    run("tcp4", socket.AF_INET, "10.9.9.1", "10.9.9.2", "tcp", 600)
    run("udp4", socket.AF_INET, "10.9.9.1", "10.9.9.2", "udp", 600)
    for ns, dev, n in (("a", "a0", 1), ("b", "b0", 2)):  # an MTU below 1280 has removed them
        sh(f"ip -n {P}{ns} link set {dev} mtu 1280; ip -n {P}{ns} addr add fd00:9::{n}/64 dev {dev} nodad")
    run("tcp6", socket.AF_INET6, "fd00:9::1", "fd00:9::2", "tcp", 1280)
    run("udp6", socket.AF_INET6, "fd00:9::1", "fd00:9::2", "udp", 1280)
finally:
    for ns in ("a", "b", "br"):
        subprocess.run(f"ip netns del {P}{ns}", shell=True)
