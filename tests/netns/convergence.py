#!/usr/bin/env python3
"""How long until packets to all prefixes of a table arrive.

convergence.py feed ROUTES4 ROUTES6 FILE FILE   BIRD's static routes of a table (the same each time), and a sample of addresses
convergence.py probe FROM TO SAMPLE CSV START   sends from namespace FROM to the sample, sees what arrives in TO, runs START once packets
                                                flow; ends when all have arrived for two seconds, and prints seconds since START
convergence.py plot SVG CSV...                  the share of prefixes that were reached over time, a line for each file
"""
import ctypes
import os
import random
import socket
import struct
import subprocess
import sys
import threading
import time

RATE = 5000  # packets a second
SAMPLES = 2000
PORT = 9999
GIVE_UP = 90  # seconds


def feed(n4, n6, routes, sample):
    """Lengths as in the Internet's tables, roughly; ten prefixes share their attributes."""
    rng = random.Random(19)
    four, six = {}, {}
    while len(four) < n4:
        (length,) = rng.choices((16, 18, 19, 20, 21, 22, 23, 24), (2, 3, 3, 5, 5, 12, 11, 60))
        a = rng.randrange(20 << 24, 192 << 24)
        if a >> 24 != 127:
            four[(a >> (32 - length) << (32 - length), length)] = a
    while len(six) < n6:
        (length,) = rng.choices((32, 36, 40, 44, 46, 48), (20, 8, 12, 12, 6, 42))
        a = 0x2A << 40 | rng.getrandbits(36)
        six[(a >> (48 - length) << (48 - length), length)] = a
    show4 = lambda a: socket.inet_ntop(socket.AF_INET, struct.pack("!I", a))
    show6 = lambda a: f"{a >> 32:x}:{a >> 16 & 0xffff:x}:{a & 0xffff:x}::"
    with open(routes, "w") as out:
        for name, table, show in (("ip4", four, show4), ("ip6", six, show6)):
            print(f"protocol static feed_{name} {{ disabled; ipv{name[2]};", file=out)
            for i, (a, length) in enumerate(table):
                print(f"route {show(a)}/{length} blackhole {{ bgp_community.add((65001,{i // 10 % 60000})); }};", file=out)
            print("}", file=out)
    share = SAMPLES * n6 // max(n4 + n6, 1)
    with open(sample, "w") as out:
        for table, show, count in ((four, show4, SAMPLES - share), (six, show6, share)):
            for a in rng.sample(sorted(table.values()), min(count, len(table))):
                print(show(a) if show is show4 else show(a) + "1", file=out)


def enter(netns):
    with open(f"/run/netns/{netns}") as file:
        if ctypes.CDLL(None, use_errno=True).setns(file.fileno(), 0x40000000):
            sys.exit(f"setns {netns}: {os.strerror(ctypes.get_errno())}")


def receive(sock, kind, arrived, done):
    header = 20 if kind == 0x0800 else 40
    sock.settimeout(0.2)
    while not done.is_set():
        try:
            frame = sock.recv(2048)
        except TimeoutError:
            continue
        if len(frame) >= 14 + header + 16 and frame[14 + header + 2 : 14 + header + 4] == struct.pack("!H", PORT):
            (number,) = struct.unpack_from("!Q", frame, 14 + header + 8)
            if number < len(arrived):
                arrived[number] = 1


def probe(source, sink, sample, csv, start):
    targets = [line.strip() for line in open(sample)]
    arrived, sent, done = bytearray((GIVE_UP + 10) * RATE), [], threading.Event()
    enter(sink)
    for kind in (0x0800, 0x86DD):
        sock = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(kind))
        sock.setsockopt(socket.SOL_SOCKET, 33, 64 << 20)  # SO_RCVBUFFORCE
        threading.Thread(target=receive, args=(sock, kind, arrived, done), daemon=True).start()
    enter(source)
    four, six = (socket.socket(family, socket.SOCK_DGRAM) for family in (socket.AF_INET, socket.AF_INET6))
    begin, begun = time.monotonic(), None
    last_check = begin
    while True:
        now = time.monotonic()
        if begun is None and now - begin > 1:
            begun = now
            subprocess.Popen(start, shell=True, stdout=subprocess.DEVNULL)
        while len(sent) < (now - begin) * RATE:
            target = targets[len(sent) % len(targets)]
            try:
                (six if ":" in target else four).sendto(struct.pack("!Q", len(sent)), (target, PORT))
            except OSError:
                pass  # unreachable, as long as there is no route
            sent.append(now)
        if begun and now - last_check > 0.5:
            last_check = now
            recent = [n for n in range(max(len(sent) - int(RATE * 2.5), 0), len(sent) - RATE // 2)]
            if now - begun > 3 and recent and all(arrived[n] for n in recent) or now - begun > GIVE_UP:
                break
        time.sleep(0.001)
    done.set()
    settled = len(sent) - RATE // 2
    lost = [sent[n] - begun for n in range(settled) if not arrived[n]]
    first = next((sent[n] - begun for n in range(settled) if arrived[n]), None)
    with open(csv, "w") as out:
        # A bin is as long as the sample takes, so that each prefix is in it once.
        bins = {}
        for n in range(settled):
            at = int((sent[n] - begun) * RATE / SAMPLES)
            bins.setdefault(at, []).append(arrived[n])
        for at, seen in sorted(bins.items()):
            print(f"{at * SAMPLES / RATE:.1f},{sum(seen) / len(seen):.4f}", file=out)
    whole = now - begun <= GIVE_UP
    print(f"{first if first is not None else -1:.2f} {max(lost) if whole and lost else -1:.2f}")


def plot(svg, files):
    colours = ("#1f77b4", "#2ca02c", "#d62728", "#ff7f0e", "#9467bd", "#8c564b")
    lines = [(os.path.basename(f)[:-4], [tuple(map(float, row.split(","))) for row in open(f)]) for f in files]
    most = max(max((t for t, share in points if share < 1), default=0) for _, points in lines) * 1.1 + 1
    x, y = lambda t: 60 + 620 * t / most, lambda share: 330 - 290 * share
    with open(svg, "w") as out:
        print('<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 720 400" font-family="sans-serif" font-size="13">', file=out)
        print('<rect width="720" height="400" fill="white"/>', file=out)
        for share in (0, 0.25, 0.5, 0.75, 1):
            print(f'<path d="M60 {y(share):.0f}H680" stroke="#ddd"/>', file=out)
            print(f'<text x="54" y="{y(share) + 4:.0f}" text-anchor="end">{share:.0%}</text>', file=out)
        step = max(round(most / 8), 1)
        for t in range(0, int(most) + 1, step):
            print(f'<text x="{x(t):.0f}" y="348" text-anchor="middle">{t}</text>', file=out)
        print('<text x="370" y="366" text-anchor="middle">seconds since the peer began to announce</text>', file=out)
        print('<text x="60" y="24">prefixes that packets get through to</text>', file=out)
        for i, (name, points) in enumerate(lines):
            way = " ".join(f"{x(t):.1f},{y(share):.1f}" for t, share in points if 0 <= t <= most)
            print(f'<polyline points="{way}" fill="none" stroke="{colours[i % 6]}" stroke-width="2"/>', file=out)
            print(f'<text x="{70 + 125 * i}" y="388" fill="{colours[i % 6]}">{name}</text>', file=out)
        print("</svg>", file=out)


if __name__ == "__main__":
    word, *words = sys.argv[1:]
    if word == "feed":
        feed(int(words[0]), int(words[1]), *words[2:])
    elif word == "probe":
        probe(*words)
    else:
        plot(words[0], words[1:])
