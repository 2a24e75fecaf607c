"""Connecting, leaving, and what every client asks first."""

import json
import os
import shutil
import socket
import struct
import subprocess
import tempfile
import time
import unittest

from router import SHOAL, SHOALCTL, TestCase, wait_for


class Connecting(TestCase):
    def test_the_socket_is_there_soon(self):
        # Starting takes some tens of milliseconds; a slow machine is no failure, half a minute is.
        print(f"-- the API's socket was there after {self.router.until_up * 1000:.0f} ms")
        self.assertLess(self.router.until_up, 30)

    def test_control_ping_tells_the_process(self):
        reply = self.api.control_ping()
        self.assertEqual((reply.retval, reply.vpe_pid), (0, self.router.process.pid))

    def test_the_version_is_one_that_clients_know(self):
        reply = self.api.show_version()
        self.assertEqual(reply.program, "vpe")
        self.assertTrue(reply.version.startswith("26.06"), reply.version)

    def test_command_lines(self):
        self.assertIn("local0", self.router.cli("sh int"))
        reply = self.api.cli_inband(cmd="no such command")
        self.assertEqual(reply.retval, -1)
        self.assertIn("no such", reply.reply)

    def test_what_frameworks_type_after_each_test(self):
        for line in ("clear trace", "show trace max 100", "show interface", "show hardware", "show error", "show run",
                     "show log", "show bihash", "sh errors", "show thread", "show clock", "show buffers",
                     "show packet-generator"):
            with self.subTest(line):
                self.assertEqual(self.api.cli_inband(cmd=line + "\n").retval, 0)
        self.assertRegex(self.router.cli("show clock"), r"^Time now [0-9.]+,")

    def test_the_trace_of_messages_is_stored(self):
        name = f"shoal-papi-{os.getpid()}.log"
        self.router.cli(f"api trace save {name}")
        with open(f"/tmp/{name}", "rb") as file:
            count, size, _ = struct.unpack(">IIB", file.read(9))
            names = file.read(size)
            first = struct.unpack(">I", file.read(4))[0]
        os.unlink(f"/tmp/{name}")
        self.assertGreater(count, 0)
        self.assertIn(b"control_ping_51077d14", names)
        self.assertEqual(first, 70, "sockclnt_create came first")

    def test_many_clients_one_after_the_other_and_at_a_time(self):
        clients = [self.router.connect(f"client {n}") for n in range(20)]
        indices = {client.api.control_ping().client_index for client in clients}
        self.assertEqual(len(indices), 20)
        listed = self.router.cli("show api clients")
        self.assertIn("client 19", listed)
        for client in clients:
            client.disconnect()

    def test_a_client_that_brings_no_description_gets_it(self):
        reply = self.api.get_api_json()
        modules = {file["module"] for file in json.loads(reply.json)}
        self.assertLessEqual({"memclnt", "vlib", "interface", "ip"}, modules)
        client = self.router.connect("bootstrap", bootstrapapi=True)
        self.assertEqual(client.api.control_ping().retval, 0)
        self.assertEqual(client.api.show_version().program, "vpe")
        client.disconnect()

    def test_the_bytes_of_govpp(self):
        """Frames as GoVPP writes them: context 123, then pings with contexts made of channel and sequence number."""
        with socket.socket(socket.AF_UNIX) as client:
            client.settimeout(5)
            client.connect(f"{self.router.dir}/api.sock")
            body = struct.pack(">HI64s", 15, 123, b"govppsock")
            client.sendall(bytes(8) + struct.pack(">II", len(body), 0) + body)

            def receive():
                header = client.recv(16, socket.MSG_WAITALL)
                return client.recv(struct.unpack_from(">I", header, 8)[0], socket.MSG_WAITALL)

            answer = receive()
            number, zero, context, response, index, count = struct.unpack_from(">HIIiIH", answer)
            self.assertEqual((number, zero, context, response), (16, 0, 123, 0))
            self.assertTrue(index & 0x80000000)
            table = {}
            for n in range(count):
                number, name = struct.unpack_from(">H64s", answer, 20 + 66 * n)
                table[name.rstrip(b"\0").decode()] = number
            ping, reply = table["control_ping_51077d14"], table["control_ping_reply_f6b0b8ca"]
            for context in (1 << 17 | 1, 0x7FFF << 17 | 0xFFFF):
                body = struct.pack(">HII", ping, index, context)
                client.sendall(bytes(8) + struct.pack(">II", len(body), 0) + body)
                answer = receive()
                self.assertEqual(struct.unpack_from(">HIi", answer), (reply, context, 0))
            # It stops reading first, then says that it leaves.
            client.shutdown(socket.SHUT_RD)
            body = struct.pack(">HIII", table["sockclnt_delete_8ac76db6"], index, 7, index)
            client.sendall(bytes(8) + struct.pack(">II", len(body), 0) + body)
        self.assertEqual(self.api.control_ping().retval, 0)

    def test_our_own_client(self):
        def shoalctl(*words):
            run = subprocess.run([SHOALCTL, "api", "-s", f"{self.router.dir}/api.sock", *words],
                                 capture_output=True, text=True, timeout=20)
            return run.returncode, run.stdout, run.stderr

        code, out, _ = shoalctl("call", "show_version")
        self.assertEqual((code, json.loads(out)["fields"]["program"]), (0, "vpe"))
        code, out, _ = shoalctl("call", "sw_interface_dump")
        self.assertEqual(code, 0)
        self.assertEqual(json.loads(out.splitlines()[0])["fields"]["interface_name"], "local0")
        code, out, err = shoalctl("call", "sw_interface_set_flags", '{"sw_if_index": 99, "flags": "IF_STATUS_API_FLAG_ADMIN_UP"}')
        self.assertEqual(code, 1)
        self.assertIn("INVALID_SW_IF_INDEX (-2)", err)
        code, _, err = shoalctl("call", "sw_interface_set_flags", '{"flag": 1}')
        self.assertEqual(code, 1)
        self.assertIn("there are: sw_if_index, flags", err)
        code, out, _ = shoalctl("describe", "control_ping")
        self.assertTrue(out.startswith("control_ping_51077d14"), out)
        code, out, _ = shoalctl("list", "control_ping")
        self.assertIn("control_ping_reply", out)


class Starting(unittest.TestCase):
    def test_the_process_has_the_name_of_vpp_when_it_is_started_as_vpp(self):
        with tempfile.TemporaryDirectory() as folder:
            shutil.copy(SHOAL, f"{folder}/vpp")
            process = subprocess.Popen(
                [f"{folder}/vpp", "unix", "{", "nodaemon", "runtime-dir", folder, "}", "configuration { restore off }"],
                stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            try:
                wait_for("the socket", lambda: os.path.exists(f"{folder}/api.sock"))
                with open(f"/proc/{process.pid}/comm") as file:
                    self.assertEqual(file.read().strip(), "vpp_main")
            finally:
                begun = time.monotonic()
                process.terminate()
                self.assertEqual(process.wait(5), 0)
            self.assertFalse(os.path.exists(f"{folder}/api.sock"), "the socket goes with the router")
            self.assertLess(time.monotonic() - begun, 5)
