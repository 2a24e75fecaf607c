"""What can be wrong with a profile, as exceptions."""

from __future__ import annotations

from collections.abc import Iterable


class STLError(Exception):
    """A value that the STL API refuses. Profiles raise it themselves too."""


class CTRexPacketBuildException(STLError):
    """A packet or field program that cannot be built."""

    def __init__(self, code: int, message: str) -> None:
        super().__init__(message)
        self.code = code
        self.message = message


class Unsupported(Exception):
    """A name or argument of the STL API, or a packet layer, that the lab does not offer."""

    def __init__(self, name: str, known: Iterable[str], why: str = "") -> None:
        super().__init__(why or f"{name} is not supported")
        self.name = name
        self.known = list(known)
        self.why = why


class NoAttribute(Unsupported, AttributeError):  # type: ignore[misc]
    """An attribute that is not there; `hasattr` can ask for it."""


class BadTunable(Exception):
    """A tunable that the profile does not take, or that cannot be read."""

    def __init__(self, name: str, known: Iterable[str], why: str) -> None:
        super().__init__(why)
        self.name = name
        self.known = list(known)


class Forbidden(Exception):
    """Something a description of traffic has no need of: sockets, processes."""


TRexError = STLError


def check_type(name: str, value: object, *kinds: type) -> None:
    """Refuses a value of another type. A bool is no number here, although Python says so."""
    if isinstance(value, bool) and bool not in kinds:
        raise STLError(f"{name} is {value!r}; it should be {_names(kinds)}")
    if not isinstance(value, kinds):
        raise STLError(f"{name} is {value!r} ({type(value).__name__}); it should be {_names(kinds)}")


def _names(kinds: tuple[type, ...]) -> str:
    return " or ".join("None" if kind is type(None) else kind.__name__ for kind in kinds)
