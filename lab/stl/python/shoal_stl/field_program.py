"""Lists of instructions: `STLScVmRaw`, and the two ways of writing one in fewer words, `STLVM` and `STLIPRange`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from . import instructions as ins
from .errors import STLError, Unsupported, check_type
from .instructions import Instruction, Number


class STLScVmRaw:
    """Instructions, run for each frame in order; with `cache_size`, for so many frames, which are then repeated."""

    def __init__(
        self,
        list_of_commands: Sequence[Instruction] | None = None,
        cache_size: int | None = None,
        split_by_field: str | None = None,
    ) -> None:
        # How TRex deals a variable out to its cores does not matter here: values come in the order of one core.
        del split_by_field
        self.commands: list[Instruction] = []
        self.cache_size = 0
        for command in list_of_commands or []:
            self.add_cmd(command)
        self.set_cached(cache_size or 0)

    def add_cmd(self, cmd: Instruction) -> None:
        """Adds an instruction at the end."""
        if not isinstance(cmd, Instruction):
            raise STLError(f"{cmd!r} is no instruction; STLVmFlowVar(...) makes one")
        self.commands.append(cmd)

    def set_cached(self, cache_size: int) -> None:
        """Repeats the first `cache_size` frames; 0 repeats none."""
        check_type("cache_size", cache_size, int)
        if not 0 <= cache_size <= 0xFFFF:
            raise STLError(f"cache_size is {cache_size}; it may be 0 to 65535")
        self.cache_size = cache_size

    def compiled(self, packet: Any) -> dict[str, Any]:
        """The program as JSON."""
        made: dict[str, Any] = {"instructions": [each.compiled(packet) for each in self.commands]}
        if self.cache_size:
            made["cache"] = self.cache_size
        return made


class STLVM(STLScVmRaw):
    """A field program that grows by method calls."""

    def __init__(self) -> None:
        super().__init__()

    def split_by_field(self, field: str) -> None:
        """Nothing: values come in the order of one core."""

    def var(
        self,
        name: str,
        min_value: Number | None,
        max_value: Number | None,
        size: int,
        op: str,
        step: int = 1,
        init_value: Number | None = None,
        value_list: Sequence[Number] | None = None,
        split_to_cores: bool = True,
        next_var: str | None = None,
    ) -> None:
        """A variable."""
        self.add_cmd(
            ins.STLVmFlowVar(
                name, init_value, min_value, max_value, size, step, op, value_list, split_to_cores, next_var
            )
        )

    def repeatable_random_var(
        self,
        fv_name: str,
        size: int,
        limit: int,
        seed: int | None,
        min_value: Number | None = None,
        max_value: Number | None = None,
        split_to_cores: bool = True,
        next_var: str | None = None,
    ) -> None:
        """A variable with the same random values again and again."""
        self.add_cmd(
            ins.STLVmFlowVarRepeatableRandom(fv_name, size, limit, seed, min_value, max_value, split_to_cores, next_var)
        )

    def tuple_var(
        self,
        name: str,
        ip_min: Number,
        ip_max: Number,
        port_min: int,
        port_max: int,
        limit_flows: int = 100000,
        flags: int = 0,
    ) -> None:
        """An address and a port that go on together."""
        self.add_cmd(ins.STLVmTupleGen(name, ip_min, ip_max, port_min, port_max, limit_flows, flags))

    def write(
        self,
        fv_name: str,
        pkt_offset: Number,
        offset_fixup: int = 0,
        add_val: int = 0,
        byte_order: str = "big",
    ) -> None:
        """Writes a variable."""
        self.add_cmd(ins.STLVmWrFlowVar(fv_name, pkt_offset, offset_fixup, add_val, _is_big(byte_order)))

    def write_mask(
        self,
        fv_name: str,
        pkt_offset: Number,
        pkt_cast_size: int = 1,
        mask: int = 0xFF,
        shift: int = 0,
        add_val: int = 0,
        offset_fixup: int = 0,
        byte_order: str = "big",
    ) -> None:
        """Writes some bits of a variable."""
        self.add_cmd(
            ins.STLVmWrMaskFlowVar(
                fv_name, pkt_offset, pkt_cast_size, mask, shift, add_val, offset_fixup, _is_big(byte_order)
            )
        )

    def fix_chksum(self, offset: Number = "IP") -> None:
        """Keeps the IPv4 header's checksum right."""
        self.add_cmd(ins.STLVmFixIpv4(offset))

    def fix_chksum_hw(self, l3_offset: Number, l4_offset: Number, l4_type: int) -> None:
        """Keeps the checksums of IPv4 and UDP or TCP right."""
        self.add_cmd(ins.STLVmFixChecksumHw(l3_offset, l4_offset, l4_type))

    def fix_chksum_icmpv6(self, l3_offset: Number, l4_offset: Number) -> None:
        """Keeps ICMPv6's checksum right."""
        self.add_cmd(ins.STLVmFixIcmpv6(l3_offset, l4_offset))

    def trim(self, fv_name: str) -> None:
        """Cuts the frame."""
        self.add_cmd(ins.STLVmTrimPktSize(fv_name))


def _is_big(byte_order: str) -> bool:
    if byte_order not in ("big", "little"):
        raise Unsupported(f"byte_order={byte_order!r}", ["'big'", "'little'"], f"byte_order is {byte_order!r}")
    return byte_order == "big"


def STLIPRange(  # noqa: N802 - the STL API's own name
    src: dict[str, Any] | None = None,
    dst: dict[str, Any] | None = None,
    fix_chksum: bool = True,
) -> STLVM:
    """A program that lets the IPv4 addresses rise; each range is `{"start": ..., "end": ..., "step": ...}`."""
    vm = STLVM()
    for name, wanted in (("src", src), ("dst", dst)):
        if wanted is None:
            continue
        missing = [key for key in ("start", "end") if key not in wanted]
        if missing:
            raise STLError(f"{name} of STLIPRange has no {missing[0]!r}; it needs 'start' and 'end'")
        vm.var(name, wanted["start"], wanted["end"], 4, "inc", wanted.get("step", 1))
        vm.write(name, f"IP.{name}")
    if fix_chksum:
        vm.fix_chksum()
    return vm
