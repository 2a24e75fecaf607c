"""A router of its own for each class of tests, started as automation written for VPP starts one."""

import glob
import os
import unittest

from scapy.layers.l2 import Ether
from scapy.utils import rdpcap, wrpcap
from vpp_papi import VPPApiClient
from vpp_papi.vpp_stats import VPPStats

from daemon import ROOT, SHOAL, SHOALCTL, Daemon, wait_for

API_FILES = sorted(glob.glob(str(ROOT / "share/api/*/*.api.json")))


class Router(Daemon):
    """A running router and a client of its API."""

    def __init__(self, *words):
        super().__init__()
        self.more = words
        self.start()
        try:
            self.client = self.connect("tests")
            self.api = self.client.api
        except BaseException:
            self.end()
            raise
        self.stats = VPPStats(self.path("stats.sock"))
        self.streams = []

    def words(self):
        # The words and their cuts are those of programs that start VPP.
        return [
            "unix", "{", "nodaemon", "nosyslog", "", "full-coredump", "coredump-size unlimited",
            "runtime-dir", self.dir, "cli-listen ", self.path("cli.sock"), " ", "}",
            "api-trace", "{", "on", "}",
            "api-segment", "{", "prefix", "vpp-unittest-Some", "}",
            "cpu", "{", "main-core", str(min(os.sched_getaffinity(0))), "}",
            "physmem", "{", "max-size", "32m", "}",
            "statseg", "{", "socket-name", self.path("stats.sock"), "", "}",
            "socksvr", "{", "socket-name", self.path("api.sock"), "}",
            "node { ", "", "}", "api-fuzz {", "off", "}",
            "plugins", "{", "plugin", "dpdk_plugin.so", "{", "disable", "}",
            "plugin", "unittest_plugin.so", "{", "enable", "}", "}",
            "configuration", "{", "restore", "off", "}",
            *self.more,
        ]

    def connect(self, name, **options):
        """One more client."""
        client = VPPApiClient(apifiles=API_FILES, server_address=f"{self.dir}/api.sock", **options)
        client.connect(name[:63])
        return client

    def cli(self, line):
        """What the command line says."""
        reply = self.api.cli_inband(cmd=line + "\n")
        if reply.retval != 0:
            raise AssertionError(f"{line}: {reply.reply}")
        return reply.reply

    def end(self):
        """Ends it; it must end well."""
        try:
            if getattr(self, "client", None):
                self.client.disconnect()
        finally:
            code = self.stop()
        said = self.said()
        self.folder.cleanup()
        if code != 0:
            raise AssertionError(f"the router ended with {code}: {said}")

    def ports(self, count):
        """Packet-generator interfaces that are up, with addresses of both families."""
        return [Port(self, n) for n in range(count)]

    def exchange(self, port, packets, *to, expect):
        """Sends packets into a port; what came out of others, in lists, the first with so many."""
        for one in to:
            one.capture()
        port.feed(packets)
        self.cli("clear trace")
        self.cli("trace add pg-input 1000")
        self.cli("packet-generator enable")
        wait_for("the streams to end", lambda: "Yes" not in self.cli("show packet-generator"))
        for stream in self.streams:
            self.cli(f"packet-generator delete {stream}")
        self.streams.clear()
        captured = [one.captured() for one in to]
        if captured and len(captured[0]) != expect:
            raise AssertionError(f"{len(captured[0])} packets instead of {expect}: {captured[0]}\n{self.cli('show trace max 10')}"
                                 f"\n{self.cli('show errors')}")
        return captured if len(captured) != 1 else captured[0]


class Port:
    """A packet-generator interface. Its addresses are 172.16.N.1/24 and fd01:N::1/64, N its index; .2 is a host there."""

    def __init__(self, router, number):
        self.router = router
        self.index = router.api.pg_create_interface_v3(interface_id=number, gso_size=0, mode=0).sw_if_index
        router.api.sw_interface_set_flags(sw_if_index=self.index, flags=1)
        details, = router.api.sw_interface_dump(sw_if_index=self.index)
        self.name, self.mac = details.interface_name, str(details.l2_address)
        self.host_mac = f"02:{self.index:02x}:00:00:ff:02"
        self.ip4, self.host_ip4 = f"172.16.{self.index}.1", f"172.16.{self.index}.2"
        self.ip6, self.host_ip6 = f"fd01:{self.index:x}::1", f"fd01:{self.index:x}::2"
        for address, length in ((self.ip4, 24), (self.ip6, 64)):
            router.api.sw_interface_add_del_address(
                sw_if_index=self.index, is_add=True, prefix=f"{address}/{length}")

    def hosts(self):
        """Adds the hosts as static neighbours, so that no request is sent."""
        for address in (self.host_ip4, self.host_ip6):
            self.router.api.ip_neighbor_add_del(is_add=True, neighbor={
                "sw_if_index": self.index, "flags": 1, "mac_address": self.host_mac, "ip_address": address})

    def ether(self):
        """The header of a packet from the host."""
        return Ether(src=self.host_mac, dst=self.mac)

    def feed(self, packets):
        path = f"{self.router.dir}/{self.name}_in.pcap"
        wrpcap(path, packets)
        stream = f"pcap0-sw_if_index-{self.index}"
        self.router.cli(f"packet-generator new pcap {path} source {self.name} name {stream}")
        self.router.streams.append(stream)

    def capture(self):
        self.path = f"{self.router.dir}/{self.name}_out.pcap"
        self.router.cli(f"packet-generator capture {self.name} disable")
        if os.path.exists(self.path):
            os.unlink(self.path)
        self.router.cli(f"packet-generator capture {self.name} pcap {self.path}")

    def captured(self):
        # What the router says by itself is not what was sent: neighbour discovery and listener reports.
        own = lambda p: p.haslayer("ICMPv6ND_RA") or p.haslayer("ICMPv6MLReport2") or p.haslayer("ICMPv6ND_NS")
        packets = rdpcap(self.path) if os.path.exists(self.path) else []
        self.router.cli(f"packet-generator capture {self.name} disable")
        return [p for p in packets if not own(p)]


class TestCase(unittest.TestCase):
    """Tests of one router."""

    words = ()

    @classmethod
    def setUpClass(cls):
        cls.router = Router(*cls.words)
        cls.api = cls.router.api

    @classmethod
    def tearDownClass(cls):
        cls.router.end()

    def refused(self, retval, reply):
        """The reply says why not."""
        self.assertEqual(reply.retval, retval, reply)
