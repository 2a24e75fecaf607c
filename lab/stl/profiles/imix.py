"""A mix of three sizes, with addresses and ports that change: 28 to 16 to 4 frames of 64, 594 and 1518 bytes.

Tunables: mix (classic, csit, bench). The name belongs into every report, for mixes differ.
"""

from trex_stl_lib.api import *

# Bytes with FCS and frames in the mix.
MIXES = {
    "classic": ((64, 28), (594, 16), (1518, 4)),
    "csit": ((64, 28), (570, 16), (1518, 4)),
    "bench": ((60, 28), (590, 20), (1514, 4)),
}


class Imix:
    """A stream for each size."""

    def stream(self, size, pps, source, destination):
        """Frames of one size, from 254 addresses and as many ports."""
        headers = Ether() / IP(src=f"{source}.0.0.1", dst=f"{destination}.0.0.1") / UDP(sport=1025, dport=12)
        padding = "x" * max(0, size - 4 - len(headers))
        vm = STLVM()
        vm.var(name="src", min_value=f"{source}.0.0.1", max_value=f"{source}.0.0.254", size=4, op="inc")
        vm.write(fv_name="src", pkt_offset="IP.src")
        vm.var(name="port", min_value=1025, max_value=1278, size=2, op="inc")
        vm.write(fv_name="port", pkt_offset="UDP.sport")
        vm.fix_chksum_hw(l3_offset="IP", l4_offset="UDP", l4_type=CTRexVmInsFixHwCs.L4_TYPE_UDP)
        return STLStream(
            name=f"{size} B", packet=STLPktBuilder(pkt=headers / padding, vm=vm), mode=STLTXCont(pps=pps)
        )

    def get_streams(self, mix="classic", direction=0, **kwargs):
        """The streams of one side."""
        if mix not in MIXES:
            raise STLError(f"mix is {mix!r}; it may be {', '.join(MIXES)}")
        source, destination = (16, 48) if direction == 0 else (48, 16)
        return [self.stream(size, pps, source, destination) for size, pps in MIXES[mix]]


def register():
    """What TRex asks for."""
    return Imix()
