"""Starts a router for a test, as automation starts VPP: by words, in a folder of its own."""

import os
import subprocess
import tempfile
import time

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
PATIENCE = 30.0


def program(variable, name):
    """The program that the environment names, or the newest that was built."""
    named = os.environ.get(variable)
    if named:
        return named
    built = [os.path.join(ROOT, "target", kind, name) for kind in ("release", "debug")]
    built = [path for path in built if os.path.exists(path)]
    if not built:
        raise RuntimeError(f"no {name}: build it, or set {variable}")
    return max(built, key=os.path.getmtime)


class Router:
    """A running router; a context that ends it."""

    def __init__(self, *extra):
        self.folder = tempfile.TemporaryDirectory(prefix="shoal-papi-")
        self.extra = extra
        self.process = None

    def path(self, name):
        return os.path.join(self.folder.name, name)

    @property
    def stats(self):
        return self.path("stats.sock")

    def start(self):
        words = ["unix", "{", "nodaemon", "nosyslog", "", "runtime-dir", self.folder.name,
                 "cli-listen ", self.path("cli.sock"), " ", "}",
                 "statseg", "{", "socket-name", self.stats, "per-node-counters onupdate-interval 0.05", "}",
                 "socksvr", "{", "socket-name", self.path("api.sock"), "}"]
        environment = {k: v for k, v in os.environ.items() if k != "NOTIFY_SOCKET"}
        self.log = open(self.path("log"), "wb")
        self.process = subprocess.Popen([program("SHOAL", "shoal"), *words, *self.extra], cwd=self.folder.name,
                                        env=environment, stdin=subprocess.DEVNULL, stdout=self.log,
                                        stderr=subprocess.STDOUT)
        self.wait(lambda: os.path.exists(self.stats) and os.path.exists(self.path("cli.sock")))
        return self

    def wait(self, done, what="the router"):
        """Waits for a condition, with a deadline."""
        until = time.monotonic() + PATIENCE
        while not done():
            if self.process.poll() is not None:
                raise RuntimeError(f"the router ended with {self.process.returncode}: {self.said()}")
            if time.monotonic() > until:
                raise RuntimeError(f"{what} is not ready: {self.said()}")
            time.sleep(0.01)

    def said(self):
        with open(self.path("log"), encoding="utf-8", errors="replace") as log:
            return log.read()[-2000:]

    def cli(self, *lines):
        """Runs commands; an error of one is an exception."""
        command = [program("SHOALCTL", "shoalctl"), "-s", self.path("cli.sock")]
        done = subprocess.run(command, input="\n".join(lines) + "\n", capture_output=True, text=True,
                              timeout=PATIENCE)
        if done.returncode != 0:
            raise RuntimeError(done.stderr)
        return done.stdout

    def stop(self):
        """Ends it; the exit code."""
        if self.process is None:
            return None
        if self.process.poll() is None:
            self.process.terminate()
            try:
                self.process.wait(5)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()
        self.log.close()
        return self.process.returncode

    def __enter__(self):
        return self.start()

    def __exit__(self, *_):
        self.stop()
        self.folder.cleanup()
