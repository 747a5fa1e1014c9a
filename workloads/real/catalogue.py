"""Scenarios of both halves: the folder of a module decides, except for those that were looked at."""

from __future__ import annotations

import importlib
import pkgutil
import traceback

from real.scenario import Scenario

HALVES = ("tuned", "sealed")

# Scenarios of sealed modules whose answers were looked at to change a rule: they count as tuned.
LOOKED_AT = frozenset(
    {
        "apache_piped_log",
        "ext4_unpack",
        "go_processors",
        "mariadb_metadata_lock",
        "mmap_populate",
        "node_pool",
        "null_haproxy_pages",
        "pg_checkpoint",
        "python_pool",
        "redis_fork",
        "syn_dropped",
    }
)


def scenarios(half: str) -> tuple[dict[str, type[Scenario]], dict[str, str]]:
    """Scenarios of one half by name, and modules that cannot be imported, with the reason."""
    found, broken = of_package(half)
    if half == "tuned":
        others, more_broken = of_package("sealed")
        found |= {name: kind for name, kind in others.items() if name in LOOKED_AT}
        broken |= more_broken
    else:
        found = {name: kind for name, kind in found.items() if name not in LOOKED_AT}
    return found, broken


def of_package(half: str) -> tuple[dict[str, type[Scenario]], dict[str, str]]:
    """Scenarios of the modules of one folder."""
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
