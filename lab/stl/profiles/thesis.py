"""A heavy stream and a small one whose delay is measured, as in the thesis's profile (its Appendix A, repaired).

Tunables: size (bytes with FCS of the heavy stream), cache (source addresses: 255 for forwarding, 65535 for NAT),
latency_pps (0: no such stream). The other direction is the mirror image, with another number for its statistics.
"""

from trex_stl_lib.api import *


class Thesis:
    """Two streams."""

    def heavy(self, size, cache, direction):
        """Frames from many addresses to one, both checksums right."""
        source, destination, first = (
            ("16.0.0.1", "48.0.0.1", "10.0.0.1") if direction == 0 else ("48.0.0.1", "16.0.0.1", "20.0.0.1")
        )
        headers = Ether() / IP(src=source, dst=destination) / UDP(sport=1025, dport=12)
        padding = "x" * max(0, size - 4 - len(headers))
        vm = STLScVmRaw(
            [
                STLVmFlowVar(
                    name="src", min_value=first, max_value=increase_ip(first, 65534), size=4, op="inc"
                ),
                STLVmWrFlowVar(fv_name="src", pkt_offset="IP.src"),
                STLVmFixChecksumHw(l3_offset="IP", l4_offset="UDP", l4_type=CTRexVmInsFixHwCs.L4_TYPE_UDP),
            ],
            cache_size=cache,
        )
        return STLStream(name="heavy", packet=STLPktBuilder(pkt=headers / padding, vm=vm), mode=STLTXCont())

    def latency(self, pps, direction):
        """Frames of 64 bytes at a rate of their own."""
        source, destination = ("16.0.0.1", "48.0.0.1") if direction == 0 else ("48.0.0.1", "16.0.0.1")
        headers = Ether() / IP(src=source, dst=destination) / UDP(sport=1234, dport=1234)
        padding = "x" * (60 - len(headers))
        return STLStream(
            name="latency",
            packet=STLPktBuilder(pkt=headers / padding),
            mode=STLTXCont(pps=pps),
            flow_stats=STLFlowLatencyStats(pg_id=7 + direction),
        )

    def get_streams(self, size=64, cache=255, latency_pps=5000, direction=0, **kwargs):
        """The streams of one side."""
        streams = [self.heavy(size, cache, direction)]
        if latency_pps:
            streams.append(self.latency(latency_pps, direction))
        return streams


def register():
    """What TRex asks for."""
    return Thesis()
