"""Streams: pace, statistics and what comes next."""

from __future__ import annotations

import inspect
import math
from typing import Any

from .errors import NoAttribute, STLError, Unsupported, check_type
from .layers import IP, Ether
from .packet_builder import STLPktBuilder

RATES = ("pps", "bps_L1", "bps_L2", "percentage")

STLStreamDstMAC_CFG_FILE = 0
STLStreamDstMAC_PKT = 1
STLStreamDstMAC_ARP = 2


class STLTXMode:
    """A rate in one unit, one frame a second if none is given, and how frames are sent at it."""

    kind = "continuous"

    def __init__(
        self,
        pps: float | None = None,
        bps_L1: float | None = None,  # noqa: N803 - the STL API's own names
        bps_L2: float | None = None,  # noqa: N803
        percentage: float | None = None,
        **wrong: object,
    ) -> None:
        for name in wrong:
            kind = type(self)
            own = [each for each in inspect.signature(kind).parameters if each not in ("kwargs", "wrong")]
            known = [*own, *(unit for unit in RATES if unit not in own)]
            raise Unsupported(f"{kind.__name__}({name}=)", known, f"{kind.__name__} takes no {name}")
        rates = dict(zip(RATES, (pps, bps_L1, bps_L2, percentage)))
        given = {unit: value for unit, value in rates.items() if value is not None} or {"pps": 1.0}
        if len(given) > 1:
            raise STLError(f"a rate has one unit; {' and '.join(given)} were given")
        ((unit, value),) = given.items()
        check_type(unit, value, int, float)
        if not (math.isfinite(value) and value > 0):
            raise STLError(f"{unit} is {value}; it should be above 0")
        if unit == "percentage" and value > 100:
            raise STLError(f"percentage is {value}; the most is 100")
        self.fields: dict[str, Any] = {"rate": {"type": unit, "value": value}, "type": self.kind}

    def to_json(self) -> dict[str, Any]:
        """The mode as JSON."""
        return dict(self.fields)


class STLTXCont(STLTXMode):
    """Frames without end."""


class STLTXSingleBurst(STLTXMode):
    """So many frames."""

    kind = "single_burst"

    def __init__(self, total_pkts: int = 1, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.fields["total_pkts"] = _count("total_pkts", total_pkts)


class STLTXMultiBurst(STLTXMode):
    """`count` bursts with `ibg` microseconds between them."""

    kind = "multi_burst"

    def __init__(self, pkts_per_burst: int = 1, ibg: float = 0.0, count: int = 1, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.fields["pkts_per_burst"] = _count("pkts_per_burst", pkts_per_burst)
        self.fields["ibg"] = _microseconds("ibg", ibg)
        self.fields["count"] = _count("count", count)


def _count(name: str, value: int) -> int:
    check_type(name, value, int)
    if value < 1:
        raise STLError(f"{name} is {value}; the smallest is 1")
    return value


def _microseconds(name: str, value: float) -> float:
    check_type(name, value, int, float)
    if not (math.isfinite(value) and value >= 0):
        raise STLError(f"{name} is {value} us; it should be 0 or more")
    return value


class STLFlowStats:
    """Frames of the stream are counted under a number. The lab counts those of each stream anyway."""

    rule = "stats"

    def __init__(self, pg_id: int, vxlan: bool = False, ieee_1588: bool = False) -> None:
        check_type("pg_id", pg_id, int)
        self.pg_id, self.vxlan, self.ieee_1588 = pg_id, vxlan, ieee_1588

    def to_json(self) -> dict[str, Any]:
        """The statistics as JSON."""
        return {
            "enabled": True,
            "stream_id": self.pg_id,
            "vxlan": self.vxlan,
            "ieee_1588": self.ieee_1588,
            "rule_type": self.rule,
        }


class STLFlowLatencyStats(STLFlowStats):
    """The delay of each frame is measured, and the stream keeps its rate whatever the others are scaled to."""

    rule = "latency"


class STLStream:
    """Frames that differ only in fields, sent at a pace."""

    def __init__(
        self,
        name: str | int | None = None,
        packet: STLPktBuilder | None = None,
        mode: STLTXMode | None = None,
        enabled: bool = True,
        self_start: bool = True,
        isg: float = 0.0,
        flow_stats: STLFlowStats | None = None,
        next: str | int | None = None,  # noqa: A002 - the STL API's own name
        stream_id: int | None = None,
        action_count: int = 0,
        random_seed: int = 0,
        mac_src_override_by_pkt: bool | None = None,
        mac_dst_override_mode: int | None = None,
        dummy_stream: bool = False,
        start_paused: bool = False,
        core_id: int = -1,
    ) -> None:
        mode = mode if mode is not None else STLTXCont()
        check_type("name", name, str, int, type(None))
        check_type("next", next, str, int, type(None))
        check_type("mode", mode, STLTXMode)
        check_type("packet", packet, STLPktBuilder, type(None))
        check_type("flow_stats", flow_stats, STLFlowStats, type(None))
        check_type("enabled", enabled, bool)
        check_type("self_start", self_start, bool)
        check_type("action_count", action_count, int)
        if action_count < 0:
            raise STLError(f"action_count is {action_count}; it should be 0 or more")
        check_type("random_seed", random_seed, int)
        if isinstance(mode, STLTXCont) and next is not None:
            raise STLError(f"a continuous stream never ends, so {next!r} cannot be next; give it a burst mode")
        if mac_dst_override_mode == STLStreamDstMAC_ARP:
            raise Unsupported(
                "mac_dst_override_mode=STLStreamDstMAC_ARP",
                ["STLStreamDstMAC_PKT", "STLStreamDstMAC_CFG_FILE"],
                "the destination MAC is the device's own anyway; it is not asked for by ARP",
            )
        self.packet = packet or STLPktBuilder(pkt=Ether() / IP())
        src_given, dst_given = self.packet.given_macs()
        keep_src = src_given if mac_src_override_by_pkt is None else bool(mac_src_override_by_pkt)
        keep_dst = int(dst_given) if mac_dst_override_mode is None else int(mac_dst_override_mode)
        self.name, self.next, self.mode = name, next, mode
        self.fields: dict[str, Any] = {
            "enabled": enabled,
            "self_start": self_start,
            "start_paused": start_paused,
            "isg": _microseconds("isg", isg),
            "core_id": core_id,
            "action_count": action_count,
            "flags": int(keep_src) | (keep_dst & 3) << 1 | int(dummy_stream) << 3,
            "mode": mode.to_json(),
            "flow_stats": flow_stats.to_json() if flow_stats else {"enabled": False},
        }
        if random_seed:
            self.fields["random_seed"] = random_seed & 0xFFFFFFFF

    def get_name(self) -> str | int | None:
        """The stream's name."""
        return self.name

    def get_pkt(self) -> bytes:
        """The frame's bytes."""
        return self.packet.raw

    def get_pkt_len(self, count_crc: bool = True) -> int:
        """The frame's length, with FCS unless told otherwise."""
        return len(self.packet.raw) + (4 if count_crc else 0)

    def to_json(self) -> dict[str, Any]:
        """The stream as TRex's own `to_json` writes it."""
        made = {**self.fields, **self.packet.to_json()}
        if self.name is not None:
            made["name"] = str(self.name)
        if self.next is not None:
            made["next"] = str(self.next)
        return made


class STLProfile:
    """A list of streams."""

    def __init__(self, streams: STLStream | list[STLStream] | None = None) -> None:
        given = streams if isinstance(streams, (list, tuple)) else [streams] if streams is not None else []
        for stream in given:
            if not isinstance(stream, STLStream):
                raise STLError(f"{stream!r} is no stream; STLStream(...) makes one")
        self.streams = list(given)

    def get_streams(self) -> list[STLStream]:
        """The streams."""
        return self.streams

    def to_json(self) -> list[dict[str, Any]]:
        """The streams as JSON."""
        return [stream.to_json() for stream in self.streams]

    def __getattr__(self, name: str) -> Any:
        raise NoAttribute(f"STLProfile.{name}", ["get_streams", "to_json"], f"STLProfile.{name} is not supported")

    @staticmethod
    def load_pcap(*_args: object, **_kwargs: object) -> STLProfile:
        """Not offered: a capture's frames would be a stream each."""
        raise Unsupported("STLProfile.load_pcap", ["STLPktBuilder(pkt='file.pcap')"], "whole captures are not replayed")
