"""Scapy's layers in place of the lab's own, for profiles that use others. Scapy is imported in this process only."""

from __future__ import annotations

import ast
import builtins
import importlib
import logging
from typing import Any


def names_missing(source: str, path: str, known: set[str]) -> set[str]:
    """Modules of Scapy that the profile imports, and names that look like layers and that nothing in it defines."""
    tree = ast.parse(source, path)
    used: set[str] = set()
    imported: set[str] = set()
    defined = set(dir(builtins)) | known
    for node in ast.walk(tree):
        if isinstance(node, ast.Name):
            (used if isinstance(node.ctx, ast.Load) else defined).add(node.id)
        elif isinstance(node, (ast.FunctionDef, ast.ClassDef, ast.AsyncFunctionDef)):
            defined.add(node.name)
        elif isinstance(node, ast.arg):
            defined.add(node.arg)
        elif isinstance(node, ast.ExceptHandler) and node.name:
            defined.add(node.name)
        elif isinstance(node, ast.Import):
            for alias in node.names:
                defined.add((alias.asname or alias.name).split(".")[0])
                imported |= {alias.name} if alias.name.split(".")[0] == "scapy" else set()
        elif isinstance(node, ast.ImportFrom):
            module = node.module or ""
            ours = module.split(".")[0] in ("trex_stl_lib", "trex")
            for alias in node.names:
                if ours and alias.name != "*":
                    used.add(alias.name)
                else:
                    defined.add(alias.asname or alias.name)
            imported |= {module} if module.split(".")[0] == "scapy" else set()
    layers = {name for name in used - defined if name[:1].isupper() and not name.startswith(("STL", "CTRex", "TRex"))}
    return layers | imported


def scapy_names() -> tuple[str, dict[str, Any]] | None:
    """Scapy's version and names, if it is installed."""
    logging.getLogger("scapy").setLevel(logging.ERROR)
    try:
        scapy = importlib.import_module("scapy")
        everything = importlib.import_module("scapy.all")
    except ImportError:
        return None
    keep_from_looking_up(everything)
    names = {name: value for name, value in vars(everything).items() if not name.startswith("_")}
    return str(getattr(scapy, "__version__", "unknown")), names


def keep_from_looking_up(scapy: Any) -> None:
    """Gives addresses fixed defaults. Scapy would look them up in the routing table, and by ARP."""
    defaults = {
        scapy.Ether: {"dst": "00:00:00:01:00:00", "src": "00:00:00:02:00:00"},
        scapy.IP: {"src": "127.0.0.1", "dst": "127.0.0.1"},
        scapy.IPv6: {"src": "::1", "dst": "::1"},
    }
    for layer, values in defaults.items():
        for field in layer.fields_desc:
            if field.name in values:
                # A field whose value is shown bold is inside another object.
                getattr(field, "fld", field).default = values[field.name]
        for cache in ("class_default_fields", "class_default_fields_ref"):
            getattr(scapy.Packet, cache, {}).pop(layer, None)
