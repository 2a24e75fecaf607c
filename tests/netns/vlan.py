#!/usr/bin/env python3
"""A VLAN interface without the kernel's help: a TAP whose frames are those of another interface with some tags.

    vlan.py DEVICE NAME TYPE:ID[,TYPE:ID]       vlan.py eth0 v10 0x88a8:10,0x8100:20

Frames keep what their checksums and segments are owed, in both directions, so that hosts behind it use the offloads that
they would use on a VLAN interface of the kernel. Runs until it is ended; says `ready` first."""
import fcntl, os, select, socket, struct, sys

device, name, tags = sys.argv[1], sys.argv[2], sys.argv[3]
tags = [tuple(int(n, 0) for n in tag.split(":")) for tag in tags.split(",")]
wanted = b"".join(struct.pack(">HH", *tag) for tag in tags)

tap = os.open("/dev/net/tun", os.O_RDWR)
IFF_TAP, IFF_NO_PI, IFF_VNET_HDR = 2, 0x1000, 0x4000
fcntl.ioctl(tap, 0x400454CA, struct.pack("16sH22x", name.encode(), IFF_TAP | IFF_NO_PI | IFF_VNET_HDR))
fcntl.ioctl(tap, 0x400454D0, 1 | 2 | 4)  # TUNSETOFFLOAD: checksums, TSO of both families

wire = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(3))
SOL_PACKET, PACKET_ADD_MEMBERSHIP, PACKET_AUXDATA, PACKET_VNET_HDR = 263, 1, 8, 15
wire.setsockopt(SOL_PACKET, PACKET_VNET_HDR, 1)
wire.setsockopt(SOL_PACKET, PACKET_AUXDATA, 1)
wire.bind((device, 0))
PROMISCUOUS = struct.pack("iHH8x", socket.if_nametoindex(device), 1, 0)
wire.setsockopt(SOL_PACKET, PACKET_ADD_MEMBERSHIP, PROMISCUOUS)
print("ready", flush=True)


def shift(header, by):
    """The header of an offload for a frame whose tags are put in or taken out."""
    flags, kind, length, size, start, offset = struct.unpack("=BBHHHH", header)
    if kind:
        length += by
    if flags & 1:
        start += by
    return struct.pack("=BBHHHH", flags, kind, length, size, start, offset)


while True:
    for ready in select.select([tap, wire], [], [])[0]:
        if ready == tap:
            data = os.read(tap, 70000)
            header, frame = data[:10], data[10:]
            try:
                wire.send(shift(header, len(wanted)) + frame[:12] + wanted + frame[12:])
            except OSError:
                pass
            continue
        data, told, _, address = wire.recvmsg(70000, 256)
        if address[2] == 4:  # its own
            continue
        header, frame, inline = data[:10], data[10:], len(wanted)
        for level, what, value in told:
            status, _, _, _, _, tci, kind = struct.unpack("=IIIHHHH", value[:20])
            if level == SOL_PACKET and what == PACKET_AUXDATA and status & 0x10:
                # The kernel has taken the outer tag out.
                kind = kind if status & 0x40 else 0x8100
                frame = frame[:12] + struct.pack(">HH", kind, tci) + frame[12:]
                inline -= 4
        has = bytearray(frame[12 : 12 + len(wanted)])
        for at in range(2, len(has), 4):  # priority and eligibility are not compared
            has[at] &= 0x0F
        if bytes(has) != wanted or frame[12 + len(wanted) : 14 + len(wanted)] == b"\x81\x00":
            continue
        try:
            os.write(tap, shift(header, -inline) + frame[:12] + frame[12 + len(wanted) :])
        except OSError:
            pass
