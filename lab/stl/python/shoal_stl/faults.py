"""What went wrong, as JSON: kind, place in the profile, message, the wrong name and the nearest right ones."""

from __future__ import annotations

import difflib
import inspect
import os
import re
import traceback
from types import TracebackType
from typing import Any

from . import api, errors
from .layers import LAYERS

LONGEST = 2000
NO_SCAPY = "; if it is a layer of Scapy's, install Scapy for the Python that runs profiles"


def nearest(name: str, known: list[str]) -> list[str]:
    """Up to three of `known` that look like `name`, the best first; if none does, all of them where they are few."""
    lower = {each.lower(): each for each in known}
    wanted = name.lower().rpartition(".")[2].rpartition("(")[2].rstrip("=)")
    found = difflib.get_close_matches(wanted, list(lower), n=3, cutoff=0.5)
    found = found or difflib.get_close_matches(name.lower(), list(lower), n=3, cutoff=0.5)
    return [lower[each] for each in found] or (known if len(known) <= 12 else [])


def place(trace: TracebackType | None, profile: str) -> dict[str, Any]:
    """The last line of the profile, or of a file beside it, that was running."""
    folder = os.path.dirname(profile)
    frames = traceback.extract_tb(trace)
    here = [each for each in frames if each.filename == profile]
    beside = [each for each in frames if os.path.dirname(each.filename) == folder]
    for frame in (here or beside)[-1:]:
        return {"file": frame.filename, "line": frame.lineno or 0}
    return {"file": profile, "line": 0}


def fault(reason: BaseException, profile: str) -> dict[str, Any]:
    """The error as JSON."""
    made: dict[str, Any] = {"kind": "exception", "name": "", "nearest": [], **place(reason.__traceback__, profile)}
    made["message"] = f"{type(reason).__name__}: {reason}"[:LONGEST]
    if isinstance(reason, SyntaxError):
        made.update(kind="syntax", message=str(reason.msg), line=reason.lineno or 0, file=reason.filename or profile)
    elif isinstance(reason, errors.Forbidden):
        made.update(kind="forbidden", message=str(reason))
    elif isinstance(reason, errors.BadTunable):
        made.update(_named("tunable", reason.name, reason.known, str(reason)), line=0)
    elif isinstance(reason, errors.Unsupported):
        made.update(_named("unsupported", reason.name, reason.known, str(reason)))
    elif isinstance(reason, errors.STLError):
        made.update(kind="refused", message=str(reason)[:LONGEST])
    elif isinstance(reason, MemoryError):
        made.update(kind="memory", message="the profile took more memory than it may")
    elif isinstance(reason, SystemExit):
        made.update(kind="exit", message=f"the profile ended by itself, with {reason.code}")
    else:
        made.update(_of_names(reason))
    return made


def _named(kind: str, name: str, known: list[str], message: str) -> dict[str, Any]:
    return {"kind": kind, "name": name, "nearest": nearest(name, known), "message": message[:LONGEST]}


def _of_names(reason: BaseException) -> dict[str, Any]:
    """Python's own errors about names and arguments, where they are about the STL API."""
    text = str(reason)
    known = [*api.STL, *LAYERS]
    if isinstance(reason, NameError) and (found := re.search(r"name '(\w+)' is not defined", text)):
        name = found[1]
        if name.startswith(("STL", "CTRex", "TRex")):
            return _named("unsupported", name, known, f"{name} is not supported")
        if name[:1].isupper():
            return _named("unsupported", name, known, f"{name} is not known{NO_SCAPY}")
    if isinstance(reason, ImportError):
        if found := re.search(r"cannot import name '(\w+)' from '(trex\S*)'", text):
            return _named(
                "unsupported", found[1], known, f"{found[1]} is not among the names of {found[2]} that are supported"
            )
        module = reason.name or ""
        if module.split(".")[0] in ("trex", "trex_stl_lib"):
            return _named("unsupported", module, list(api.MODULES), f"module {module} is not supported")
        if module.split(".")[0] == "scapy":
            return _named(
                "unsupported", module, list(LAYERS), f"the profile imports {module}, and Scapy is not installed"
            )
    if isinstance(reason, TypeError) and (
        found := re.search(r"(\w+)(?:\.__init__)?\(\) got an unexpected keyword argument '(\w+)'", text)
    ):
        return _of_argument(reason, found[1], found[2])
    return {}


def _of_argument(reason: BaseException, called: str, argument: str) -> dict[str, Any]:
    """An argument that a call of the STL API does not take. Before Python 3.10 the message lacks the class's name."""
    frames = traceback.extract_tb(reason.__traceback__)
    line = frames[-1].line or "" if frames else ""
    owner = called if called in api.STL else next((name for name in api.STL if f"{name}(" in line), "")
    target = api.STL.get(owner)
    if target is None:
        return {}
    known = [name for name in inspect.signature(target).parameters if name not in ("args", "kwargs")]
    return _named("unsupported", f"{owner}({argument}=)", known, f"{owner} takes no {argument}")
