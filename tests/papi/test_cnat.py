"""Cloud NAT as an agent of a cluster configures it."""

from router import TestCase

NONE = 0xFFFFFFFF
TCP = 6


def endpoint(address=None, port=0):
    """An address and a port, or none."""
    address = address or "0.0.0.0"
    return {"addr": address, "sw_if_index": NONE, "if_af": int(":" in address), "port": port}


def translation(vip, *backends, lb_type=0, proto=TCP):
    """A virtual address and its back ends."""
    paths = [{"dst_ep": endpoint(*backend), "src_ep": endpoint(), "flags": 0} for backend in backends]
    return {"vip": endpoint(*vip), "id": NONE, "ip_proto": proto, "is_real_ip": 0, "flags": 0, "lb_type": lb_type,
            "n_paths": len(paths), "flow_hash_config": 0, "paths": paths}


class Cnat(TestCase):
    def update(self, *words, **more):
        return self.api.cnat_translation_update(translation=translation(*words, **more))

    def test_translations_are_made_changed_listed_and_deleted(self):
        first = self.update(("198.51.100.1", 80), ("10.0.0.2", 8080), ("10.0.0.3", 8080), lb_type=1)
        self.assertEqual(first.retval, 0)
        second = self.update(("2001:db8:99::1", 80), ("2001:db8:1::2", 8080))
        self.assertEqual((second.retval, second.id == first.id), (0, False))
        again = self.update(("198.51.100.1", 80), ("10.0.0.4", 8080))
        self.assertEqual((again.retval, again.id), (0, first.id))
        listed = {details.translation.id: details.translation for details in self.api.cnat_translation_dump()}
        self.assertEqual(set(listed), {first.id, second.id})
        of = listed[first.id]
        self.assertEqual((str(of.vip.addr), of.vip.port, of.n_paths), ("198.51.100.1", 80, 1))
        self.assertEqual((str(of.paths[0].dst_ep.addr), of.paths[0].dst_ep.port), ("10.0.0.4", 8080))
        self.assertNotEqual(self.update(("198.51.100.1", 80), ("2001:db8::1", 80)).retval, 0)
        for one in (first, second):
            self.assertEqual(self.api.cnat_translation_del(id=one.id).retval, 0)
        self.refused(-6, self.api.cnat_translation_del(id=first.id))

    def test_shared_addresses_and_the_policy(self):
        self.refused(-30, self.api.cnat_get_snat_addresses())
        done = self.api.cnat_set_snat_addresses_v2(
            fwd_fib_index=0, ret_fib_index=0, snat_ip4="203.0.113.9", snat_ip6="2001:db8:77::1", sw_if_index=NONE, flags=4)
        self.assertEqual(done.retval, 0)
        got = self.api.cnat_get_snat_addresses()
        self.assertEqual((str(got.snat_ip4), str(got.snat_ip6)), ("203.0.113.9", "2001:db8:77::1"))
        details, = self.api.cnat_snat_addresses_dump()
        self.assertEqual((details.fwd_table_id4, details.ret_table_id6), (0, 0))
        index = self.api.create_loopback().sw_if_index
        self.addCleanup(lambda: self.api.delete_loopback(sw_if_index=index))
        for table in range(4):
            self.assertEqual(self.api.cnat_snat_policy_add_del_if(sw_if_index=index, is_add=1, table=table).retval, 0)
        self.assertEqual(self.api.cnat_snat_policy_add_del_exclude_pfx(is_add=1, prefix="10.0.0.0/8").retval, 0)
        for policy in (1, 2, 3, 0):
            self.assertEqual(self.api.cnat_set_snat_policy(policy=policy).retval, 0)
        self.assertEqual(self.api.feature_cnat_enable_disable(sw_if_index=index, enable_disable=True).retval, 0)
        self.refused(-2, self.api.feature_cnat_enable_disable(sw_if_index=999, enable_disable=True))
        self.assertEqual(self.api.cnat_session_dump(), [])
        self.assertEqual(self.api.cnat_session_purge().retval, 0)
