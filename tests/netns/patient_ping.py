#!/usr/bin/env python3
"""Sends echo requests and waits for each answer, however late: what was lost is lost then, and not late.

    patient_ping.py [-6] [-q] -c COUNT -i SECONDS [-s BYTES] [-M do] [-W SECONDS] [-I ADDRESS] DESTINATION

The options are those of ping, which waits only twice as long as its slowest answer took, once it has sent its last request: -W counts if
there was no answer at all. On a machine with other work the last answers may take longer. The summary is like ping's; the exit code is 0
if every request was answered.
"""
import argparse
import os
import select
import socket
import struct
import sys
import time


def checksum(data: bytes) -> int:
    total = sum(struct.unpack(f"!{len(data) // 2}H", data if len(data) % 2 == 0 else data[:-1]))
    total += data[-1] << 8 if len(data) % 2 else 0
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    return ~total & 0xFFFF


def options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("-6", dest="six", action="store_true")
    parser.add_argument("-q", action="store_true")
    parser.add_argument("-c", dest="count", type=int, required=True)
    parser.add_argument("-i", dest="interval", type=float, required=True)
    parser.add_argument("-s", dest="size", type=int, default=56)
    parser.add_argument("-M", dest="discovery", choices=["do"])
    parser.add_argument("-W", dest="patience", type=float, default=10)
    parser.add_argument("-I", dest="source")
    parser.add_argument("destination")
    return parser.parse_args()


def main() -> int:
    given = options()
    six = given.six or ":" in given.destination
    family = socket.AF_INET6 if six else socket.AF_INET
    sock = socket.socket(family, socket.SOCK_RAW, socket.IPPROTO_ICMPV6 if six else socket.IPPROTO_ICMP)
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4 << 20)
    if given.discovery:
        # IPV6_MTU_DISCOVER or IP_MTU_DISCOVER, DO: a request that is too long is an error here, and no router may cut it.
        sock.setsockopt(*((socket.IPPROTO_IPV6, 23) if six else (socket.IPPROTO_IP, 10)), 2)
    if given.source:
        sock.bind((given.source, 0))
    sock.connect((given.destination, 0))
    number = os.getpid() & 0xFFFF
    request, answer = (128, 129) if six else (8, 0)
    sent, answered, times = {}, set(), []
    payload = bytes(n & 0xFF for n in range(given.size))

    def send(nth: int) -> None:
        # The field has 16 bits: what answers is the latest of those that it can be.
        seq = nth & 0xFFFF
        head = struct.pack("!BBHHH", request, 0, 0, number, seq)
        # The kernel fills in the checksum of ICMPv6.
        total = 0 if six else checksum(head + payload)
        sent[nth] = time.monotonic()
        sock.send(struct.pack("!BBHHH", request, 0, total, number, seq) + payload)

    def receive() -> None:
        data = sock.recv(65535)
        message = data if six else data[(data[0] & 15) * 4 :]
        if len(message) < 8:
            return
        kind, _, _, of, seq = struct.unpack("!BBHHH", message[:8])
        nth = len(sent) - (len(sent) - seq & 0xFFFF)
        if kind == answer and of == number and nth in sent and nth not in answered and message[8:] == payload:
            answered.add(nth)
            times.append((time.monotonic() - sent[nth]) * 1000)

    begun = due = time.monotonic()
    while len(sent) < given.count:
        try:
            send(len(sent) + 1)
        except OSError as error:
            print(f"ping: {error}", file=sys.stderr)
        due += given.interval
        while (left := due - time.monotonic()) > 0 or select.select([sock], [], [], 0)[0]:
            if select.select([sock], [], [], max(left, 0))[0]:
                receive()
    end = time.monotonic() + given.patience
    while len(answered) < len(sent) and (left := end - time.monotonic()) > 0:
        if select.select([sock], [], [], left)[0]:
            receive()
    lost = len(sent) - len(answered)
    took = (time.monotonic() - begun) * 1000
    lines = [
        f"PING {given.destination} {given.size} data bytes",
        "",
        f"--- {given.destination} ping statistics ---",
        f"{len(sent)} packets transmitted, {len(answered)} received, {lost * 100 / len(sent):g}% packet loss, time {took:.0f}ms",
    ]
    if lost:
        lines.append("lost: " + " ".join(str(nth) for nth in sent if nth not in answered))
    if times:
        lines.append(f"rtt min/avg/max = {min(times):.3f}/{sum(times) / len(times):.3f}/{max(times):.3f} ms")
    # In one piece: a reader that has found what it looks for goes.
    sys.stdout.write("\n".join(lines) + "\n")
    sys.stdout.flush()
    return 1 if lost else 0


if __name__ == "__main__":
    sys.exit(main())
