"""Packets through packet-generator interfaces, in the way that scripts of VPP's users send them."""

from scapy.layers.inet import ICMP, IP, UDP
from scapy.layers.inet6 import ICMPv6EchoReply, ICMPv6EchoRequest, ICMPv6TimeExceeded, IPv6
from scapy.packet import Raw

from router import TestCase


class Forwarding(TestCase):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.a, cls.b = cls.router.ports(2)
        cls.a.hosts()
        cls.b.hosts()

    def routes(self, prefix, add=True):
        next_hop = self.b.host_ip6 if ":" in prefix else self.b.host_ip4
        path = {"sw_if_index": self.b.index, "table_id": 0, "rpf_id": 0xFFFFFFFF, "weight": 1, "preference": 0, "type": 0,
                "flags": 0, "proto": int(":" in prefix), "n_labels": 0,
                "nh": {"address": {"ip6" if ":" in prefix else "ip4": next_hop}},
                "label_stack": [{"is_uniform": 0, "label": 0, "ttl": 0, "exp": 0}] * 16}
        return self.api.ip_route_add_del(is_add=add, is_multipath=False, route={
            "table_id": 0, "prefix": prefix, "n_paths": 1, "paths": [path]})

    def test_ip4(self):
        self.assertEqual(self.routes("10.9.0.0/16").retval, 0)
        sent = [self.a.ether() / IP(src=self.a.host_ip4, dst=f"10.9.0.{n}", ttl=64) / UDP(sport=1000 + n, dport=2000) / Raw(b"x" * n)
                for n in range(1, 258 - 2)]
        got = self.router.exchange(self.a, sent, self.b, expect=len(sent))
        for before, after in zip(sent, got):
            self.assertEqual((after.src, after.dst), (self.b.mac, self.b.host_mac))
            self.assertEqual((after[IP].dst, after[IP].ttl, bytes(after[Raw])), (before[IP].dst, 63, bytes(before[Raw])))
            checksum = after[IP].chksum
            del after[IP].chksum
            self.assertEqual(IP(bytes(after[IP])).chksum, checksum)
        self.assertEqual(self.routes("10.9.0.0/16", add=False).retval, 0)
        self.router.exchange(self.a, sent[:3], self.b, expect=0)

    def test_ip6(self):
        self.assertEqual(self.routes("2001:db8:9::/48").retval, 0)
        sent = [self.a.ether() / IPv6(src=self.a.host_ip6, dst=f"2001:db8:9::{n:x}", hlim=9) / UDP(sport=1, dport=2) / Raw(b"y" * n)
                for n in range(1, 100)]
        got = self.router.exchange(self.a, sent, self.b, expect=len(sent))
        self.assertTrue(all(p[IPv6].hlim == 8 and p.dst == self.b.host_mac for p in got))

    def test_the_router_answers_pings_and_says_when_a_packet_is_too_old(self):
        ping4 = self.a.ether() / IP(src=self.a.host_ip4, dst=self.a.ip4) / ICMP(id=7, seq=9) / Raw(b"hello")
        ping6 = self.a.ether() / IPv6(src=self.a.host_ip6, dst=self.a.ip6) / ICMPv6EchoRequest(id=3, data=b"hello")
        old4 = self.a.ether() / IP(src=self.a.host_ip4, dst=self.b.host_ip4, ttl=1) / UDP()
        old6 = self.a.ether() / IPv6(src=self.a.host_ip6, dst=self.b.host_ip6, hlim=1) / UDP()
        got = self.router.exchange(self.a, [ping4, ping6, old4, old6], self.a, expect=4)
        kinds = [(ICMP in p and p[ICMP].type, ICMPv6EchoReply in p, ICMPv6TimeExceeded in p) for p in got]
        self.assertIn((0, False, False), kinds)
        self.assertIn((11, False, False), kinds)
        self.assertTrue(any(kind[1] for kind in kinds) and any(kind[2] for kind in kinds), kinds)

    def test_counters_are_in_the_segment(self):
        stats = self.router.stats
        before = stats["/if/rx"][:, self.a.index].sum_packets()
        errors = stats["/err/ip4-input/time_expired"].sum() if "/err/ip4-input/time_expired" in stats.directory else None
        sent = [self.a.ether() / IP(src=self.a.host_ip4, dst=self.b.host_ip4, ttl=1) / UDP()] * 5
        self.router.exchange(self.a, sent, self.b, expect=0)
        self.assertEqual(stats["/if/rx"][:, self.a.index].sum_packets(), before + 5)
        self.assertEqual(stats[f"/interfaces/{self.a.name}/rx"].sum_packets(), before + 5)
        self.assertIn(self.a.name, list(stats["/if/names"]))
        if errors is not None:
            self.assertEqual(stats["/err/ip4-input/time_expired"].sum(), errors + 5)
