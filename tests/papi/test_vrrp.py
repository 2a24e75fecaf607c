"""Virtual routers of both families as VPP's clients make, watch and delete them."""

from router import TestCase, wait_for

NONE = 0xFFFFFFFF
PREEMPT, ACCEPT, UNICAST, IPV6 = 1, 2, 4, 8
INIT, BACKUP, MASTER = 0, 1, 2

# Own address, virtual addresses, peers, and the last byte but one of the virtual MAC address.
FAMILIES = {
    False: ("192.0.2.2/24", ["192.0.2.1"], ["192.0.2.3", "192.0.2.4"], 1),
    True: ("2001:db8:2::2/64", ["fe80::7", "2001:db8:2::1"], ["fe80::3", "fe80::4"], 2),
}


class Vrrp(TestCase):
    def interface(self):
        index = self.api.create_loopback().sw_if_index
        self.addCleanup(lambda: self.api.delete_loopback(sw_if_index=index))
        for prefix, *_ in FAMILIES.values():
            added = self.api.sw_interface_add_del_address(sw_if_index=index, is_add=True, prefix=prefix)
            self.assertEqual(added.retval, 0)
        self.assertEqual(self.api.sw_interface_set_flags(sw_if_index=index, flags=1).retval, 0)
        return index

    def add(self, index, is_ip6, addresses, flags=PREEMPT | ACCEPT, is_add=True, vr_id=7):
        flags |= IPV6 if is_ip6 else 0
        return self.api.vrrp_vr_add_del(is_add=is_add, sw_if_index=index, vr_id=vr_id, priority=150, interval=10, flags=flags,
                                        n_addrs=len(addresses), addrs=addresses)

    def details(self, index, is_ip6):
        all_of = [vr for vr in self.api.vrrp_vr_dump(sw_if_index=index) if bool(vr.config.flags & IPV6) == is_ip6]
        return all_of[0] if all_of else None

    def test_a_virtual_router_of_each_family_becomes_the_master_and_says_so(self):
        index = self.interface()
        events = []
        self.router.client.register_event_callback(lambda name, event: events.append((name, event)))
        self.addCleanup(lambda: self.router.client.register_event_callback(None))
        self.assertEqual(self.api.want_vrrp_vr_events(enable_disable=True, pid=42).retval, 0)
        for is_ip6, (_, addresses, _, number) in FAMILIES.items():
            with self.subTest(is_ip6=is_ip6):
                self.assertEqual(self.add(index, is_ip6, addresses).retval, 0)
                self.assertNotEqual(self.add(index, is_ip6, addresses).retval, 0)
                vr = self.details(index, is_ip6)
                self.assertEqual((vr.config.vr_id, vr.config.priority, vr.config.interval), (7, 150, 10))
                self.assertEqual([str(address) for address in vr.addrs], addresses)
                self.assertEqual((vr.runtime.state, str(vr.runtime.mac)), (INIT, f"00:00:5e:00:0{number}:07"))
                start = lambda on: self.api.vrrp_vr_start_stop(sw_if_index=index, vr_id=7, is_ipv6=is_ip6, is_start=on)
                self.assertEqual(start(1).retval, 0)
                wait_for("the master", lambda: self.details(index, is_ip6).runtime.state == MASTER)
                said = lambda: [(e.old_state, e.new_state) for n, e in events
                                if n == "vrrp_vr_event" and e.vr.sw_if_index == index and bool(e.vr.is_ipv6) == is_ip6]
                wait_for("the event", lambda: self.api.control_ping() and (BACKUP, MASTER) in said())
                self.assertEqual(start(0).retval, 0)
                self.assertEqual(self.details(index, is_ip6).runtime.state, INIT)
                self.assertEqual(self.add(index, is_ip6, addresses, is_add=False).retval, 0)
                self.assertIsNone(self.details(index, is_ip6))
        self.assertEqual(self.api.want_vrrp_vr_events(enable_disable=False, pid=42).retval, 0)

    def test_peers_and_tracked_interfaces_of_each_family(self):
        index, other = self.interface(), self.api.create_loopback().sw_if_index
        self.addCleanup(lambda: self.api.delete_loopback(sw_if_index=other))
        for is_ip6, (_, addresses, peers, _) in FAMILIES.items():
            with self.subTest(is_ip6=is_ip6):
                which = {"sw_if_index": index, "vr_id": 7, "is_ipv6": is_ip6}
                self.assertEqual(self.add(index, is_ip6, addresses, PREEMPT | UNICAST).retval, 0)
                self.assertEqual(self.api.vrrp_vr_set_peers(**which, n_addrs=2, addrs=peers).retval, 0)
                listed, = self.api.vrrp_vr_peer_dump(**which)
                self.assertEqual([str(peer) for peer in listed.peer_addrs], peers)
                wrong = FAMILIES[not is_ip6][2]
                self.assertNotEqual(self.api.vrrp_vr_set_peers(**which, n_addrs=2, addrs=wrong).retval, 0)
                track = lambda on, at=other: self.api.vrrp_vr_track_if_add_del(
                    **which, is_add=on, n_ifs=1, ifs=[{"sw_if_index": at, "priority": 60}])
                self.assertEqual(track(1).retval, 0)
                self.assertNotEqual(track(1, index).retval, 0)
                tracked, = self.api.vrrp_vr_track_if_dump(**which, dump_all=0)
                self.assertEqual([(one.sw_if_index, one.priority) for one in tracked.ifs], [(other, 60)])
                # It is down.
                self.assertEqual(self.details(index, is_ip6).runtime.tracking.interfaces_dec, 60)
                self.assertEqual(track(0).retval, 0)
                self.assertEqual(self.details(index, is_ip6).runtime.tracking.interfaces_dec, 0)
                self.assertEqual(self.add(index, is_ip6, addresses, is_add=False).retval, 0)

    def test_virtual_routers_are_changed_by_their_number(self):
        index = self.interface()
        for is_ip6, (_, addresses, _, _) in FAMILIES.items():
            with self.subTest(is_ip6=is_ip6):
                flags = PREEMPT | (IPV6 if is_ip6 else 0)
                words = {"sw_if_index": index, "vr_id": 9, "interval": 100, "flags": flags, "n_addrs": len(addresses),
                         "addrs": addresses}
                made = self.api.vrrp_vr_update(vrrp_index=NONE, priority=100, **words)
                self.assertEqual(made.retval, 0)
                changed = self.api.vrrp_vr_update(vrrp_index=made.vrrp_index, priority=120, **words)
                self.assertEqual((changed.retval, changed.vrrp_index), (0, made.vrrp_index))
                self.assertEqual(self.details(index, is_ip6).config.priority, 120)
                self.assertEqual(self.api.vrrp_vr_del(vrrp_index=made.vrrp_index).retval, 0)
                self.assertNotEqual(self.api.vrrp_vr_del(vrrp_index=made.vrrp_index).retval, 0)

    def test_what_cannot_be_is_refused(self):
        index = self.interface()
        self.assertNotEqual(self.add(999, True, ["fe80::7"]).retval, 0)
        self.assertNotEqual(self.add(index, True, []).retval, 0)
        self.assertNotEqual(self.add(index, True, ["192.0.2.1"]).retval, 0)
        self.assertNotEqual(self.add(index, False, ["fe80::7"]).retval, 0)
        self.assertNotEqual(self.add(index, True, ["fe80::7"], vr_id=0).retval, 0)
        self.assertNotEqual(self.api.vrrp_vr_start_stop(sw_if_index=index, vr_id=7, is_ipv6=1, is_start=1).retval, 0)
        self.assertEqual(self.api.vrrp_vr_dump(sw_if_index=index), [])
