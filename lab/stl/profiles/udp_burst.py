"""Three bursts in a chain: 10 small frames, 20 larger ones behind them, then pairs with pauses.

Tunables, as options: --frames (of the first burst), --rate (frames a second).
"""

import argparse

from trex_stl_lib.api import *


class Bursts:
    """Three streams, each started by the one before."""

    def stream(self, name, size, direction, mode, **more):
        """One burst."""
        source, destination = ("16.0.0.1", "48.0.0.1") if direction == 0 else ("48.0.0.1", "16.0.0.1")
        headers = Ether() / IP(src=source, dst=destination) / UDP(sport=1025, dport=12)
        padding = "x" * (size - 4 - len(headers))
        return STLStream(name=name, packet=STLPktBuilder(pkt=headers / padding), mode=mode, **more)

    def get_streams(self, direction, tunables, **kwargs):
        """The streams of one side."""
        parser = argparse.ArgumentParser(description="three bursts in a chain")
        parser.add_argument("--frames", type=int, default=10, help="frames of the first burst")
        parser.add_argument("--rate", type=float, default=1000.0, help="frames a second")
        args = parser.parse_args(tunables)
        return [
            self.stream(
                "first", 64, direction, STLTXSingleBurst(total_pkts=args.frames, pps=args.rate), next="second"
            ),
            self.stream(
                "second",
                128,
                direction,
                STLTXSingleBurst(total_pkts=20, pps=args.rate),
                self_start=False,
                isg=1000.0,
                next="third",
            ),
            self.stream(
                "third",
                256,
                direction,
                STLTXMultiBurst(pkts_per_burst=2, count=5, ibg=500.0, pps=args.rate),
                self_start=False,
            ),
        ]


def register():
    """What TRex asks for."""
    return Bursts()
