"""The field program's instructions, as profiles write them and as the TRex server's JSON has them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Union

from . import offsets
from .addresses import ip_number
from .errors import STLError, Unsupported, check_type

SIZES = (1, 2, 4, 8)
OPERATIONS = ("inc", "dec", "random")

Number = Union[int, str]


class Instruction:
    """One instruction; `compiled` makes it JSON, with names of fields turned into offsets of `packet`."""

    def compiled(self, packet: Any) -> dict[str, Any]:
        """The instruction as JSON."""
        raise NotImplementedError


def _one_of(what: str, value: object, known: Sequence[object]) -> None:
    if value not in known:
        raise Unsupported(f"{what}={value!r}", [repr(each) for each in known], f"{what} is {value!r}")


def _fits(what: str, value: int, size: int) -> int:
    if not 0 <= value < 1 << 8 * size:
        raise STLError(f"{what} is {value}; {size} bytes hold 0 to {(1 << 8 * size) - 1}")
    return value


def _number(what: str, value: Number) -> int:
    check_type(what, value, int, str)
    return ip_number(value)


class STLVmFlowVar(Instruction):
    """A variable that changes from frame to frame; with `next_var`, another changes when this one has gone round."""

    def __init__(
        self,
        name: str,
        init_value: Number | None = None,
        min_value: Number | None = 0,
        max_value: Number | None = 255,
        size: int = 4,
        step: int = 1,
        op: str = "inc",
        value_list: Sequence[Number] | None = None,
        split_to_cores: bool = True,
        next_var: str | None = None,
    ) -> None:
        check_type("name", name, str)
        _one_of("size", size, SIZES)
        _one_of("op", op, OPERATIONS)
        self.step = _number("step", step)
        if self.step < 1:
            raise STLError(f"step of {name} is {step}; the smallest is 1")
        self.name, self.size, self.op, self.next_var = name, size, op, next_var
        self.split_to_cores = split_to_cores
        self.values: list[int] | None = None
        if value_list is not None:
            if not value_list:
                raise STLError(f"value_list of {name} is empty; it needs a value at least")
            self.values = [_fits("a value", _number("a value", value), size) for value in value_list]
            return
        if min_value is None or max_value is None:
            raise STLError(f"{name} needs min_value and max_value, or a value_list")
        self.least = _fits("min_value", _number("min_value", min_value), size)
        self.most = _fits("max_value", _number("max_value", max_value), size)
        if self.least > self.most:
            raise STLError(f"min_value {min_value} of {name} is above max_value {max_value}; exchange them")
        first = init_value if init_value is not None else (self.most if op == "dec" else self.least)
        self.first = _number("init_value", first)
        if not self.least <= self.first <= self.most:
            raise STLError(f"init_value {init_value} of {name} is not between {self.least} and {self.most}")

    def compiled(self, packet: Any) -> dict[str, Any]:
        made: dict[str, Any] = {
            "type": "flow_var",
            "name": self.name,
            "size": self.size,
            "op": self.op,
            "step": self.step,
            "next_var": self.next_var,
            "split_to_cores": self.split_to_cores,
        }
        if self.values is not None:
            made["value_list"] = self.values
        else:
            made.update(init_value=self.first, min_value=self.least, max_value=self.most)
        return made


class STLVmFlowVarRepeatableRandom(Instruction):
    """A variable with `limit` random values, the same ones again and again."""

    def __init__(
        self,
        name: str,
        size: int = 4,
        limit: int = 100,
        seed: int | None = None,
        min_value: Number | None = 0,
        max_value: Number | None = None,
        split_to_cores: bool = True,
        next_var: str | None = None,
    ) -> None:
        check_type("name", name, str)
        check_type("limit", limit, int)
        _one_of("size", size, SIZES)
        if limit < 1:
            raise STLError(f"limit of {name} is {limit}; the smallest is 1")
        if next_var is not None:
            raise Unsupported("next_var", ["STLVmFlowVar"], "next_var of a repeatable random variable")
        self.name, self.size, self.limit, self.seed = name, size, limit, seed
        self.least = _fits("min_value", _number("min_value", min_value or 0), size)
        highest = (1 << 8 * size) - 1
        self.most = _fits("max_value", highest if max_value is None else _number("max_value", max_value), size)
        if self.least > self.most:
            raise STLError(f"min_value {min_value} of {name} is above max_value {max_value}; exchange them")

    def compiled(self, packet: Any) -> dict[str, Any]:
        return {
            "type": "flow_var_rand_limit",
            "name": self.name,
            "size": self.size,
            "limit": self.limit,
            "seed": self.seed or 0,
            "min_value": self.least,
            "max_value": self.most,
        }


STLVmFlowVarRepetableRandom = STLVmFlowVarRepeatableRandom


class STLVmTupleGen(Instruction):
    """Two variables, `name.ip` and `name.port`: the port goes on when the address has gone round."""

    def __init__(
        self,
        name: str,
        ip_min: Number = "0.0.0.1",
        ip_max: Number = "0.0.0.10",
        port_min: int = 1025,
        port_max: int = 65535,
        limit_flows: int = 100000,
        flags: int = 0,
    ) -> None:
        check_type("name", name, str)
        for what, value in (("port_min", port_min), ("port_max", port_max), ("limit_flows", limit_flows)):
            check_type(what, value, int)
        self.made = {
            "type": "tuple_flow_var",
            "name": name,
            "ip_min": _fits("ip_min", _number("ip_min", ip_min), 4),
            "ip_max": _fits("ip_max", _number("ip_max", ip_max), 4),
            "port_min": _fits("port_min", port_min, 2),
            "port_max": _fits("port_max", port_max, 2),
            "limit_flows": limit_flows,
            "flags": flags,
        }

    def compiled(self, packet: Any) -> dict[str, Any]:
        return dict(self.made)


class STLVmWrFlowVar(Instruction):
    """Writes a variable, as wide as it is."""

    def __init__(
        self,
        fv_name: str,
        pkt_offset: Number,
        offset_fixup: int = 0,
        add_val: int = 0,
        is_big: bool = True,
    ) -> None:
        check_type("fv_name", fv_name, str)
        check_type("pkt_offset", pkt_offset, int, str)
        check_type("offset_fixup", offset_fixup, int)
        check_type("add_val", add_val, int)
        self.name, self.offset, self.fixup = fv_name, pkt_offset, offset_fixup
        self.add, self.is_big = add_val, is_big

    def compiled(self, packet: Any) -> dict[str, Any]:
        return {
            "type": "write_flow_var",
            "name": self.name,
            "pkt_offset": _offset(packet, self.offset) + self.fixup,
            "add_value": self.add,
            "is_big_endian": self.is_big,
        }


class STLVmWrMaskFlowVar(Instruction):
    """Writes some bits of a variable: cast to a width, added to, shifted, masked."""

    def __init__(
        self,
        fv_name: str,
        pkt_offset: Number,
        pkt_cast_size: int = 1,
        mask: int = 0xFF,
        shift: int = 0,
        add_value: int = 0,
        offset_fixup: int = 0,
        is_big: bool = True,
    ) -> None:
        check_type("fv_name", fv_name, str)
        check_type("pkt_offset", pkt_offset, int, str)
        _one_of("pkt_cast_size", pkt_cast_size, (1, 2, 4))
        for what, value in (("mask", mask), ("shift", shift), ("add_value", add_value), ("offset_fixup", offset_fixup)):
            check_type(what, value, int)
        if not -31 <= shift <= 31:
            raise STLError(f"shift is {shift}; it may be -31 to 31")
        self.name, self.offset, self.fixup = fv_name, pkt_offset, offset_fixup
        self.made = {
            "type": "write_mask_flow_var",
            "name": fv_name,
            "pkt_cast_size": pkt_cast_size,
            "mask": mask & 0xFFFFFFFF,
            "shift": shift,
            "add_value": add_value,
            "is_big_endian": is_big,
        }

    def compiled(self, packet: Any) -> dict[str, Any]:
        return {**self.made, "pkt_offset": _offset(packet, self.offset) + self.fixup}


class STLVmFixIpv4(Instruction):
    """Keeps the IPv4 header's checksum right."""

    def __init__(self, offset: Number) -> None:
        check_type("offset", offset, int, str)
        self.offset = offset

    def compiled(self, packet: Any) -> dict[str, Any]:
        return {"type": "fix_checksum_ipv4", "pkt_offset": _header(packet, self.offset)}


class CTRexVmInsFixHwCs:
    """The kinds of checksum, by TRex's numbers."""

    L4_TYPE_UDP = 11
    L4_TYPE_TCP = 13
    L4_TYPE_IP = 17


class STLVmFixChecksumHw(Instruction):
    """Keeps the IPv4 header's checksum and that of UDP or TCP right."""

    def __init__(self, l3_offset: Number, l4_offset: Number, l4_type: int) -> None:
        check_type("l3_offset", l3_offset, int, str)
        check_type("l4_offset", l4_offset, int, str)
        known = (CTRexVmInsFixHwCs.L4_TYPE_UDP, CTRexVmInsFixHwCs.L4_TYPE_TCP, CTRexVmInsFixHwCs.L4_TYPE_IP)
        _one_of("l4_type", l4_type, known)
        self.l3, self.l4, self.l4_type = l3_offset, l4_offset, l4_type

    def compiled(self, packet: Any) -> dict[str, Any]:
        l3, l4 = _header(packet, self.l3), _header(packet, self.l4)
        only_ip = self.l4_type == CTRexVmInsFixHwCs.L4_TYPE_IP and l4 == 0
        if not only_ip and l4 < l3 + 8:
            raise STLError(f"l4_offset {l4} should lie at least 8 bytes behind l3_offset {l3}")
        return {
            "type": "fix_checksum_hw",
            "l2_len": l3,
            "l3_len": 0 if only_ip else l4 - l3,
            "l4_type": self.l4_type,
        }


class STLVmFixIcmpv6(Instruction):
    """Keeps ICMPv6's checksum right."""

    def __init__(self, l3_offset: Number, l4_offset: Number) -> None:
        self.l3, self.l4 = l3_offset, l4_offset

    def compiled(self, packet: Any) -> dict[str, Any]:
        l3, l4 = _header(packet, self.l3), _header(packet, self.l4)
        return {"type": "fix_checksum_icmpv6", "l2_len": l3, "l3_len": l4 - l3}


class STLVmTrimPktSize(Instruction):
    """Cuts the frame to as many bytes (without FCS) as the variable says."""

    def __init__(self, fv_name: str) -> None:
        check_type("fv_name", fv_name, str)
        self.name = fv_name

    def compiled(self, packet: Any) -> dict[str, Any]:
        return {"type": "trim_pkt_size", "name": self.name}


def _offset(packet: Any, where: Number) -> int:
    return offsets.field_offset(packet, where) if isinstance(where, str) else where


def _header(packet: Any, where: Number) -> int:
    return offsets.layer_offset(packet, where) if isinstance(where, str) else where
