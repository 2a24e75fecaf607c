"""Addresses between text, number and bytes."""

from __future__ import annotations

import ipaddress

from .errors import CTRexPacketBuildException


def ip_number(value: int | str | bytes) -> int:
    """An IPv4 address as a number; a number stays one."""
    if isinstance(value, int):
        return value
    try:
        return int(ipaddress.IPv4Address(value))
    except ValueError as reason:
        raise CTRexPacketBuildException(-10, f"{value!r} is neither a number nor an IPv4 address") from reason


def ip4_bytes(value: str | int | bytes) -> bytes:
    """An IPv4 address as four bytes."""
    try:
        return ipaddress.IPv4Address(value).packed
    except ValueError as reason:
        raise CTRexPacketBuildException(-10, f"{value!r} is no IPv4 address; 16.0.0.1 is one") from reason


def ip6_bytes(value: str | int | bytes) -> bytes:
    """An IPv6 address as sixteen bytes."""
    try:
        return ipaddress.IPv6Address(value).packed
    except ValueError as reason:
        raise CTRexPacketBuildException(-10, f"{value!r} is no IPv6 address; 2001:2::1 is one") from reason


def mac_bytes(value: str | bytes) -> bytes:
    """A MAC as six bytes."""
    if isinstance(value, bytes) and len(value) == 6:
        return value
    parts = str(value).replace("-", ":").split(":")
    try:
        made = bytes(int(part, 16) for part in parts)
    except ValueError:
        made = b""
    if len(made) != 6:
        raise CTRexPacketBuildException(-10, f"{value!r} is no MAC; 02:00:00:00:00:01 is one")
    return made


def int2ip(val: int) -> str:
    """An IPv4 address as text."""
    return str(ipaddress.IPv4Address(val & 0xFFFFFFFF))


def int2mac(val: int) -> str:
    """A MAC as text."""
    return ":".join(f"{byte:02x}" for byte in (val & 0xFFFFFFFFFFFF).to_bytes(6, "big"))


def increase_ip(ip_str: str, val: int = 1) -> str:
    """The address `val` further on."""
    return int2ip(ip_number(ip_str) + val)


def increase_mac(mac_str: str, val: int = 1) -> str:
    """The MAC `val` further on."""
    return int2mac(int.from_bytes(mac_bytes(mac_str), "big") + val)


def ipv4_str_to_num(ipv4_buffer: bytes) -> int:
    """Four bytes as a number."""
    return int.from_bytes(ipv4_buffer, "big")


def mac_str_to_num(mac_buffer: bytes) -> int:
    """Six bytes as a number."""
    return int.from_bytes(mac_buffer, "big")


def is_valid_ipv4_ret(ip_addr: str | int | bytes) -> bytes:
    """The address as four bytes, or an error."""
    return ip4_bytes(ip_addr)


def is_valid_ipv6_ret(ipv6_addr: str | bytes) -> bytes:
    """The address as sixteen bytes, or an error."""
    return ip6_bytes(ipv6_addr)


def mac2str(mac: str) -> bytes:
    """A MAC as bytes; the name is Scapy's."""
    return mac_bytes(mac)
