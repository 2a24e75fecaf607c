"""Limits that the child lays upon itself before it runs a profile.

They hold off accidents, not an attacker: a profile is a program, and only trusted ones should be run.
"""

from __future__ import annotations

import ctypes
import os
import resource
import sys
from typing import Any

from .errors import Forbidden

CLONE_NEWUSER = 0x1000_0000
CLONE_NEWNET = 0x4000_0000

REFUSED = {
    "socket.__new__": "a socket",
    "subprocess.Popen": "a process",
    "os.system": "a process",
    "os.exec": "a process",
    "os.fork": "a process",
    "os.forkpty": "a process",
    "os.posix_spawn": "a process",
}


def limit(memory: int, seconds: int) -> None:
    """At most `memory` bytes and `seconds` of processor time; no bytes into files."""
    for what, value in (
        (resource.RLIMIT_AS, memory),
        (resource.RLIMIT_CPU, seconds),
        (resource.RLIMIT_FSIZE, 0),
        (resource.RLIMIT_CORE, 0),
        (resource.RLIMIT_NOFILE, 128),
    ):
        hard = resource.getrlimit(what)[1]
        least = value if hard == resource.RLIM_INFINITY else min(value, hard)
        resource.setrlimit(what, (least, least))


def leave_network() -> str:
    """Moves to a network namespace without interfaces; empty, or why the network is still there."""
    libc = ctypes.CDLL(None, use_errno=True)
    for flags in (CLONE_NEWNET, CLONE_NEWUSER | CLONE_NEWNET):
        if libc.unshare(flags) == 0:
            return ""
    return os.strerror(ctypes.get_errno())


def refuse_sockets_and_processes() -> None:
    """From now on each attempt to open one raises `Forbidden`. It cannot be taken back."""

    def hook(event: str, _arguments: tuple[Any, ...]) -> None:
        if event in REFUSED:
            raise Forbidden(f"a profile may not open {REFUSED[event]} ({event})")

    sys.addaudithook(hook)
