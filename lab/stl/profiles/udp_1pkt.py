"""One UDP frame of 64 bytes, again and again. The smallest profile; both sides send the same."""

from trex_stl_lib.api import *


class OnePacket:
    """One stream."""

    def get_streams(self, **kwargs):
        """The stream, whatever the side."""
        frame = Ether() / IP(src="16.0.0.1", dst="48.0.0.1") / UDP(sport=1025, dport=12) / (18 * "x")
        return [STLStream(packet=STLPktBuilder(pkt=frame), mode=STLTXCont(pps=1))]


def register():
    """What TRex asks for."""
    return OnePacket()
