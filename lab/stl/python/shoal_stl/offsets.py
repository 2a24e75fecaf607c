"""Where fields lie: `IP.src`, `UDP.sport`, `IP:1.src` (the second IP header), `802|1Q.vlan`.

A field that shares bytes with others (a VLAN's number, IP's flags) is at the byte with its first bit.
The same questions are asked of the lab's own layers and of Scapy's, so only what both have is used: `fields_desc`, `payload`.
"""

from __future__ import annotations

from typing import Any

from . import dissect
from .errors import CTRexPacketBuildException, Unsupported
from .packet import Layer, Raw


def layers_of(packet: Any) -> list[Any]:
    """The packet's layers, outermost first."""
    if isinstance(packet, Layer):
        return packet.layers()
    found = []
    while packet is not None and type(packet).__name__ != "NoPayload":
        found.append(packet)
        packet = packet.payload
    return found


def starts_of(packet: Any) -> list[tuple[Any, int]]:
    """Each layer and where it begins, in bytes from the frame's start."""
    if isinstance(packet, bytes):
        return dissect.starts_of(packet)
    whole = len(bytes(packet))
    return [(layer, whole - len(bytes(layer))) for layer in layers_of(packet)]


def headers_end(packet: Any) -> int:
    """Where the last header ends and bytes without a structure begin."""
    end = 0
    for layer, start in starts_of(packet):
        if type(layer).__name__ in ("Raw", "Padding"):
            return start
        end = start + len(bytes(layer))
    return end


def layer_offset(packet: Any, text: str) -> int:
    """Where a layer begins, written as `IP` or `IP:1`."""
    return _layer(packet, text)[1]


def field_offset(packet: Any, text: str) -> int:
    """Where a field begins, written as `IP.src` or `IP:1.src`."""
    parts = text.split(".")
    if len(parts) != 2:
        raise CTRexPacketBuildException(-11, f"{text!r} names no field; IP.src and IP:1.src do")
    layer, start = _layer(packet, parts[0])
    inside = _own_field(layer, parts[1]) if isinstance(layer, Layer) else _scapy_field(layer, parts[1])
    return start + inside


def _layer(packet: Any, text: str) -> tuple[Any, int]:
    name, _, index = text.replace("|", ".").partition(":")
    if index and not index.isdigit():
        raise CTRexPacketBuildException(-11, f"{text!r} names no layer; IP and IP:1 do")
    left = int(index or 0)
    names = []
    for layer, start in starts_of(packet):
        names.append(type(layer).__name__)
        if name in (type(layer).__name__, layer.name):
            if left == 0:
                return layer, start
            left -= 1
    raise Unsupported(text, names, f"the packet {' / '.join(names)} has no layer {text}")


def _own_field(layer: Layer, name: str) -> int:
    wanted = layer.field(name)
    if wanted is None or isinstance(layer, Raw):
        names = [field.name for field in layer.fields_desc]
        if isinstance(layer, Raw) and name == "load":
            return 0
        raise Unsupported(f"{type(layer).__name__}.{name}", names, f"{type(layer).__name__} has no field {name}")
    bits = 0
    for field in layer.fields_desc:
        if field is wanted:
            break
        bits += field.bits
    return bits // 8


def _scapy_field(layer: Any, name: str) -> int:
    built: Any = b""
    for field in layer.fields_desc:
        if field.name == name:
            # While fields share a byte, Scapy keeps the bytes before them and their bits as a tuple.
            return len(built[0]) if isinstance(built, tuple) else len(built)
        built = field.addfield(layer, built, layer.getfieldval(field.name))
    names = [field.name for field in layer.fields_desc]
    raise Unsupported(f"{type(layer).__name__}.{name}", names, f"{type(layer).__name__} has no field {name}")
