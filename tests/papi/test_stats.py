"""VPP's own stats client reads the segment: every name, sums, links, and interfaces that come and go."""

import os
import subprocess
import threading
import unittest

from vpp_papi.vpp_stats import VPPStats

from daemon import PATIENCE, SHOALCTL, Daemon, wait_for

COUNTERS = ["drops", "punt", "ip4", "ip6", "rx-no-buf", "rx-miss", "rx-error", "tx-error", "mpls",
            "rx", "rx-unicast", "rx-multicast", "rx-broadcast", "tx", "tx-unicast", "tx-multicast", "tx-broadcast"]
SYSTEM = ["/sys/heartbeat", "/sys/last_stats_clear", "/sys/boottime", "/sys/last_update", "/sys/vector_rate",
          "/sys/input_rate", "/sys/num_worker_threads", "/sys/vector_rate_per_worker", "/sys/loops_per_worker"]
SEND = """packet-generator new {
  name one
  limit 10
  node ethernet-input
  interface pg0
  size 60-60
  data { hex 0xffffffffffff020000000009080045000026000100004011000001020304050607080001000200120000 }
}"""


class Router(Daemon):
    """A router whose commands come by shoalctl."""

    awaited = "stats.sock"

    def __init__(self):
        super().__init__()
        self.stats = self.path("stats.sock")

    def words(self):
        # The words and their cuts are those of programs that start VPP.
        return ["unix", "{", "nodaemon", "nosyslog", "", "runtime-dir", self.dir,
                "cli-listen ", self.path("cli.sock"), " ", "}",
                "statseg", "{", "socket-name", self.stats, "per-node-counters onupdate-interval 0.05", "}",
                "socksvr", "{", "socket-name", self.path("api.sock"), "}",
                "configuration", "{", "restore", "off", "}"]

    def is_up(self):
        return super().is_up() and os.path.exists(self.path("cli.sock"))

    def cli(self, *lines):
        """Runs commands; an error of one is an exception."""
        done = subprocess.run([SHOALCTL, "-s", self.path("cli.sock")], input="\n".join(lines) + "\n",
                              capture_output=True, text=True, timeout=PATIENCE)
        if done.returncode != 0:
            raise RuntimeError(done.stderr)
        return done.stdout


class StatsTest(unittest.TestCase):
    """One router for all tests; each makes the interfaces it needs."""

    @classmethod
    def setUpClass(cls):
        cls.router = Router().start()

    @classmethod
    def tearDownClass(cls):
        code = cls.router.stop()
        assert code == 0, f"exit code {code}: {cls.router.said()}"
        assert not os.path.exists(cls.router.stats), "the socket's file stayed"
        cls.router.folder.cleanup()

    def setUp(self):
        self.stats = VPPStats(self.router.stats)
        self.stats.connect()
        self.addCleanup(self.stats.disconnect)

    def names(self):
        """The directory as it is now: papi looks for a new one when a value is asked for."""
        self.assertIsNotNone(self.stats["/sys/heartbeat"])
        return list(self.stats.directory)

    def until(self, done):
        wait_for("what the test waits for", lambda: self.router.is_up() and done(), PATIENCE)

    def test_every_name_can_be_read(self):
        names = list(self.stats.directory)
        self.assertGreater(len(names), 100)
        for name in names:
            with self.subTest(name):
                self.assertIsNotNone(self.stats[name])

    def test_system_names_are_there(self):
        directory = self.stats.directory
        self.assertEqual(list(directory)[:3], ["/sys/heartbeat", "/sys/last_stats_clear", "/sys/boottime"])
        for name in SYSTEM:
            self.assertIn(name, directory)
        self.assertEqual(self.stats["/sys/num_worker_threads"], 0)
        self.assertGreater(self.stats["/buffer-pools/default-numa-0/available"], 0)
        for heap in ["main heap", "stat segment"]:
            self.assertGreater(sum(self.stats[f"/mem/{heap}/used"]), 0)

    def test_the_heart_beats(self):
        before = self.stats["/sys/heartbeat"]
        self.until(lambda: self.stats["/sys/heartbeat"] > before + 2)

    def test_an_interface_has_its_17_counters_by_table_and_by_link(self):
        self.router.cli("create packet-generator interface pg0")
        self.until(lambda: "/interfaces/pg0/rx" in self.names())
        at = list(self.stats["/if/names"]).index("pg0")
        for counter in COUNTERS:
            with self.subTest(counter):
                table, link = self.stats[f"/if/{counter}"], self.stats[f"/interfaces/pg0/{counter}"]
                if counter in ("drops", "punt", "ip4", "ip6", "rx-no-buf", "rx-miss", "rx-error", "tx-error", "mpls"):
                    self.assertEqual(table[:, at].sum(), sum(link))
                else:
                    self.assertEqual(table[:, at].sum_packets(), link.sum_packets())
                    self.assertEqual(table[:, at].sum_octets(), link.sum_octets())
        self.router.cli("delete packet-generator interface pg0")
        self.until(lambda: "/interfaces/pg0/rx" not in self.names())

    def test_errors_sum_up(self):
        errors = [name for name in self.stats.directory if name.startswith("/err/")]
        self.assertGreater(len(errors), 50)
        total = sum(self.stats[name].sum() for name in errors)
        self.assertEqual(total, sum(sum(thread) for thread in self.stats["/node/errors"]))

    def test_counters_of_nodes_have_names_and_links(self):
        names = list(self.stats["/sys/node/names"])
        at = names.index("ip4-lookup")
        for counter in ["clocks", "vectors", "calls", "suspends"]:
            link = self.stats[f"/nodes/ip4-lookup/{counter}"]
            self.assertEqual(sum(link), self.stats[f"/sys/node/{counter}"][:, at].sum())

    def test_packets_are_counted(self):
        self.router.cli("create packet-generator interface pg7", "set interface state pg7 up")
        self.router.cli(*SEND.replace("pg0", "pg7").splitlines(), "packet-generator enable-stream one")
        self.until(lambda: "/interfaces/pg7/rx" in self.names())
        self.until(lambda: self.stats["/interfaces/pg7/rx"].sum_packets() == 10)
        self.assertEqual(self.stats["/interfaces/pg7/rx"].sum_octets(), 600)
        self.assertEqual(self.stats["/interfaces/pg7/drops"].sum(), 10)
        self.router.cli("clear interfaces")
        self.until(lambda: self.stats["/interfaces/pg7/rx"].sum_packets() == 0)
        self.router.cli("packet-generator delete one", "delete packet-generator interface pg7")

    def test_interfaces_come_and_go_while_somebody_reads(self):
        stop, trouble, rounds = threading.Event(), [], [0]

        def read():
            stats = VPPStats(self.router.stats)
            stats.connect()
            try:
                while not stop.is_set():
                    names = list(stats["/if/names"])
                    for name in list(stats.directory):
                        try:
                            if name.startswith(("/interfaces/", "/err/")):
                                assert stats[name].sum if hasattr(stats[name], "sum") else True
                        except KeyError:
                            # The name went meanwhile: what papi says of it.
                            pass
                    assert names[0] == "local0", names
                    rounds[0] += 1
            except Exception as error:  # pylint: disable=broad-except
                trouble.append(repr(error))
            finally:
                stats.disconnect()

        reader = threading.Thread(target=read)
        reader.start()
        try:
            for turn in range(10):
                self.router.cli(*["create loopback interface"] * 20)
                self.router.cli(*[f"delete loopback interface intfc loop{i}" for i in range(20)])
            self.until(lambda: rounds[0] > 1 or trouble)
        finally:
            stop.set()
            reader.join(30)
        self.assertEqual(trouble, [])
        self.assertFalse(reader.is_alive())
        self.until(lambda: not [n for n in self.names() if n.startswith("/interfaces/loop")])


class RestartTest(unittest.TestCase):
    """Clients see that the router went, and find the next one at the same place."""

    def test_a_router_that_comes_again_is_read_again(self):
        with Router() as router:
            stats = VPPStats(router.stats)
            stats.connect()
            self.assertGreaterEqual(stats["/sys/heartbeat"], 0)
            stats.disconnect()
            self.assertEqual(router.stop(), 0)
            self.assertFalse(os.path.exists(router.stats))
            router.start()
            stats = VPPStats(router.stats)
            stats.connect()
            self.assertEqual(list(stats["/if/names"])[0], "local0")
            stats.disconnect()


if __name__ == "__main__":
    unittest.main()
