"""NAT sessions that two routers share, as automation configures it."""

from router import TestCase

KEY = "000102030405060708090a0b0c0d0e0f"
NONE = 0xFFFFFFFF


class SessionSync(TestCase):
    def peer(self, **more):
        words = {"peer": "10.9.0.2", "local": "10.9.0.1", "port": 0, "no_authentication": False, "key": KEY}
        return self.api.shoal_session_sync_peer_set(**{**words, **more}).retval

    def role(self, role, **more):
        words = {"sw_if_index": NONE, "vr_id": 0, "is_ipv6": False, "local": "0.0.0.0", "peer": "0.0.0.0"}
        return self.api.shoal_session_sync_role_set(role=role, **{**words, **more}).retval

    def test_another_router_is_named_shown_and_forgotten(self):
        self.assertNotEqual(self.peer(key="12"), 0)
        self.assertNotEqual(self.peer(peer="2001:db8::2"), 0)
        self.assertEqual(self.peer(), 0)
        self.assertEqual(self.role(1), 0)
        self.assertNotEqual(self.role(3, sw_if_index=77), 0)
        self.assertEqual(self.api.shoal_session_sync_timers_set(hello_ms=50, dead_ms=200, refresh_seconds=30).retval, 0)
        self.assertNotEqual(self.api.shoal_session_sync_timers_set(hello_ms=50, dead_ms=100, refresh_seconds=30).retval, 0)
        got = self.api.shoal_session_sync_get()
        self.assertEqual((str(got.peer), str(got.local), got.port, got.hello_ms), ("10.9.0.2", "10.9.0.1", 8790, 50))
        self.assertEqual((got.has_peer, got.is_authenticated, got.is_active, got.is_up), (True, True, False, False))
        names = [feature.name for feature in self.api.shoal_session_sync_feature_dump()]
        self.assertEqual(names, ["nat44-ed", "nat64"])
        self.assertEqual(self.api.shoal_session_sync_refused_dump(), [])
        self.assertIn(f"session-sync peer 10.9.0.2 local 10.9.0.1 key {KEY}", self.router.cli("show running-config"))
        self.assertEqual(self.api.shoal_session_sync_resync().retval, 0)
        self.assertEqual(self.role(0), 0)
        self.assertEqual(self.api.shoal_session_sync_peer_del().retval, 0)
        self.assertNotEqual(self.api.shoal_session_sync_resync().retval, 0)
