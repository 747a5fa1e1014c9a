"""Scenarios of both halves, found by the folder that their module is in."""

from __future__ import annotations

import importlib
import pkgutil
import traceback

from real.scenario import Scenario

HALVES = ("tuned", "sealed")


def scenarios(half: str) -> tuple[dict[str, type[Scenario]], dict[str, str]]:
    """Scenarios of one half by name, and modules that cannot be imported, with the reason.

    Modules of the other half are not imported.
    """
    found: dict[str, type[Scenario]] = {}
    broken: dict[str, str] = {}
    package = importlib.import_module(f"real.{half}")
    for module in sorted(pkgutil.iter_modules(package.__path__), key=lambda one: one.name):
        full = f"real.{half}.{module.name}"
        try:
            imported = importlib.import_module(full)
        except Exception:
            broken[full] = traceback.format_exc(limit=1).strip().rpartition("\n")[2]
            continue
        for kind in vars(imported).values():
            if not isinstance(kind, type) or not issubclass(kind, Scenario):
                continue
            if kind.name and kind.__module__ == full:
                if kind.name in found:
                    raise ValueError(f"two scenarios are named {kind.name}")
                found[kind.name] = kind
    return found, broken
