"""The layers that the lab knows itself, with the defaults that profiles count on."""

from __future__ import annotations

import struct
from typing import Any, ClassVar

from .checksum import internet_checksum, with_pseudo_header
from .errors import CTRexPacketBuildException
from .packet import Field, Layer, Raw

ETHERTYPES = {"IP": 0x0800, "IPv6": 0x86DD, "Dot1Q": 0x8100}
PROTOCOLS = {"ICMP": 1, "IP": 4, "TCP": 6, "UDP": 17, "IPv6": 41}


def ethertype_of(layer: Layer | None) -> int:
    """What a header says that `layer` follows; loopback (0x9000) before bytes without a structure, as Scapy does."""
    return ETHERTYPES.get(type(layer).__name__, 0x9000)


class Ether(Layer):
    """Ethernet II. Its addresses are the tester's and the device's unless they are given."""

    name = "Ethernet"
    fields_desc: ClassVar[list[Field]] = [
        Field("dst", 48, "00:00:00:01:00:00", "mac"),
        Field("src", 48, "00:00:00:02:00:00", "mac"),
        Field("type", 16, None),
    ]

    def found(self, field: Field, body: bytes, before: list[Layer]) -> int:
        return ethertype_of(self.payload)


class Dot1Q(Layer):
    """An 802.1Q tag."""

    name = "802.1Q"
    aliases: ClassVar[dict[str, str]] = {"dei": "id"}
    fields_desc: ClassVar[list[Field]] = [
        Field("prio", 3),
        Field("id", 1),
        Field("vlan", 12, 1),
        Field("type", 16, None),
    ]

    def found(self, field: Field, body: bytes, before: list[Layer]) -> int:
        return ethertype_of(self.payload)


class IP(Layer):
    """IPv4 without options."""

    name = "IP"
    fields_desc: ClassVar[list[Field]] = [
        Field("version", 4, 4),
        Field("ihl", 4, 5),
        Field("tos", 8),
        Field("len", 16, None),
        Field("id", 16, 1),
        Field("flags", 3),
        Field("frag", 13),
        Field("ttl", 8, 64),
        Field("proto", 8, None),
        Field("chksum", 16, None),
        Field("src", 32, "127.0.0.1", "ip4"),
        Field("dst", 32, "127.0.0.1", "ip4"),
    ]

    def convert(self, field: Field, value: Any) -> Any:
        if field.name == "flags" and isinstance(value, str):
            return flag_bits(value, {"MF": 1, "DF": 2})
        return value

    def found(self, field: Field, body: bytes, before: list[Layer]) -> int:
        if field.name == "len":
            return 20 + len(body)
        if field.name == "proto":
            return PROTOCOLS.get(type(self.payload).__name__, 0)
        return 0

    def close(self, header: bytes, body: bytes, before: list[Layer]) -> bytes:
        if self.getfieldval("chksum") is not None:
            return header
        return header[:10] + struct.pack("!H", internet_checksum(header)) + header[12:]


class IPv6(Layer):
    """IPv6 without extension headers."""

    name = "IPv6"
    fields_desc: ClassVar[list[Field]] = [
        Field("version", 4, 6),
        Field("tc", 8),
        Field("fl", 20),
        Field("plen", 16, None),
        Field("nh", 8, None),
        Field("hlim", 8, 64),
        Field("src", 128, "::1", "ip6"),
        Field("dst", 128, "::1", "ip6"),
    ]

    def found(self, field: Field, body: bytes, before: list[Layer]) -> int:
        if field.name == "plen":
            return len(body)
        return PROTOCOLS.get(type(self.payload).__name__, 59)


def segment_checksum(protocol: int, segment: bytes, before: list[Layer]) -> int:
    """The checksum of a segment behind the nearest IP header; without one there is none."""
    for layer in reversed(before):
        if isinstance(layer, (IP, IPv6)):
            source, destination = layer.field("src"), layer.field("dst")
            size = 4 if isinstance(layer, IP) else 16
            if source is None or destination is None:
                break
            return with_pseudo_header(
                source.number(layer.getfieldval("src")).to_bytes(size, "big"),
                destination.number(layer.getfieldval("dst")).to_bytes(size, "big"),
                protocol,
                segment,
            )
    return 0


class UDP(Layer):
    """UDP; both ports are 53 unless they are given."""

    name = "UDP"
    fields_desc: ClassVar[list[Field]] = [
        Field("sport", 16, 53),
        Field("dport", 16, 53),
        Field("len", 16, None),
        Field("chksum", 16, None),
    ]

    def found(self, field: Field, body: bytes, before: list[Layer]) -> int:
        return 8 + len(body) if field.name == "len" else 0

    def close(self, header: bytes, body: bytes, before: list[Layer]) -> bytes:
        if self.getfieldval("chksum") is not None:
            return header
        under_ip = any(isinstance(layer, (IP, IPv6)) for layer in before)
        # RFC 768: a checksum that comes out as zero is sent as all ones.
        made = (segment_checksum(17, header + body, before) or 0xFFFF) if under_ip else 0
        return header[:6] + struct.pack("!H", made)


class TCP(Layer):
    """TCP without options."""

    name = "TCP"
    fields_desc: ClassVar[list[Field]] = [
        Field("sport", 16, 20),
        Field("dport", 16, 80),
        Field("seq", 32),
        Field("ack", 32),
        Field("dataofs", 4, 5),
        Field("reserved", 3),
        Field("flags", 9, 2),
        Field("window", 16, 8192),
        Field("chksum", 16, None),
        Field("urgptr", 16),
    ]

    def convert(self, field: Field, value: Any) -> Any:
        if field.name == "flags" and isinstance(value, str):
            return flag_bits(value, {letter: 1 << bit for bit, letter in enumerate("FSRPAUECN")})
        return value

    def close(self, header: bytes, body: bytes, before: list[Layer]) -> bytes:
        if self.getfieldval("chksum") is not None:
            return header
        made = segment_checksum(6, header + body, before)
        return header[:16] + struct.pack("!H", made) + header[18:]


class ICMP(Layer):
    """ICMP for IPv4: an echo request unless another type is given."""

    name = "ICMP"
    fields_desc: ClassVar[list[Field]] = [
        Field("type", 8, 8),
        Field("code", 8),
        Field("chksum", 16, None),
        Field("id", 16),
        Field("seq", 16),
    ]

    def convert(self, field: Field, value: Any) -> Any:
        names = {"echo-reply": 0, "dest-unreach": 3, "redirect": 5, "echo-request": 8, "time-exceeded": 11}
        if field.name == "type" and isinstance(value, str):
            if value not in names:
                raise CTRexPacketBuildException(-11, f"ICMP.type is {value!r}; known are {', '.join(names)}")
            return names[value]
        return value

    def close(self, header: bytes, body: bytes, before: list[Layer]) -> bytes:
        if self.getfieldval("chksum") is not None:
            return header
        return header[:2] + struct.pack("!H", internet_checksum(header + body)) + header[4:]


def flag_bits(text: str, known: dict[str, int]) -> int:
    """Flags written as letters (`SA`) or as words joined by `+` (`DF+MF`)."""
    if not text:
        return 0
    bits = 0
    for name in text.split("+") if text in known or "+" in text else list(text):
        if name not in known:
            raise CTRexPacketBuildException(-11, f"flag {name!r} is unknown; known are {', '.join(known)}")
        bits |= known[name]
    return bits


LAYERS: dict[str, type[Layer]] = {each.__name__: each for each in (Ether, Dot1Q, IP, IPv6, UDP, TCP, ICMP, Raw)}
