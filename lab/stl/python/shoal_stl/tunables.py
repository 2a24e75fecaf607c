"""Tunables: `size=64,vm=var2` and `--size 64 --vm var2`, whichever way the profile takes them."""

from __future__ import annotations

import inspect
import re
import shlex
from collections.abc import Callable
from typing import Any

from .errors import BadTunable

TAKEN_BY_TREX = ("direction", "port_id", "tunables")


def value_of(text: str) -> int | float | str:
    """A number if it reads as one, else the text."""
    if re.fullmatch(r"[+-]?\d+", text):
        return int(text)
    if re.fullmatch(r"0[xX][0-9a-fA-F]+", text):
        return int(text, 16)
    try:
        return float(text) if re.search(r"\d", text) and not re.search(r"[a-df-zA-DF-Z_:]", text) else text
    except ValueError:
        return text


def read(text: str) -> tuple[list[str], dict[str, str]]:
    """The tunables as a list for argparse and as pairs."""
    try:
        words = shlex.split(text)
    except ValueError as reason:
        raise BadTunable(text, [], f"tunables {text!r} cannot be read: {reason}") from reason
    if any(word.startswith("-") for word in words):
        return words, _pairs_of_options(words)
    pairs: dict[str, str] = {}
    for item in (item for word in words for item in word.split(",") if item):
        key, equals, value = item.partition("=")
        if not equals or not key.isidentifier():
            raise BadTunable(item, ["size=64"], f"tunable {item!r} is not of the form name=value")
        pairs[key] = value
    return [piece for key, value in pairs.items() for piece in (f"--{key}", value)], pairs


def _pairs_of_options(words: list[str]) -> dict[str, str]:
    pairs: dict[str, str] = {}
    name = ""
    for word in words:
        if word.startswith("--"):
            name, equals, value = word[2:].partition("=")
            name = name.replace("-", "_")
            pairs[name] = value if equals else "True"
        elif name:
            pairs[name], name = word, ""
    return pairs


def arguments(
    get_streams: Callable[..., Any], text: str, direction: int, port_id: int
) -> tuple[dict[str, Any], list[str]]:
    """What `get_streams` is called with: of direction, port and tunables, what its signature takes.

    Behind it, the tunables that only a `**kwargs` takes, where the profile may overlook them.
    Raises `BadTunable` for a tunable that it has no place for.
    """
    words, pairs = read(text)
    parameters = inspect.signature(get_streams).parameters.values()
    takes_any = any(each.kind is inspect.Parameter.VAR_KEYWORD for each in parameters)
    named = {
        each.name
        for each in parameters
        if each.kind
        not in (inspect.Parameter.VAR_KEYWORD, inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.POSITIONAL_ONLY)
    }
    given: dict[str, Any] = {"direction": direction, "port_id": port_id}
    by_list = "tunables" in named
    by_pairs = {key: value for key, value in pairs.items() if key in named or (takes_any and not by_list)}
    if by_list and not any(word.startswith("-") for word in shlex.split(text)):
        words = [piece for key, value in pairs.items() if key not in by_pairs for piece in (f"--{key}", value)]
    given["tunables"] = words
    for key, value in by_pairs.items():
        if key in TAKEN_BY_TREX:
            raise BadTunable(key, [], f"{key} is set by the lab for each side; it is no tunable")
        given[key] = value_of(value)
    if not by_list and not takes_any:
        known = sorted(named - set(TAKEN_BY_TREX))
        for key in pairs:
            if key not in named:
                raise BadTunable(key, known, f"the profile has no tunable {key}")
    swallowed = [key for key in by_pairs if key not in named]
    return {key: value for key, value in given.items() if key in named or takes_any}, swallowed
