"""Packets made of layers, joined by `/`: what profiles use of Scapy, and no more.

A layer is a class with a list of fields. A field that is not given is found when the packet is built: lengths,
checksums and the number of the next protocol.
"""

from __future__ import annotations

import copy
from dataclasses import dataclass
from typing import Any, ClassVar

from . import addresses
from .errors import CTRexPacketBuildException, NoAttribute, Unsupported


@dataclass(frozen=True)
class Field:
    """A field: its name, its length in bits, its value where none is given (None: found at building)."""

    name: str
    bits: int
    default: Any = 0
    kind: str = "int"

    def number(self, value: Any) -> int:
        """The value as it stands in the packet, big-endian."""
        if self.kind == "mac":
            return int.from_bytes(addresses.mac_bytes(value), "big")
        if self.kind == "ip4":
            return int.from_bytes(addresses.ip4_bytes(value), "big")
        if self.kind == "ip6":
            return int.from_bytes(addresses.ip6_bytes(value), "big")
        if isinstance(value, bool) or not isinstance(value, int):
            raise CTRexPacketBuildException(-11, f"field {self.name} is {value!r}; it should be a number")
        if not 0 <= value < 1 << self.bits:
            raise CTRexPacketBuildException(
                -11, f"field {self.name} is {value}; its {self.bits} bits hold 0 to {(1 << self.bits) - 1}"
            )
        return value


class Layer:
    """One header and what follows it."""

    name: ClassVar[str] = ""
    fields_desc: ClassVar[list[Field]] = []
    aliases: ClassVar[dict[str, str]] = {}

    fields: dict[str, Any]
    payload: Layer | None

    def __init__(self, *wrong: object, **given: Any) -> None:
        object.__setattr__(self, "fields", {})
        object.__setattr__(self, "payload", None)
        if wrong:
            raise Unsupported(
                type(self).__name__, [], f"{type(self).__name__} of bytes is not read; give its fields by name"
            )
        for key, value in given.items():
            self._set(key, value)

    # Fields.

    @classmethod
    def field(cls, name: str) -> Field | None:
        """The field of that name, if the layer has it."""
        name = cls.aliases.get(name, name)
        return next((field for field in cls.fields_desc if field.name == name), None)

    def convert(self, field: Field, value: Any) -> Any:
        """A value as the user may write it, as the field's own. Layers with flags override it."""
        return value

    def _set(self, key: str, value: Any) -> None:
        field = self.field(key)
        if field is None:
            names = [each.name for each in self.fields_desc]
            raise Unsupported(f"{type(self).__name__}.{key}", names, f"{type(self).__name__} has no field {key}")
        value = self.convert(field, value)
        if value is not None:
            field.number(value)
        self.fields[field.name] = value

    def getfieldval(self, name: str) -> Any:
        """The field's value: given, or its default."""
        field = self.field(name)
        if field is None:
            raise AttributeError(name)
        return self.fields.get(field.name, field.default)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        layer: Layer | None = self
        while layer is not None:
            if layer.field(name) is not None:
                return layer.getfieldval(name)
            layer = layer.payload
        raise NoAttribute(
            f"{type(self).__name__}.{name}",
            [field.name for field in self.fields_desc],
            f"{type(self).__name__} has no {name}",
        )

    def __setattr__(self, name: str, value: Any) -> None:
        layer: Layer | None = self
        while layer is not None:
            if layer.field(name) is not None:
                layer._set(name, value)
                return
            layer = layer.payload
        self._set(name, value)

    # Layers.

    def copy(self) -> Layer:
        """Another packet with the same layers."""
        return copy.deepcopy(self)

    def __deepcopy__(self, memo: dict[int, Any]) -> Layer:
        made = type(self).__new__(type(self))
        object.__setattr__(made, "fields", dict(self.fields))
        object.__setattr__(made, "payload", copy.deepcopy(self.payload, memo))
        return made

    def layers(self) -> list[Layer]:
        """This layer and those behind it."""
        found: list[Layer] = []
        layer: Layer | None = self
        while layer is not None:
            found.append(layer)
            layer = layer.payload
        return found

    def __truediv__(self, behind: object) -> Layer:
        made = self.copy()
        object.__setattr__(made.layers()[-1], "payload", as_layer(behind))
        return made

    def __rtruediv__(self, before: object) -> Layer:
        return as_layer(before) / self

    def __mul__(self, times: object) -> Any:
        raise Unsupported(f"{type(self).__name__} *", ["/"], "packets cannot be multiplied; join layers with /")

    def getlayer(self, kind: Any, nb: int = 1) -> Layer | None:
        """The `nb`th layer of a class, or of a name."""
        for layer in self.layers():
            if layer.answers_to(kind):
                nb -= 1
                if nb == 0:
                    return layer
        return None

    def answers_to(self, kind: Any) -> bool:
        """Whether `kind` is this layer's class, the class's name or the layer's name."""
        if isinstance(kind, str):
            return kind in (type(self).__name__, self.name)
        return isinstance(kind, type) and isinstance(self, kind)

    def haslayer(self, kind: Any) -> bool:
        """Whether there is such a layer."""
        return self.getlayer(kind) is not None

    has_layer = haslayer
    __contains__ = haslayer

    def __getitem__(self, kind: Any) -> Layer:
        found = self.getlayer(kind)
        if found is None:
            raise IndexError(f"the packet {self.summary()} has no layer {getattr(kind, '__name__', kind)}")
        return found

    def remove_payload(self) -> None:
        """Ends the packet with this layer."""
        object.__setattr__(self, "payload", None)

    def summary(self) -> str:
        """The layers' names."""
        return " / ".join(type(layer).__name__ for layer in self.layers())

    def __repr__(self) -> str:
        return f"<{self.summary()}, {len(self)} bytes>"

    # Bytes.

    def found(self, field: Field, body: bytes, before: list[Layer]) -> int:
        """The value of a field that was not given. The header's checksum is computed afterwards, in `close`."""
        return 0

    def close(self, header: bytes, body: bytes, before: list[Layer]) -> bytes:
        """Puts in what depends on the whole header."""
        return header

    def header(self, body: bytes, before: list[Layer]) -> bytes:
        """The header's bytes in front of `body`."""
        number, bits = 0, 0
        for field in self.fields_desc:
            value = self.getfieldval(field.name)
            raw = self.found(field, body, before) if value is None else field.number(value)
            number, bits = number << field.bits | raw, bits + field.bits
        return self.close(number.to_bytes(bits // 8, "big"), body, before)

    def build(self, before: list[Layer] | None = None) -> bytes:
        """All bytes from this layer on; `before` are the layers in front of it."""
        before = before or []
        body = self.payload.build([*before, self]) if self.payload is not None else b""
        return self.header(body, before) + body

    def __bytes__(self) -> bytes:
        return self.build()

    def __len__(self) -> int:
        return len(self.build())

    def __bool__(self) -> bool:
        return True


class Raw(Layer):
    """Bytes without a structure."""

    name = "Raw"
    fields_desc: ClassVar[list[Field]] = [Field("load", 0, b"", "bytes")]

    def __init__(self, load: str | bytes = b"") -> None:
        super().__init__()
        self._set("load", load)

    def _set(self, key: str, value: Any) -> None:
        if key != "load":
            raise Unsupported(f"Raw.{key}", ["load"], f"Raw has no field {key}")
        self.fields["load"] = value.encode("latin-1") if isinstance(value, str) else bytes(value)

    def header(self, body: bytes, before: list[Layer]) -> bytes:
        return bytes(self.fields["load"])


def as_layer(value: object) -> Layer:
    """A layer; text and bytes become `Raw`."""
    if isinstance(value, Layer):
        return value.copy()
    if isinstance(value, (str, bytes, bytearray)):
        return Raw(value if isinstance(value, str) else bytes(value))
    raise CTRexPacketBuildException(-14, f"{value!r} cannot be part of a packet; layers, text and bytes can")
