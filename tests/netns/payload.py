#!/usr/bin/env python3
"""Bytes from host to host by TCP and UDP, compared to the last one by their hashes.

payload.py serve PORT               answers until it is ended, IPv4 and IPv6
payload.py send PORT BYTES HOST...  sends BYTES by TCP, and datagrams of many sizes by UDP, to each host; says what
                                    is wrong and ends with 1, or prints one line

A datagram that is lost is sent again; one that comes with other bytes is an error at once.
"""
import errno, hashlib, os, select, socket, struct, sys, threading, time

UDP_SEGMENT = 103
SIZES = (1, 2, 47, 48, 1200, 1451, 1452)


def digest(data):
    return hashlib.sha256(data).digest()


def tcp_one(conn):
    with conn:
        seen, count = hashlib.sha256(), 0
        while data := conn.recv(1 << 18):
            seen.update(data)
            count += len(data)
        conn.sendall(struct.pack("!Q", count) + seen.digest())


def serve(port):
    udp = []
    for family in (socket.AF_INET, socket.AF_INET6):
        listener = socket.socket(family, socket.SOCK_STREAM)
        datagrams = socket.socket(family, socket.SOCK_DGRAM)
        for sock in (listener, datagrams):
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            if family == socket.AF_INET6:
                sock.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
            sock.bind(("", port))
        listener.listen(16)
        udp.append(datagrams)

        def accept(listener=listener):
            while True:
                threading.Thread(target=tcp_one, args=(listener.accept()[0],), daemon=True).start()

        threading.Thread(target=accept, daemon=True).start()
    while True:
        for sock in select.select(udp, [], [])[0]:
            data, peer = sock.recvfrom(1 << 16)
            # A number the sender knows it by, and what came with it.
            sock.sendto(data[:8] + digest(data), peer)


def send_tcp(host, port, payload):
    with socket.create_connection((host, port), timeout=20) as conn:
        conn.sendall(payload)
        conn.shutdown(socket.SHUT_WR)
        answer = b""
        while data := conn.recv(1 << 16):
            answer += data
    want = struct.pack("!Q", len(payload)) + digest(payload)
    if answer != want:
        raise ValueError(f"TCP to {host}: {len(payload)} bytes came as {int.from_bytes(answer[:8], 'big')} others")


def send_udp(host, port):
    """Datagrams of many sizes, then trains of equal ones that the kernel hands over as one packet."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.socket(family, socket.SOCK_DGRAM) as sock:
        sock.connect((host, port))
        number, trains = 0, []
        for size in SIZES:
            number += 1
            trains.append((0, [struct.pack("!Q", number) + os.urandom(size)]))
        for size in (200, 1200, 1440):
            train = []
            for _ in range(8):
                number += 1
                train.append(struct.pack("!Q", number) + os.urandom(size - 8))
            trains.append((size, train))
        until = time.monotonic() + 15
        for size, train in trains:
            want = {datagram[:8]: digest(datagram) for datagram in train}
            while want:
                if time.monotonic() > until:
                    raise ValueError(f"UDP to {host}: no answer to {len(want)} datagrams of {len(train[0])} bytes")
                left = b"".join(d for d in train if d[:8] in want)
                sock.setsockopt(socket.IPPROTO_UDP, UDP_SEGMENT, size if len(left) > size else 0)
                sock.settimeout(0.3)
                try:
                    sock.send(left)
                    while want:
                        answer = sock.recv(1 << 16)
                        if answer[:8] in want and want.pop(answer[:8]) != answer[8:]:
                            raise ValueError(f"UDP to {host}: a datagram of {len(train[0])} bytes came as another")
                except TimeoutError:
                    pass
                except ConnectionRefusedError:
                    raise ValueError(f"UDP to {host}: there is no listener")
                except OSError as error:
                    # A router has reported that for the one before; the next goes in fragments.
                    if error.errno != errno.EMSGSIZE:
                        raise


def send(port, count, hosts):
    payload = os.urandom(count)
    begun = time.monotonic()
    for host in hosts:
        try:
            send_tcp(host, port, payload)
            send_udp(host, port)
        except (OSError, ValueError) as error:
            print(f"{host}: {error}")
            return 1
    took = time.monotonic() - begun
    print(f"{len(hosts)} hosts, {count} bytes each, {took:.1f} s")
    return 0


if __name__ == "__main__":
    if sys.argv[1:2] == ["serve"]:
        serve(int(sys.argv[2]))
    else:
        sys.exit(send(int(sys.argv[2]), int(sys.argv[3]), sys.argv[4:]))
