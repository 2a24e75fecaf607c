"""NAT44, endpoint independent, and what two routers tell each other of its sessions."""

from router import TestCase, wait_for

INSIDE, OUTSIDE = 16, 32


class Nat44Ei(TestCase):
    def setUp(self):
        super().setUp()
        done = self.api.nat44_ei_plugin_enable_disable(
            inside_vrf=0, outside_vrf=0, users=10, user_memory=0, sessions=100, session_memory=0, user_sessions=5,
            enable=True, flags=0)
        self.assertEqual(done.retval, 0)
        self.addCleanup(lambda: self.api.nat44_ei_plugin_enable_disable(enable=False))

    def test_the_other_router_is_set_asked_for_and_brought_up_to_date(self):
        listener = self.api.nat44_ei_ha_get_listener()
        self.assertEqual((str(listener.ip_address), listener.port), ("0.0.0.0", 0))
        done = self.api.nat44_ei_ha_set_listener(ip_address="10.9.0.1", port=1234, path_mtu=1400)
        self.assertEqual(done.retval, 0)
        listener = self.api.nat44_ei_ha_get_listener()
        self.assertEqual((str(listener.ip_address), listener.port, listener.path_mtu), ("10.9.0.1", 1234, 1400))
        done = self.api.nat44_ei_ha_set_failover(ip_address="10.9.0.2", port=1235, session_refresh_interval=20)
        self.assertEqual(done.retval, 0)
        other = self.api.nat44_ei_ha_get_failover()
        self.assertEqual((str(other.ip_address), other.port, other.session_refresh_interval), ("10.9.0.2", 1235, 20))
        self.assertEqual(self.api.nat44_ei_ha_flush().retval, 0)
        # There are no sessions, so that all is told at once.
        events = []
        self.router.client.register_event_callback(lambda name, event: events.append((name, event.missed_count)))
        self.addCleanup(lambda: self.router.client.register_event_callback(None))
        done = self.api.nat44_ei_ha_resync(want_resync_event=1, pid=7)
        self.assertEqual(done.retval, 0)
        wait_for("the event", lambda: events)
        self.assertEqual(events, [("nat44_ei_ha_resync_completed_event", 0)])
        for message in (self.api.nat44_ei_ha_set_failover, self.api.nat44_ei_ha_set_listener):
            self.assertEqual(message(ip_address="0.0.0.0", port=0).retval, 0)
        self.assertEqual(self.api.nat44_ei_ha_get_failover().port, 0)

    def test_addresses_limits_and_workers(self):
        done = self.api.nat44_ei_add_del_address_range(
            is_add=True, first_ip_address="192.0.2.10", last_ip_address="192.0.2.11", vrf_id=0xFFFFFFFF)
        self.assertEqual(done.retval, 0)
        listed = [str(details.ip_address) for details in self.api.nat44_ei_address_dump()]
        self.assertEqual(listed, ["192.0.2.10", "192.0.2.11"])
        index = self.api.create_loopback().sw_if_index
        self.addCleanup(lambda: self.api.delete_loopback(sw_if_index=index))
        for flags in (INSIDE, OUTSIDE):
            done = self.api.nat44_ei_interface_add_del_feature(is_add=True, sw_if_index=index, flags=flags)
            self.assertEqual(done.retval, 0)
        details, = self.api.nat44_ei_interface_dump()
        self.assertEqual((details.sw_if_index, int(details.flags)), (index, INSIDE | OUTSIDE))
        self.assertEqual(self.api.shoal_nat44_ei_user_limit_get().drop, False)
        self.assertEqual(self.api.shoal_nat44_ei_user_limit_set(drop=True).retval, 0)
        self.assertEqual(self.api.shoal_nat44_ei_user_limit_get().drop, True)
        # Without workers there is nothing to share out.
        self.assertEqual(self.api.nat44_ei_worker_dump(), [])
        self.refused(-30, self.api.nat44_ei_set_workers(worker_mask=1))


class Workers(TestCase):
    """Two workers, in both kinds of NAT44."""

    words = ("cpu", "{", "workers", "2", "}")

    def test_workers_are_listed_and_masks_are_judged(self):
        for name in ("nat44_ei", "nat"):
            listed = getattr(self.api, f"{name}_worker_dump")()
            self.assertEqual([(w.worker_index, w.name) for w in listed], [(0, "vpp_wk_0"), (1, "vpp_wk_1")])
            of = getattr(self.api, f"{name}_set_workers")
            self.assertEqual(of(worker_mask=3).retval, 0)
            for mask in (0, 4, 2**64 - 1):
                self.assertLess(of(worker_mask=mask).retval, 0)
