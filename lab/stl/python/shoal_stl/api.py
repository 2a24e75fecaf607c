"""What a profile gets by `from trex_stl_lib.api import *`, and under which module names it may ask for it."""

from __future__ import annotations

import copy
import json
import os
import random
import socket
import string
import struct
import sys
from types import ModuleType
from typing import Any

from . import addresses, errors, field_program, instructions, layers, packet, packet_builder, streams

MODULES = (
    "trex_stl_lib",
    "trex_stl_lib.api",
    "trex_stl_lib.trex_stl_exceptions",
    "trex_stl_lib.trex_stl_packet_builder_scapy",
    "trex_stl_lib.trex_stl_std",
    "trex_stl_lib.trex_stl_streams",
    "trex_stl_lib.trex_stl_types",
    "trex",
    "trex.common",
    "trex.common.trex_exceptions",
    "trex.stl",
    "trex.stl.api",
    "trex.stl.trex_stl_packet_builder_scapy",
    "trex.stl.trex_stl_std",
    "trex.stl.trex_stl_streams",
)

# TRex's star import also hands on modules that it uses itself, and profiles have come to count on some.
LEAKED: dict[str, Any] = {
    "copy": copy,
    "json": json,
    "os": os,
    "random": random,
    "socket": socket,
    "string": string,
    "struct": struct,
    "sys": sys,
}

STL: dict[str, Any] = {
    each.__name__: each
    for each in (
        errors.STLError,
        errors.CTRexPacketBuildException,
        field_program.STLIPRange,
        field_program.STLScVmRaw,
        field_program.STLVM,
        instructions.CTRexVmInsFixHwCs,
        instructions.STLVmFixChecksumHw,
        instructions.STLVmFixIcmpv6,
        instructions.STLVmFixIpv4,
        instructions.STLVmFlowVar,
        instructions.STLVmFlowVarRepeatableRandom,
        instructions.STLVmTrimPktSize,
        instructions.STLVmTupleGen,
        instructions.STLVmWrFlowVar,
        instructions.STLVmWrMaskFlowVar,
        packet_builder.STLPktBuilder,
        streams.STLFlowLatencyStats,
        streams.STLFlowStats,
        streams.STLProfile,
        streams.STLStream,
        streams.STLTXCont,
        streams.STLTXMode,
        streams.STLTXMultiBurst,
        streams.STLTXSingleBurst,
    )
}
STL["TRexError"] = errors.TRexError
STL["STLVmFlowVarRepetableRandom"] = instructions.STLVmFlowVarRepetableRandom
for _constant in ("STLStreamDstMAC_CFG_FILE", "STLStreamDstMAC_PKT", "STLStreamDstMAC_ARP"):
    STL[_constant] = getattr(streams, _constant)

ADDRESSES: dict[str, Any] = {
    each.__name__: each
    for each in (
        addresses.increase_ip,
        addresses.increase_mac,
        addresses.int2ip,
        addresses.int2mac,
        addresses.ipv4_str_to_num,
        addresses.is_valid_ipv4_ret,
        addresses.is_valid_ipv6_ret,
        addresses.mac2str,
        addresses.mac_str_to_num,
    )
}


def own_names() -> dict[str, Any]:
    """All names, with the lab's own layers."""
    return {**LEAKED, **ADDRESSES, **STL, **layers.LAYERS, "Packet": packet.Layer}


class ApiModule(ModuleType):
    """A module that says which name is missing and which is nearest."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        known = [*STL, *layers.LAYERS]
        raise errors.NoAttribute(name, known, f"{name} is not among the names of {self.__name__} that are supported")


def install(names: dict[str, Any]) -> None:
    """Makes `names` importable under each of TRex's module names."""
    for path in MODULES:
        module = ApiModule(path)
        module.__path__ = []
        module.__dict__.update(names)
        module.__dict__["__all__"] = list(names)
        sys.modules[path] = module
    for path in MODULES:
        parent, _, child = path.rpartition(".")
        if parent:
            setattr(sys.modules[parent], child, sys.modules[path])
