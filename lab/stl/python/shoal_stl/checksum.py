"""The Internet checksum (RFC 1071)."""

from __future__ import annotations

import struct


def internet_checksum(data: bytes) -> int:
    """The ones' complement of the ones' complement sum of 16-bit words; an odd byte is followed by a zero."""
    if len(data) % 2:
        data += b"\0"
    total: int = sum(struct.unpack(f"!{len(data) // 2}H", data))
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    return ~total & 0xFFFF


def with_pseudo_header(source: bytes, destination: bytes, protocol: int, segment: bytes) -> int:
    """The checksum of UDP, TCP or ICMPv6 over its pseudo-header (RFC 9293 3.1, RFC 8200 8.1)."""
    if len(source) == 4:
        pseudo = source + destination + struct.pack("!BBH", 0, protocol, len(segment))
    else:
        pseudo = source + destination + struct.pack("!IHBB", len(segment), 0, 0, protocol)
    return internet_checksum(pseudo + segment)
