"""vppcfg: what it plans and applies is there, and applying it again changes nothing."""

import os
import pathlib
import subprocess
import sys
import unittest

import yaml

from router import TestCase

CONFIG = """
loopbacks:
  loop0:
    description: "Core: a loopback"
    lcp: loop0
    mtu: 9216
    addresses: [ 192.0.2.1/32, 2001:db8:1::1/128 ]
  loop1:
    description: "Not known to the host"
    mtu: 1500
    addresses: [ 10.10.0.1/24, 2001:db8:10::1/64 ]
taps:
  tap4:
    host:
      name: vpp-tap4
"""

CHANGED = """
loopbacks:
  loop1:
    description: "Another address, another size"
    mtu: 2000
    addresses: [ 10.10.0.9/24 ]
"""

LAYER2 = """
bondethernets:
  BondEthernet0:
    interfaces: [ pg1, pg2 ]
    mode: lacp
    load-balance: l34
interfaces:
  pg0:
    mtu: 9000
    sub-interfaces:
      10:
        mtu: 1500
        addresses: [ 192.0.2.1/29, 2001:db8:10::1/64 ]
      20:
        description: "QinQ"
        encapsulation: { dot1q: 20, inner-dot1q: 7, exact-match: true }
      30:
        encapsulation: { dot1ad: 30, inner-dot1q: 3, exact-match: true }
      40:
        mtu: 1500
        l2xc: pg3
  pg1: { mtu: 9000 }
  pg2: { mtu: 9000 }
  pg3:
    mtu: 1500
    l2xc: pg0.40
  pg4: { mtu: 2000 }
  BondEthernet0:
    mtu: 9000
    sub-interfaces:
      100:
        mtu: 2000
      200:
        mtu: 2000
        addresses: [ 198.51.100.1/24 ]
loopbacks:
  loop0:
    mtu: 2000
    addresses: [ 203.0.113.1/24, 2001:db8:99::1/64 ]
bridgedomains:
  bd10:
    mtu: 2000
    bvi: loop0
    interfaces: [ BondEthernet0.100, pg4 ]
    settings: { learn: true, arp-termination: true, mac-age-minutes: 5 }
  bd20:
    mtu: 2000
"""

LESS = """
bondethernets:
  BondEthernet0:
    interfaces: [ pg2 ]
    mode: xor
    load-balance: l2
interfaces:
  pg0:
    sub-interfaces:
      20:
        encapsulation: { dot1q: 20, inner-dot1q: 8, exact-match: true }
  pg1: {}
  pg2: {}
  pg3: {}
  pg4: {}
  BondEthernet0: { mtu: 1500 }
bridgedomains:
  bd20:
    interfaces: [ pg3, pg4 ]
"""


@unittest.skipUnless(os.geteuid() == 0, "interfaces of the host need root")
class Vppcfg(TestCase):
    def vppcfg(self, *words, code=0):
        """Runs it where /run/vpp/api.sock is the router's: its `apply` takes no other socket."""
        script = 'mount -t tmpfs none /run/vpp && ln -s "$1" /run/vpp/api.sock && shift && exec "$@"'
        os.makedirs("/run/vpp", exist_ok=True)
        vppcfg = str(pathlib.Path(sys.executable).parent / "vppcfg")
        run = subprocess.run(["unshare", "-m", "sh", "-c", script, "sh", f"{self.router.dir}/api.sock", vppcfg, *words],
                             capture_output=True, text=True, timeout=60, cwd=self.router.dir)
        self.assertEqual(run.returncode, code, f"{words}: {run.stdout}{run.stderr}")
        return run.stdout + run.stderr

    def write(self, name, text):
        path = f"{self.router.dir}/{name}"
        pathlib.Path(path).write_text(text)
        return path

    def plan(self, config):
        """The commands it would run."""
        out = f"{self.router.dir}/plan"
        self.vppcfg("plan", "-c", config, "-o", out)
        lines = pathlib.Path(out).read_text().splitlines()
        return [line for line in lines if line and not line.startswith("comment")]

    def test_applied_twice_is_applied_once(self):
        first = self.write("first.yaml", CONFIG)
        self.vppcfg("check", "-c", first)
        self.assertGreater(len(self.plan(first)), 5)
        self.vppcfg("apply", "-c", first)
        self.assertEqual(self.plan(first), [])
        shown = self.router.cli("show interface address")
        for address in ("192.0.2.1/32", "10.10.0.1/24", "2001:db8:1::1/128", "2001:db8:10::1/64"):
            self.assertIn(address, shown)
        self.assertIn("loop0", self.router.cli("show lcp"))
        dumped = f"{self.router.dir}/dumped.yaml"
        self.vppcfg("dump", "-o", dumped)
        read = yaml.safe_load(pathlib.Path(dumped).read_text())
        self.assertEqual(sorted(read["loopbacks"]), ["loop0", "loop1"])
        self.assertEqual(read["loopbacks"]["loop1"]["mtu"], 1500)
        self.assertIn("tap4", read["taps"])
        # And another configuration takes away what is not in it.
        second = self.write("second.yaml", CHANGED)
        self.vppcfg("apply", "-c", second)
        self.assertEqual(self.plan(second), [])
        names = [i.interface_name for i in self.api.sw_interface_dump()]
        self.assertEqual(sorted(names), ["local0", "loop1"])
        self.assertIn("10.10.0.9/24", self.router.cli("show interface address"))
        self.assertNotIn("10.10.0.1/24", self.router.cli("show interface address"))

    def test_layer_2_is_applied_once_and_taken_away(self):
        for n in range(5):
            self.router.cli(f"create packet-generator interface pg{n}")
        first = self.write("layer2.yaml", LAYER2)
        self.assertGreater(len(self.plan(first)), 20)
        self.vppcfg("apply", "-c", first)
        self.assertEqual(self.plan(first), [])
        members = self.router.cli("show bridge-domain 10 detail")
        for name in ("BondEthernet0.100", "pg4", "loop0"):
            self.assertIn(name, members)
        self.assertIn("pg0.40", self.router.cli("show mode pg3"))
        second = self.write("less.yaml", LESS)
        self.vppcfg("apply", "-c", second)
        self.assertEqual(self.plan(second), [])
        names = sorted(i.interface_name for i in self.api.sw_interface_dump())
        self.assertEqual(names, ["BondEthernet0", "local0", "pg0", "pg0.20", "pg1", "pg2", "pg3", "pg4"])
        self.assertEqual([d.bd_id for d in self.api.bridge_domain_dump(bd_id=0xFFFFFFFF) if d.bd_id], [20])
