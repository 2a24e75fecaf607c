#!/usr/bin/env bash
# A client of the binary API adds routes without waiting for answers, dumps and deletes them, while two hosts ping each other
# through the router a thousand times a second and another client asks whether anybody is there. There are no workers: one
# thread does all of it. No ping may be lost; the figures are printed.
#
#   ROUTES=1000000 scripts/in-namespace.sh tests/netns/28-api-under-traffic.sh
: "${ROUTES:=200000}"
. "$(dirname "$0")/lib.sh"
need ping python3
begin socksvr { socket-name "$work/api.sock" }
PATIENCE=300 in_a ping -q -i 0.001 -W 2 10.0.2.2 >"$work/ping" 2>&1 &
pinger=$!
sleep 1

out=$(timeout 240 python3 - "$work/api.sock" "$ROUTES" <<'PYTHON' 2>&1
import socket, struct, sys, threading, time
path, count = sys.argv[1], int(sys.argv[2])

class Client:
    def __init__(self, name):
        self.socket = socket.socket(socket.AF_UNIX)
        self.socket.settimeout(60)
        self.socket.connect(path)
        self.buffer = b""
        self.send(struct.pack(">HI64s", 15, 0, name.encode()))
        reply = self.receive()
        self.index = reply[14:18]
        self.numbers = {}
        for at in range(20, len(reply) - 65, 66):
            number, name = struct.unpack_from(">H64s", reply, at)
            self.numbers[name.rstrip(b"\0").decode().rsplit("_", 1)[0]] = number

    @staticmethod
    def frame(body):
        return bytes(8) + struct.pack(">I", len(body)) + bytes(4) + body

    def request(self, name, fields=b""):
        return self.frame(struct.pack(">H", self.numbers[name]) + self.index + bytes(4) + fields)

    def send(self, body):
        self.socket.sendall(self.frame(body))

    def fill(self, size):
        while len(self.buffer) < size:
            more = self.socket.recv(1 << 20)
            assert more, "the router closed the connection"
            self.buffer += more

    def receive(self):
        self.fill(16)
        size = 16 + struct.unpack_from(">I", self.buffer, 8)[0]
        self.fill(size)
        body, self.buffer = self.buffer[16:size], self.buffer[size:]
        return body

    # How many messages of one kind come before one of another.
    def count(self, details, end, most):
        seen = 0
        while True:
            at = 0
            while len(self.buffer) - at >= 16:
                size = 16 + struct.unpack_from(">I", self.buffer, at + 8)[0]
                if len(self.buffer) - at < size:
                    break
                number, = struct.unpack_from(">H", self.buffer, at + 16)
                if number == details:
                    # A reply ends with its number, a refusal with another than 0.
                    assert details == self.numbers["ip_route_details"] or self.buffer[at + 22:at + 26] == bytes(4), "refused"
                    seen += 1
                assert number in (details, end), number
                at += size
                if number == end or seen == most:
                    self.buffer = self.buffer[at:]
                    return seen
            self.buffer = self.buffer[at:]
            more = self.socket.recv(1 << 20)
            assert more, "the router closed the connection"
            self.buffer += more

slowest, stop = 0, False
def ask():
    global slowest
    other = Client("other")
    while not stop:
        begun = time.monotonic()
        other.socket.sendall(other.request("control_ping"))
        other.receive()
        slowest = max(slowest, time.monotonic() - begun)
        time.sleep(0.002)

client = Client("pace")
path_bytes = struct.pack(">IIIBBIII16s", 0xffffffff, 0, 0, 1, 0, 0, 0, 0, socket.inet_aton("10.0.2.2"))
path_bytes += bytes(4 + 4 + 4) + bytes(1 + 16 * 7)
def routes(is_add):
    for n in range(count):
        address = struct.pack(">I", (20 << 24) + n * 16) + bytes(12)
        yield client.request("ip_route_add_del", struct.pack(">BB", is_add, 0) + struct.pack(">II", 0, 0)
                             + b"\0" + address + bytes([28]) + bytes([1]) + path_bytes)

def run(is_add):
    data = b"".join(routes(is_add))
    writer = threading.Thread(target=client.socket.sendall, args=(data,))
    begun = time.monotonic()
    writer.start()
    done = client.count(client.numbers["ip_route_add_del_reply"], None, count)
    writer.join()
    assert done == count, done
    return count / (time.monotonic() - begun)

asker = threading.Thread(target=ask)
asker.start()
try:
    added = run(1)
    begun = time.monotonic()
    dump = struct.pack(">I?64s", 0, False, b"")
    client.socket.sendall(client.request("ip_route_dump", dump) + client.request("control_ping"))
    seen = client.count(client.numbers["ip_route_details"], client.numbers["control_ping_reply"], None)
    dumped = seen / (time.monotonic() - begun)
    assert seen >= count, seen
    deleted = run(0)
finally:
    stop = True
    asker.join()
print(f"{count} routes: {added:.0f} added, {dumped:.0f} dumped, {deleted:.0f} deleted a second as Python reads them;"
      f" another client's slowest answer after {slowest * 1000:.1f} ms")
PYTHON
) || fail "the client said: $(tail -n 12 <<<"$out")"
sleep 0.2
kill -INT "$(ip netns pids "$A" | while read -r pid; do grep -qa '^ping' "/proc/$pid/cmdline" && echo "$pid"; done | head -n 1)"
wait "$pinger"
read -r sent received <<<"$(awk '/packets transmitted/ { print $1, $4 }' "$work/ping")"
[ -n "$received" ] && [ "$sent" -gt 500 ] || fail "ping said: $(cat "$work/ping")"
[ $((sent - received)) -le 1 ] || fail "$((sent - received)) of $sent pings lost; $out"
alive
pass "$out; $sent pings, $(sed -n 's|^rtt min/avg/max/mdev = \([^ ]*\).*|\1|p' "$work/ping") ms"
