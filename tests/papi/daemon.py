"""The life of a router's process: started by words, as automation starts VPP, in a folder of its own."""

import os
import pathlib
import subprocess
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
SHOAL = os.environ.get("SHOAL", str(ROOT / "target/release/shoal"))
SHOALCTL = os.environ.get("SHOALCTL", str(ROOT / "target/release/shoalctl"))
PATIENCE = 30.0


def wait_for(what, condition, seconds=10):
    """Waits until something holds."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        result = condition()
        if result:
            return result
        time.sleep(0.005)
    raise AssertionError(f"not within {seconds} seconds: {what}")


class Daemon:
    """A router's process; a context that ends it. A file `awaited` in its folder says that it is there."""

    awaited = "api.sock"

    def __init__(self):
        self.folder = tempfile.TemporaryDirectory(prefix="shoal-papi-")
        self.dir = self.folder.name
        self.process = None

    def path(self, name):
        return f"{self.dir}/{name}"

    def words(self):
        """The start-up words."""
        raise NotImplementedError

    def start(self):
        environment = {k: v for k, v in os.environ.items() if k != "NOTIFY_SOCKET"}
        self.log = open(self.path("log"), "wb")
        begun = time.monotonic()
        self.process = subprocess.Popen([SHOAL, *self.words()], cwd=self.dir, env=environment,
                                        stdin=subprocess.DEVNULL, stdout=self.log, stderr=subprocess.STDOUT)
        try:
            wait_for(f"the router's {self.awaited}", self.is_up, PATIENCE)
        except BaseException:
            self.stop()
            raise
        self.until_up = time.monotonic() - begun
        return self

    def is_up(self):
        if self.process.poll() is not None:
            raise AssertionError(f"the router ended with {self.process.returncode}: {self.said()}")
        return os.path.exists(self.path(self.awaited))

    def said(self):
        """What it logged, the end of it."""
        return pathlib.Path(self.path("log")).read_text(errors="replace")[-4000:]

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
