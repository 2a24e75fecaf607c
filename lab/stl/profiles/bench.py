"""The eight load tests' traffic (T-Rex's `bench`): UDP from one /16 to another.

Tunables: size (bytes with FCS, or imix), vm (none, var1, var2, random, tuple, size, cached).
Only the IPv4 checksum follows the addresses; UDP's stays that of the first frame, as in the published tests.
"""

from trex_stl_lib.api import *

LEFT = ("16.0.0.0", "16.0.255.255")
RIGHT = ("48.0.0.0", "48.0.255.255")

# Bytes with FCS, frames in the mix, microseconds until the first.
IMIX = ((60, 28, 0.0), (590, 20, 0.1), (1514, 4, 0.2))

SMALLEST, LARGEST = 64, 9216
ETHERNET, IP4 = 14, 20


def rising(name, field, addresses, op="inc"):
    """A variable over a range of addresses, and where it goes."""
    return [
        STLVmFlowVar(name=name, min_value=addresses[0], max_value=addresses[1], size=4, op=op),
        STLVmWrFlowVar(fv_name=name, pkt_offset=field),
    ]


def any_size():
    """A random size, and the two lengths that follow it."""
    return [
        STLVmFlowVar(name="size", min_value=SMALLEST - 4, max_value=LARGEST - 4, size=2, op="random"),
        STLVmTrimPktSize("size"),
        STLVmWrFlowVar(fv_name="size", pkt_offset="IP.len", add_val=-ETHERNET),
        STLVmWrFlowVar(fv_name="size", pkt_offset="UDP.len", add_val=-(ETHERNET + IP4)),
    ]


def address_and_port(sources):
    """Flows: each address with one port, then each with the next."""
    return [
        STLVmTupleGen(name="flow", ip_min=sources[0], ip_max=sources[1], port_min=1234, port_max=65500),
        STLVmWrFlowVar(fv_name="flow.ip", pkt_offset="IP.src"),
        STLVmWrFlowVar(fv_name="flow.port", pkt_offset="UDP.sport"),
    ]


class Bench:
    """One stream, or three for the mix."""

    def program(self, vm, sources, destinations):
        """The field program by its name."""
        fix = [STLVmFixIpv4(offset="IP")]
        if vm in (None, "", "none"):
            return None
        if vm == "var1":
            return rising("src", "IP.src", sources) + fix
        if vm == "var2":
            return rising("src", "IP.src", sources) + rising("dst", "IP.dst", destinations) + fix
        if vm == "random":
            return rising("src", "IP.src", sources, op="random") + fix
        if vm == "tuple":
            return address_and_port(sources) + fix
        if vm == "size":
            return any_size() + fix
        if vm == "cached":
            return STLScVmRaw(rising("src", "IP.src", sources) + fix, cache_size=255)
        raise STLError(f"vm is {vm!r}; it may be none, var1, var2, random, tuple, size or cached")

    def stream(self, size, vm, sources, destinations, pps=1, isg=0.0):
        """Frames of one size."""
        headers = Ether() / IP(src=sources[0], dst=destinations[0]) / UDP()
        padding = "x" * max(0, size - 4 - len(headers))
        return STLStream(
            packet=STLPktBuilder(pkt=headers / padding, vm=self.program(vm, sources, destinations)),
            mode=STLTXCont(pps=pps),
            isg=isg,
        )

    def get_streams(self, size=64, vm=None, direction=0, **kwargs):
        """The streams of one side."""
        sources, destinations = (LEFT, RIGHT) if direction == 0 else (RIGHT, LEFT)
        if size == "imix":
            if vm == "size":
                raise STLError("vm=size sets the size itself; it does not go with size=imix")
            return [self.stream(bytes_, vm, sources, destinations, pps, isg) for bytes_, pps, isg in IMIX]
        return [self.stream(LARGEST if vm == "size" else size, vm, sources, destinations)]


def register():
    """What TRex asks for."""
    return Bench()
