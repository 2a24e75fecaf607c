"""Loads a profile and asks it for its streams, as TRex does."""

from __future__ import annotations

import argparse
import importlib.util
import os
import random
import sys
from dataclasses import dataclass
from typing import Any, NoReturn

from . import api, packet_builder, sandbox, scapy_layers, streams, tunables
from .errors import BadTunable, STLError


@dataclass(frozen=True)
class Request:
    """What is asked for."""

    path: str
    tunables: str
    direction: int
    port_id: int
    seed: int


def answer(request: Request) -> dict[str, Any]:
    """The streams as JSON, and which layers they were built with. Raises whatever the profile raises."""
    with open(request.path, encoding="utf-8") as file:
        source = file.read()
    layers = install_names(source, request.path)
    sandbox.refuse_sockets_and_processes()
    random.seed(request.seed)
    packet_builder.profile_folder = os.path.dirname(request.path)
    made, swallowed = streams_of(request)
    return {
        "streams": [{**stream.to_json(), "shoal": stream.packet.shape()} for stream in made],
        "layers": layers,
        "swallowed": swallowed,
    }


def install_names(source: str, path: str) -> str:
    """Offers the API's names, with Scapy's layers where the profile needs some that the lab does not have."""
    names = api.own_names()
    missing = scapy_layers.names_missing(source, path, set(names))
    found = scapy_layers.scapy_names() if missing else None
    if found is None:
        api.install(names)
        return "own"
    version, scapy = found
    api.install({**scapy, **api.LEAKED, **api.ADDRESSES, **api.STL})
    return f"scapy {version}"


def streams_of(request: Request) -> tuple[list[streams.STLStream], list[str]]:
    """Calls `register().get_streams(...)`. Behind the streams: tunables that only its `**kwargs` took."""
    argparse.ArgumentParser.error = _refuse_tunable  # type: ignore[method-assign, assignment]
    sys.path.insert(0, os.path.dirname(request.path))
    spec = importlib.util.spec_from_file_location("stl_profile", request.path)
    if spec is None or spec.loader is None:
        raise STLError(f"{request.path} is no Python file; its name should end in .py")
    module = importlib.util.module_from_spec(spec)
    sys.modules["stl_profile"] = module
    spec.loader.exec_module(module)
    register = getattr(module, "register", None)
    if not callable(register):
        raise STLError("the profile has no function register(); it should return an object with get_streams")
    get_streams = getattr(register(), "get_streams", None)
    if not callable(get_streams):
        raise STLError("what register() returns has no get_streams(direction, port_id, ...)")
    given, swallowed = tunables.arguments(get_streams, request.tunables, request.direction, request.port_id)
    made = get_streams(**given)
    if isinstance(made, streams.STLProfile):
        return made.get_streams(), swallowed
    if made is None:
        raise STLError("get_streams returned None; it should return a list of STLStream")
    return streams.STLProfile(made).get_streams(), swallowed


def _refuse_tunable(parser: argparse.ArgumentParser, message: str) -> NoReturn:
    known = [option for option in parser._option_string_actions if option.startswith("--")]
    name = next((word for word in message.split() if word.startswith("-")), message)
    raise BadTunable(name, known, f"the profile refuses its tunables: {message}")
