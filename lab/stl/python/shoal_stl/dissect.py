"""Which layers a frame's bytes are: for frames from captures, whose fields are named all the same."""

from __future__ import annotations

from .layers import ICMP, IP, TCP, UDP, Dot1Q, Ether, IPv6
from .packet import Layer, Raw

TAGS = (0x8100, 0x88A8)
BEHIND_ETHERNET: dict[int, type[Layer]] = {0x0800: IP, 0x86DD: IPv6}
BEHIND_IP: dict[int, type[Layer]] = {1: ICMP, 4: IP, 6: TCP, 17: UDP, 41: IPv6}


def starts_of(frame: bytes) -> list[tuple[Layer, int]]:
    """Each layer that is known and where it begins; the rest is `Raw`. The layers hold no values, only their shape."""
    found: list[tuple[Layer, int]] = [(Ether(), 0)]
    kind, at = _word(frame, 12), 14
    while kind in TAGS:
        found.append((Dot1Q(), at))
        kind, at = _word(frame, at + 2), at + 4
    layer = BEHIND_ETHERNET.get(kind)
    while layer is not None and at < len(frame):
        found.append((layer(), at))
        if layer is IP:
            at, layer = at + (frame[at] & 15) * 4, BEHIND_IP.get(_byte(frame, at + 9))
        elif layer is IPv6:
            at, layer = at + 40, BEHIND_IP.get(_byte(frame, at + 6))
        else:
            at, layer = at + (_byte(frame, at + 12) >> 4) * 4 if layer is TCP else at + 8, None
    if at < len(frame):
        found.append((Raw(), at))
    return found


def _byte(frame: bytes, at: int) -> int:
    return frame[at] if at < len(frame) else 0


def _word(frame: bytes, at: int) -> int:
    return int.from_bytes(frame[at : at + 2], "big")
