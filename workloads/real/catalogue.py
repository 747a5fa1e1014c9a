"""Scenarios of both halves: the folder of a module decides, unless its scenario was looked at."""

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
        "firewall_state",
        "git_packed_refs",
        "go_channel",
        "go_processors",
        "java_safepoint",
        "mariadb_metadata_lock",
        "mmap_populate",
        "nginx_scanner",
        "niced_lock_holder",
        "node_child",
        "node_deployment",
        "node_pool",
        "null_apache_files",
        "null_batch_script",
        "null_etcd_puts",
        "null_haproxy_pages",
        "null_log_filter",
        "null_rabbitmq_consumers",
        "pg_checkpoint",
        "pg_stalled_export",
        "pg_standby",
        "pg_table_lock",
        "php_session",
        "python_pool",
        "redis_and_disk",
        "redis_client_pause",
        "redis_fork",
        "ruby_lock",
        "syn_dropped",
    }
)


def scenarios(half: str) -> tuple[dict[str, type[Scenario]], dict[str, str]]:
    """Scenarios of one half by name, and modules that cannot be imported, with the reason."""
    found, broken = of_package("sealed")
    unknown = LOOKED_AT - found.keys()
    if unknown and not broken:
        # Under another name, it would stay sealed.
        raise ValueError(f"not in the folder of sealed scenarios: {', '.join(sorted(unknown))}")
    if half == "sealed":
        return {name: kind for name, kind in found.items() if name not in LOOKED_AT}, broken
    tuned, more_broken = of_package(half)
    looked_at = {name: kind for name, kind in found.items() if name in LOOKED_AT}
    return tuned | looked_at, broken | more_broken


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
