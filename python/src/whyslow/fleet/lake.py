"""Selects recordings of a lake, and locates their objects.

A recording is in the lake if its commit object is. The names of commits contain day, cluster, host
and recording, which suffices for the selection. Only commits of compactions are read, since they
list the recordings whose files they replace.
"""

from __future__ import annotations

import json
import re
from collections import defaultdict
from collections.abc import Container, Iterable, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta, timezone
from fnmatch import fnmatchcase
from urllib.parse import unquote

from ..errors import LakeError, QueryError
from .contract import COMMITS, LAYOUT, SCHEMAS
from .store import Store

_NS = 1_000_000_000
_DAY = re.compile(r"dt=(\d{4}-\d\d-\d\d)")
_COMMIT = re.compile(
    r"dt=(?P<day>\d{4}-\d\d-\d\d)/cluster=(?P<cluster>[^/]*)/"
    r"(?:(?P<host>[A-Za-z0-9][A-Za-z0-9._-]*)\.(?P<recording>[0-9A-HJKMNP-TV-Z]{26})"
    r"|(?P<compaction>@[0-9A-HJKMNP-TV-Z]{26}))\.json"
)

#: A recording's host and id.
Key = tuple[str, str]


@dataclass(frozen=True)
class Entry:
    """A selected recording.

    Attributes:
        folder: `dt=…/cluster=…` below each table.
        place: name of its files there, without `.parquet`: its own, or that of a compaction.
        others: further folders and places, if it was pushed or compacted more than once.
    """

    host: str
    recording: str
    cluster: str
    day: str
    folder: str
    place: str
    others: tuple[tuple[str, str], ...] = ()

    @property
    def key(self) -> Key:
        return self.host, self.recording


@dataclass(frozen=True)
class Part:
    """A file to read; `only` limits it to some recordings."""

    file: str
    only: frozenset[str] | None = None


@dataclass
class Selection:
    """The selected recordings.

    Attributes:
        entries: the recordings, in order of host and id.
        committed: number of recordings of all hosts in the examined days.
        days: the examined days.
        strange: number of commit objects with invalid names.
        doubled: number of recordings in several commits; each counts once.
    """

    entries: list[Entry]
    committed: int = 0
    days: list[str] = field(default_factory=list)
    strange: int = 0
    doubled: int = 0
    #: All recordings of each compaction, to detect whether all of them are selected.
    compacted: dict[str, frozenset[str]] = field(default_factory=dict)
    #: Tables of each compaction.
    compacted_tables: dict[str, frozenset[str]] = field(default_factory=dict)

    def keep(self, wanted: Iterable[str]) -> Selection:
        """The selection limited to some recordings."""
        ids = frozenset(wanted)
        return Selection(
            [entry for entry in self.entries if entry.recording in ids],
            self.committed,
            self.days,
            self.strange,
            self.doubled,
            self.compacted,
            self.compacted_tables,
        )

    def parts(self, table: str, there: Container[str] | None = None) -> list[Part]:
        """Files of a table that contain the selected recordings.

        Args:
            there: existing files below the table; None if every recording has the table.
        """
        places: dict[str, list[Entry]] = defaultdict(list)
        for entry in self.entries:
            for folder, name in ((entry.folder, entry.place), *entry.others):
                place = f"{folder}/{name}"
                if name.startswith("@") and table not in self.compacted_tables[place]:
                    place = f"{folder}/{entry.host}.{entry.recording}"
                if there is None or f"{place}.parquet" in there:
                    places[place].append(entry)
                    break
        parts = []
        for place, entries in sorted(places.items()):
            file = f"{LAYOUT}/{table}/{place}.parquet"
            ids = frozenset(entry.recording for entry in entries)
            whole = ids >= self.compacted.get(place, frozenset())
            parts.append(Part(file, None if whole else ids))
        return parts


def select(
    store: Store,
    window: tuple[int | None, int | None] = (None, None),
    hosts: Sequence[str] = (),
    cluster: str | None = None,
) -> Selection:
    """Recordings that may be in a window, by host and cluster (globs; default all).

    Their times are in the table `recording`, not in the names: this selects by day only.

    Raises:
        LakeError: the lake does not exist, or a commit in it is damaged.
    """
    days = _days(store, window)
    own: dict[Key, list[tuple[str, str]]] = defaultdict(list)
    compactions: dict[str, str] = {}
    strange = 0
    for name in _commits(store, days):
        found = _COMMIT.fullmatch(name)
        if found is None:
            strange += 1
            continue
        folder, place = name.rsplit("/", 1)
        place = place.removesuffix(".json")
        if cluster is not None and not fnmatchcase(unquote(found["cluster"]), cluster):
            continue
        if found["compaction"]:
            compactions[place] = folder
            continue
        own[found["host"], found["recording"]].append((folder, place))
    selection = Selection([], days=days, strange=strange)
    selection.doubled = sum(len(found) - 1 for found in own.values())
    places = _compacted(store, compactions, selection)
    for key, found_in in own.items():
        places[key] += found_in
    entries = {key: _entry(*key, *found_in) for key, found_in in places.items()}
    selection.committed = len(entries)
    chosen = [entry for entry in entries.values() if _matches(entry.host, hosts)]
    selection.entries = sorted(chosen, key=lambda entry: entry.key)
    return selection


def _entry(host: str, recording: str, first: tuple[str, str], *others: tuple[str, str]) -> Entry:
    folder, place = first
    day, cluster = (part.split("=", 1)[1] for part in folder.split("/"))
    return Entry(host, recording, unquote(cluster), day, folder, place, others)


def _matches(host: str, globs: Sequence[str]) -> bool:
    return not globs or any(fnmatchcase(host, glob) for glob in globs)


def _days(store: Store, window: tuple[int | None, int | None]) -> list[str]:
    """Days whose commits may contain recordings of the window, including the day before it."""
    found = []
    for name, _ in store.list(f"{LAYOUT}/{COMMITS}", recursive=False):
        day = _DAY.fullmatch(name)
        if day:
            found.append(day[1])
    if not found:
        raise nothing_in(store)
    begin_ns, end_ns = window
    if begin_ns is not None:
        first = _day(begin_ns, -1)
        found = [day for day in found if day >= first]
    if end_ns is not None:
        last = _day(end_ns - 1, 0)
        found = [day for day in found if day <= last]
    return found


def nothing_in(store: Store) -> LakeError:
    """The error for a lake without recordings, which names what is there instead."""
    push = f"push recordings: whyslow fleet push RECORDING… {store.url}"
    lacking = store.lacking()
    if lacking is not None:
        return LakeError(
            f"the lake `{store.url}` does not exist",
            causes=[f"there is no {lacking}"],
            hint=f"check its name, or {push}",
        )
    is_file = store.is_file()
    found = [] if is_file else store.list("", recursive=False)
    if is_file or any(name == "manifest.json" for name, _ in found):
        return LakeError(
            f"`{store.url}` is a {'file' if is_file else 'recording'}, not a lake",
            hint=f"query it without --lake: whyslow fleet hosts {store.url}",
        )
    layouts = [name for name, is_file in found if not is_file]
    if LAYOUT not in layouts and any(re.fullmatch(r"v\d+", name) for name in layouts):
        return LakeError(
            f"the lake `{store.url}` has another layout ({', '.join(layouts)})",
            hint="use the same version of the package and the program",
        )
    return LakeError(f"no recordings in the lake `{store.url}`", hint=push)


def _day(ns: int, more: int) -> str:
    try:
        day = datetime.fromtimestamp(ns // _NS, timezone.utc) + timedelta(days=more)
    except (OverflowError, ValueError, OSError):
        raise QueryError(f"`{ns}` ns since the epoch is out of range") from None
    return f"{day:%Y-%m-%d}"


def _commits(store: Store, days: Iterable[str]) -> Iterable[str]:
    for day in days:
        for name, is_file in store.list(f"{LAYOUT}/{COMMITS}/dt={day}", recursive=True):
            if is_file:
                yield f"dt={day}/{name}"


def _compacted(
    store: Store, compactions: dict[str, str], selection: Selection
) -> dict[Key, list[tuple[str, str]]]:
    """Places of compacted recordings, the latest compaction first."""
    read = {}
    for place, folder in compactions.items():
        read[place] = _compaction(store, f"{LAYOUT}/{COMMITS}/{folder}/{place}.json")
    replaced = {name for about in read.values() for name in about[1]}
    places: dict[Key, list[tuple[str, str]]] = defaultdict(list)
    for place in sorted(read, reverse=True):
        if place in replaced:
            continue
        keys, _, tables = read[place]
        whole = f"{compactions[place]}/{place}"
        selection.compacted[whole] = frozenset(recording for _, recording in keys)
        selection.compacted_tables[whole] = tables
        for key in keys:
            places[key].append((compactions[place], place))
    return places


def _compaction(store: Store, name: str) -> tuple[list[Key], list[str], frozenset[str]]:
    try:
        about = json.loads(store.read(name).to_pybytes())
        keys = [(str(one["host"]), str(one["recording"])) for one in about["recordings"]]
        tables = frozenset(about["tables"])
        if not tables >= set(SCHEMAS):
            raise ValueError("tables are missing")
        return keys, [str(other) for other in about.get("replaces", [])], tables
    except FileNotFoundError:
        raise LakeError(
            f"the commit `{name}` of the lake `{store.url}` disappeared",
            hint="retry: the lake was compacted, or days of it expired",
        ) from None
    except (KeyError, TypeError, ValueError) as error:
        raise LakeError(
            f"the commit `{name}` of the lake `{store.url}` is damaged",
            causes=[repr(error)],
            hint="compact again, then remove it",
        ) from error
