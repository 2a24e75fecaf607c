"""Reads a request on standard input, loads the profile, and answers with one line of JSON on standard output."""

from __future__ import annotations

import contextlib
import json
import os
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

from shoal_stl import sandbox  # noqa: E402
from shoal_stl.faults import fault  # noqa: E402
from shoal_stl.profile import Request, answer  # noqa: E402


def main() -> int:
    """Answers one request; 0 also where the profile is at fault, for the answer says so."""
    asked = json.load(sys.stdin)
    # What the profile prints must not get among the answer: its standard output becomes standard error.
    out = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    request = Request(asked["path"], asked["tunables"], asked["direction"], asked["port_id"], asked["seed"])
    network = sandbox.leave_network()
    sandbox.limit(asked["memory"], asked["seconds"])
    try:
        made = answer(request)
        made["network"] = network
        text = json.dumps(made)
    except BaseException as reason:  # noqa: BLE001 - whatever a profile raises is an answer
        text = json.dumps({"error": fault(reason, request.path), "network": network})
    out.write(text.encode() + b"\n")
    out.flush()
    for said in (sys.stdout, sys.stderr):
        with contextlib.suppress(Exception):
            said.flush()
    # A thread that the profile has left behind must not keep the process.
    os._exit(0)


if __name__ == "__main__":
    sys.exit(main())
