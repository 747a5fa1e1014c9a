"""Translates queries and keyword arguments to arguments of the program.

Kinds, verbs and flags are those of the installed program: new ones work without a change here, and
the program reports unknown ones.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

from . import program
from .answer import Answer
from .errors import QueryError
from .times import Window, moment_text, window_text

# Flags that this package sets itself.
_RESERVED = frozenset(
    {"color", "csv", "format", "help", "json", "no_pager", "output", "progress", "version"}
)
# Integers in these are ns since the epoch; the program would read short ones as seconds.
_TIMES = frozenset({"at", "begin", "end"})
# `as` emulates other tools, `export` writes files, `load` sends requests or compares two
# recordings, `fleet` queries many.
_NO_KINDS = frozenset({"as", "export", "fleet", "load"})
_WORD = re.compile(r"[a-z][a-z0-9_-]*")
_FLAG = re.compile(r"[a-z][a-z0-9_]+")


def query(
    path: Path,
    query: str,
    window: Window | str | None,
    interval: str | timedelta | None,
    count: int | None,
    flags: dict[str, Any],
) -> Answer:
    """See `Recording.query`."""
    words: list[str | bytes] = [*_words(query), "--format=json"]
    if window is not None:
        words.append(f"--window={window_text(window)}")
    for name, value in flags.items():
        words += _flag(name, value)
    folder, named = _named(path)
    words += ["--", named]
    if interval is not None:
        words.append(_text(interval))
    if count is not None:
        if interval is None:
            raise QueryError("`count` needs an interval")
        words.append(_text(count))
    return Answer.parse(program.run(words, folder), query)


class Kind:
    """A kind of the program (`io`, `block`, …); its verbs are methods."""

    def __init__(self, name: str, verbs: dict[str, str], evaluate: Callable[..., Answer]):
        self._name = name
        self._verbs = {verb.replace("-", "_"): verb for verb in verbs}
        self._about = verbs
        self._evaluate = evaluate

    def __getattr__(self, name: str) -> Callable[..., Answer]:
        # Introspection tools look up such names.
        if name.startswith("_"):
            raise AttributeError(name)
        if name not in self._verbs:
            raise AttributeError(
                f"`{self._name}` has no view `{name}`; views: {', '.join(self._verbs)}"
            )
        query = f"{self._name} {self._verbs[name]}"

        def verb(**flags: Any) -> Answer:
            return self._evaluate(query, **flags)

        verb.__name__ = name
        verb.__qualname__ = f"{self._name}.{name}"
        verb.__doc__ = (
            f"{self._about[self._verbs[name]]}.\n\n"
            f"Flags: see `whyslow {query} --help` and `Recording.query`."
        )
        return verb

    def __dir__(self) -> Iterable[str]:
        return [*super().__dir__(), *self._verbs]

    def __repr__(self) -> str:
        return f"<{self._name}: {', '.join(self._verbs)}>"


def kinds() -> dict[str, dict[str, str]]:
    """Kinds with their verbs and descriptions."""
    found = {name: program.commands(name) for name in program.commands() if name not in _NO_KINDS}
    return {name: verbs for name, verbs in found.items() if verbs}


def kind(name: str, evaluate: Callable[..., Answer]) -> Kind | None:
    """A kind; None if the program has no such kind."""
    word = name.replace("_", "-")
    known = word not in _NO_KINDS and word in program.commands()
    verbs = program.commands(word) if known else {}
    return Kind(word, verbs, evaluate) if verbs else None


def _words(query: str) -> list[str]:
    words = query.split()
    if not words or not all(_WORD.fullmatch(word) for word in words):
        raise QueryError(
            f"invalid query `{query}`: expected a kind and a verb, as in 'io stats'; "
            "pass flags as keyword arguments"
        )
    return words


def _flag(name: str, value: Any) -> list[str]:
    if name in _RESERVED:
        raise QueryError(f"`{name}` is not available in Python, where answers are tables")
    if not _FLAG.fullmatch(name):
        raise QueryError(f"`{name}` is not a flag: use its long name, as in limit=4")
    flag = f"--{name.replace('_', '-')}"
    if value is None or value is False:
        return []
    if value is True:
        return [flag]
    if name in _TIMES and not isinstance(value, str):
        return [f"{flag}={moment_text(value)}"]
    values = value if isinstance(value, (list, tuple, set, frozenset, range)) else [value]
    return [f"{flag}={_text(each)}" for each in values]


def _text(value: Any) -> str:
    if isinstance(value, timedelta):
        return f"{value // timedelta(microseconds=1) * 1_000}ns"
    if isinstance(value, datetime):
        return moment_text(value)
    return os.fspath(value) if isinstance(value, os.PathLike) else str(value)


def _named(path: Path) -> tuple[bytes | None, str]:
    """Working directory, and the path of the recording relative to it.

    An absolute path starts with a slash, so it is neither a flag nor an interval. A path that is
    not UTF-8 cannot be an argument of the program, but it can be its working directory.
    """
    whole = os.path.abspath(path)
    try:
        whole.encode()
    except UnicodeEncodeError:
        return os.fsencode(whole), "."
    return None, whole
