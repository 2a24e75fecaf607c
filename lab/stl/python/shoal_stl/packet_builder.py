"""A frame and its field program: `STLPktBuilder`."""

from __future__ import annotations

import base64
import copy
import os
import struct
from collections.abc import Sequence
from typing import Any

from . import offsets
from .errors import CTRexPacketBuildException, STLError, check_type
from .field_program import STLScVmRaw
from .instructions import Instruction
from .packet import Layer

PCAP_MAGIC = {0xA1B2C3D4: "microseconds", 0xA1B23C4D: "nanoseconds"}
profile_folder = "."


class STLPktBuilder:
    """The first frame (without FCS) and what changes in it."""

    def __init__(
        self,
        pkt: Any = None,
        pkt_buffer: bytes | None = None,
        vm: STLScVmRaw | Sequence[Instruction] | None = None,
        path_relative_to_profile: bool = False,
        build_raw: bool = False,
        remove_fcs: bool = True,
    ) -> None:
        if (pkt is None) == (pkt_buffer is None):
            raise CTRexPacketBuildException(-15, "a packet builder takes pkt or pkt_buffer, one of them")
        self.pkt: Any = None
        self.raw: bytes = b""
        if pkt_buffer is not None:
            check_type("pkt_buffer", pkt_buffer, bytes)
            self.raw = pkt_buffer
        elif isinstance(pkt, str):
            self.raw = first_of_pcap(os.path.join(profile_folder, pkt) if path_relative_to_profile else pkt)
        elif isinstance(pkt, Layer) or _is_scapy(pkt):
            # The packet may be changed by the profile after this: TRex takes it as it is now.
            self.pkt = pkt.copy()
            self.raw = bytes(self.pkt)
        else:
            raise CTRexPacketBuildException(-14, f"pkt is {pkt!r}; it should be layers, or the name of a pcap file")
        if vm is None or isinstance(vm, STLScVmRaw):
            program = vm or STLScVmRaw()
        elif isinstance(vm, (list, tuple)):
            program = STLScVmRaw(vm)
        else:
            raise CTRexPacketBuildException(-14, f"vm is {vm!r}; it should be STLScVmRaw, STLVM or a list")
        self.vm = copy.deepcopy(program).compiled(self.pkt if self.pkt is not None else self.raw)

    def given_macs(self) -> tuple[bool, bool]:
        """Whether the profile says source and destination MAC itself."""
        fields = getattr(self.pkt, "fields", {}) if type(self.pkt).__name__ == "Ether" else {}
        return "src" in fields, "dst" in fields

    def get_pkt_len(self) -> int:
        """Bytes of the frame, without FCS."""
        return len(self.raw)

    def to_json(self) -> dict[str, Any]:
        """Frame and program as JSON."""
        return {"packet": {"binary": base64.b64encode(self.raw).decode(), "meta": ""}, "vm": self.vm}

    def shape(self) -> dict[str, Any]:
        """What the bytes alone do not tell: where the headers end, and the layers' names."""
        if self.pkt is None:
            return {"headers_end": 0, "layers": ""}
        names = "/".join(type(layer).__name__ for layer in offsets.layers_of(self.pkt))
        return {"headers_end": offsets.headers_end(self.pkt), "layers": names}


def _is_scapy(pkt: object) -> bool:
    return any(f"{each.__module__}.{each.__name__}" == "scapy.packet.Packet" for each in type(pkt).__mro__)


def first_of_pcap(path: str) -> bytes:
    """The first frame of a capture file (the classic format, not pcapng)."""
    try:
        with open(path, "rb") as file:
            head = file.read(24 + 16)
            order = next((o for o in "<>" if len(head) == 40 and struct.unpack(o + "I", head[:4])[0] in PCAP_MAGIC), "")
            if not order:
                raise STLError(
                    f"{path} is no pcap file with a frame in it; pcapng is not read: convert it by editcap -F pcap"
                )
            length = struct.unpack(order + "I", head[32:36])[0]
            frame = file.read(min(length, 1 << 16))
    except OSError as reason:
        raise STLError(f"{path} cannot be read: {reason.strerror}") from reason
    if len(frame) != length:
        raise STLError(f"{path} ends within its first frame")
    return frame
