"""Objects made, listed, changed and deleted as scripts do it; what is refused, and with which number."""

import time
import unittest

from scapy.layers.inet import IP, UDP

from router import TestCase, wait_for

NONE = 0xFFFFFFFF


def path(next_hop=None, interface=NONE, weight=1, kind=0, table=0):
    """A way of a route."""
    is_ip6 = next_hop is not None and ":" in next_hop
    return {"sw_if_index": interface, "table_id": table, "rpf_id": NONE, "weight": weight, "preference": 0, "type": kind,
            "flags": 0, "proto": int(is_ip6), "n_labels": 0,
            "nh": {"address": {"ip6" if is_ip6 else "ip4": next_hop}} if next_hop else {},
            "label_stack": [{"is_uniform": 0, "label": 0, "ttl": 0, "exp": 0}] * 16}


class Objects(TestCase):
    def loopback(self):
        index = self.api.create_loopback().sw_if_index
        self.addCleanup(lambda: self.api.delete_loopback(sw_if_index=index))
        return index

    def route(self, prefix, *paths, table=0, add=True, multipath=False):
        return self.api.ip_route_add_del(is_add=add, is_multipath=multipath, route={
            "table_id": table, "prefix": prefix, "n_paths": len(paths), "paths": list(paths)})

    def routes(self, table=0, is_ip6=False):
        dump = self.api.ip_route_dump(table={"table_id": table, "is_ip6": is_ip6})
        return {str(d.route.prefix): d.route for d in dump}

    def test_loopbacks_have_names_states_sizes_and_tags(self):
        index = self.loopback()
        self.assertEqual(self.api.sw_interface_set_flags(sw_if_index=index, flags=1).retval, 0)
        self.assertEqual(self.api.sw_interface_set_mtu(sw_if_index=index, mtu=[2000, 0, 0, 0]).retval, 0)
        self.assertEqual(self.api.sw_interface_tag_add_del(is_add=True, sw_if_index=index, tag="mine").retval, 0)
        details, = self.api.sw_interface_dump(sw_if_index=index)
        self.assertEqual((details.flags & 1, details.mtu[0], details.tag), (1, 2000, "mine"))
        self.assertTrue(details.interface_name.startswith("loop"))
        named = self.api.sw_interface_dump(name_filter_valid=True, name_filter=details.interface_name)
        self.assertIn(index, [one.sw_if_index for one in named])
        mac = self.api.sw_interface_get_mac_address(sw_if_index=index).mac_address
        self.assertEqual(mac, details.l2_address)

    def test_local0_is_0_and_unknown_interfaces_are_refused(self):
        details, = self.api.sw_interface_dump(sw_if_index=0)
        self.assertEqual(details.interface_name, "local0")
        self.refused(-2, self.api.sw_interface_set_flags(sw_if_index=999, flags=1))
        self.refused(-2, self.api.sw_interface_set_mtu(sw_if_index=999, mtu=[1500, 0, 0, 0]))
        self.refused(-2, self.api.sw_interface_add_del_address(sw_if_index=999, is_add=True, prefix="10.1.1.1/24"))
        self.assertEqual(self.api.sw_interface_dump(sw_if_index=999), [])
        self.refused(-3, self.api.sw_interface_set_table(sw_if_index=0, is_ipv6=False, vrf_id=77))

    def test_addresses_come_and_go(self):
        index = self.loopback()
        for prefix in ("10.20.0.1/24", "2001:db8:20::1/64"):
            self.assertEqual(self.api.sw_interface_add_del_address(sw_if_index=index, is_add=True, prefix=prefix).retval, 0)
        listed = lambda is_ip6: [str(a.prefix) for a in self.api.ip_address_dump(sw_if_index=index, is_ipv6=is_ip6)]
        self.assertEqual(listed(False), ["10.20.0.1/24"])
        self.assertIn("2001:db8:20::1/64", listed(True))
        self.assertEqual(self.api.sw_interface_add_del_address(sw_if_index=index, is_add=False, del_all=True).retval, 0)
        self.assertEqual(listed(False), [])

    def test_interface_events(self):
        events = []
        self.router.client.register_event_callback(lambda name, event: events.append((name, event)))
        self.addCleanup(lambda: self.router.client.register_event_callback(None))
        self.assertEqual(self.api.want_interface_events(enable_disable=1, pid=42).retval, 0)
        self.refused(-31, self.api.want_interface_events(enable_disable=1, pid=42))
        index = self.loopback()
        self.api.sw_interface_set_flags(sw_if_index=index, flags=1)
        up = lambda: [e for n, e in events if n == "sw_interface_event" and e.sw_if_index == index and e.flags & 1]
        wait_for("the event", lambda: self.api.control_ping() and up())
        self.assertEqual(up()[0].pid, 42)
        self.assertEqual(self.api.want_interface_events(enable_disable=0, pid=42).retval, 0)
        self.refused(-31, self.api.want_interface_events(enable_disable=0, pid=42))
        count = len(events)
        self.api.sw_interface_set_flags(sw_if_index=index, flags=0)
        self.api.control_ping()
        time.sleep(0.2)
        self.assertEqual(len(events), count)

    def test_tables_and_routes(self):
        for is_ip6, prefix in ((False, "10.30.0.0/16"), (True, "2001:db8:30::/48")):
            with self.subTest(prefix):
                table = {"table_id": 30, "is_ip6": is_ip6, "name": "thirty"}
                self.refused(-3, self.route(prefix, path(kind=2), table=30))
                self.assertEqual(self.api.ip_table_add_del(is_add=True, table=table).retval, 0)
                self.assertIn("thirty", [t.table.name for t in self.api.ip_table_dump()])
                self.assertEqual(self.route(prefix, path(kind=2), table=30).retval, 0)
                self.assertEqual(self.routes(30, is_ip6)[prefix].paths[0].type, 2)
                found = self.api.ip_route_lookup(table_id=30, exact=True, prefix=prefix)
                self.assertEqual((found.retval, str(found.route.prefix)), (0, prefix))
                self.assertEqual(self.route(prefix, path(kind=2), table=30, add=False).retval, 0)
                self.assertNotIn(prefix, self.routes(30, is_ip6))
                self.assertEqual(self.api.ip_table_add_del(is_add=False, table=table).retval, 0)

    def test_routes_with_several_ways(self):
        index = self.loopback()
        self.api.sw_interface_add_del_address(sw_if_index=index, is_add=True, prefix="10.31.0.1/24")
        self.api.sw_interface_set_flags(sw_if_index=index, flags=1)
        one, two = path("10.31.0.2", index, weight=3), path("10.31.0.3", index)
        self.assertEqual(self.route("10.32.0.0/16", one, two).retval, 0)
        self.assertEqual(sorted(p.weight for p in self.routes()["10.32.0.0/16"].paths), [1, 3])
        self.assertEqual(self.route("10.32.0.0/16", one, add=False, multipath=True).retval, 0)
        self.assertEqual(len(self.routes()["10.32.0.0/16"].paths), 1)
        self.assertEqual(self.route("10.32.0.0/16", path("10.31.0.4", index), multipath=True).retval, 0)
        self.assertEqual(len(self.routes()["10.32.0.0/16"].paths), 2)
        self.assertEqual(self.route("10.32.0.0/16", add=False).retval, 0)
        self.assertNotIn("10.32.0.0/16", self.routes())

    def test_a_dump_of_many_routes_has_each_once(self):
        for n in range(500):
            self.route(f"10.{100 + n // 256}.{n % 256}.0/24", path(kind=2))
        prefixes = [str(d.route.prefix) for d in self.api.ip_route_dump(table={"table_id": 0, "is_ip6": False})]
        mine = [p for p in prefixes if p.startswith(("10.100.", "10.101."))]
        self.assertEqual((len(mine), len(set(mine))), (500, 500))
        for prefix in mine:
            self.route(prefix, path(kind=2), add=False)

    def test_neighbours_and_their_events(self):
        index = self.loopback()
        self.api.sw_interface_add_del_address(sw_if_index=index, is_add=True, prefix="10.40.0.1/24")
        self.api.sw_interface_set_flags(sw_if_index=index, flags=1)
        for address in ("10.40.0.9", "2001:db8:40::9"):
            neighbor = {"sw_if_index": index, "flags": 1, "mac_address": "02:00:00:00:00:09", "ip_address": address}
            reply = self.api.ip_neighbor_add_del(is_add=True, neighbor=neighbor)
            self.assertEqual(reply.retval, 0)
            family = int(":" in address)
            listed = self.api.ip_neighbor_dump(sw_if_index=index, af=family)
            self.assertEqual([str(n.neighbor.mac_address) for n in listed], ["02:00:00:00:00:09"])
            self.assertEqual(self.api.ip_neighbor_add_del(is_add=False, neighbor=neighbor).retval, 0)
            self.assertEqual(self.api.ip_neighbor_dump(sw_if_index=index, af=family), [])

    def test_features_and_errors(self):
        index = self.loopback()
        reply = self.api.feature_is_enabled(arc_name="no-such-arc", feature_name="x", sw_if_index=index)
        self.assertNotEqual(reply.retval, 0)

    def test_multicast_routes_are_listed(self):
        names = [t.table.table_id for t in self.api.ip_mtable_dump()]
        self.assertIn(0, names)
        self.assertGreater(len(self.api.ip_mroute_dump(table={"table_id": 0, "is_ip6": False})), 0)

    def test_traces_are_read(self):
        a, = self.router.ports(1)
        a.hosts()
        a.feed([a.ether() / IP(src=a.host_ip4, dst="10.99.99.99") / UDP()] * 3)
        self.router.cli("clear trace")
        self.router.cli("trace add pg-input 10")
        self.router.cli("packet-generator enable")
        wait_for("the stream", lambda: "Yes" not in self.router.cli("show packet-generator"))
        reply, details = self.api.trace_dump(clear_cache=True, thread_id=0, position=0, max_records=50)
        self.assertEqual(reply.retval, 0)
        self.assertIn("pg-input", "".join(d.trace_data for d in details))
        self.router.cli(f"packet-generator delete {self.router.streams.pop()}")

    def test_the_log_is_read(self):
        self.assertGreater(len(self.api.log_dump(start_timestamp=0)), 0)


if __name__ == "__main__":
    unittest.main()
