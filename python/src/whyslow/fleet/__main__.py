"""The child process of `whyslow fleet`: one query on stdin, one answer on stdout.

stdin is one JSON object: `lake`, `query` (or `sql`), `parameters`, `window` (start and end, ns),
`hosts` (globs), `cluster`, `engine`, `memory`, `threads`, `progress`, `passing` (true if the lake
is temporary, created from recordings for this query: hints do not name it). stdout is an Arrow
stream whose schema has the rest of the answer under the key `whyslow`. An error is one line of JSON
on stderr (`error`, `causes`, `hint`) and exit code 2.

`--describe` prints the queries, with their parameters and columns, as JSON.
"""

from __future__ import annotations

import contextlib
import json
import os
import sys
from typing import Any

import pyarrow as pa

from ..errors import QueryError, WhyslowError
from .answer import FleetAnswer
from .fleet import open_fleet
from .queries import queries

#: Version of the request and of `--describe`; within a version keys are only added.
VERSION = 2
_KEYS = {
    "cluster": (str, type(None)),
    "engine": (str,),
    "hosts": (list,),
    "lake": (str,),
    "memory": (str, type(None)),
    "parameters": (dict, type(None)),
    "passing": (bool,),
    "progress": (bool,),
    "query": (str,),
    "sql": (str,),
    "threads": (int, type(None)),
    "version": (int,),
    "window": (list, type(None)),
}


def main(words: list[str]) -> int:
    # Only the answer goes to standard output, whatever else prints.
    output = os.dup(1)
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    if words == ["--describe"]:
        described = [one.described() for one in queries().values()]
        text = json.dumps({"version": VERSION, "queries": described}, ensure_ascii=False)
        with contextlib.suppress(BrokenPipeError), os.fdopen(output, "wb") as stream:
            stream.write(f"{text}\n".encode())
        return 0
    try:
        if words:
            raise QueryError(
                f"unknown arguments `{' '.join(words)}`",
                hint="pass a query as JSON on stdin, or --describe",
            )
        answer = _run(_parse_request(sys.stdin.buffer.read()))
    except WhyslowError as error:
        return _report(error)
    except KeyboardInterrupt:
        return 130
    _write(answer, output)
    return 0


def _parse_request(document: bytes) -> dict[str, Any]:
    try:
        request = json.loads(document)
    except ValueError as error:
        raise QueryError("stdin is not valid JSON", causes=[str(error)]) from None
    if not isinstance(request, dict):
        raise QueryError("stdin is not a JSON object")
    for name, value in request.items():
        kinds = _KEYS.get(name)
        if kinds is None:
            raise QueryError(f"unknown key `{name}`", hint=f"keys: {', '.join(_KEYS)}")
        if not isinstance(value, kinds) or (isinstance(value, bool) and bool not in kinds):
            raise QueryError(f"`{name}` has the wrong type")
    if request.get("version", VERSION) != VERSION:
        raise QueryError(
            f"the request has version {request['version']}; this package supports {VERSION}",
            hint="use the same version of the package and the program",
        )
    if "lake" not in request:
        raise QueryError("`lake` is missing")
    if ("query" in request) == ("sql" in request):
        raise QueryError("specify either `query` or `sql`")
    return request


def _run(request: dict[str, Any]) -> FleetAnswer:
    def report(text: str) -> None:
        print(text, file=sys.stderr, flush=True)

    window = request.get("window")
    fleet = open_fleet(
        request["lake"],
        window=None if window is None else tuple(window),
        hosts=request.get("hosts", []),
        cluster=request.get("cluster"),
        engine=request.get("engine", "duckdb"),
        memory=request.get("memory") or "4GiB",
        threads=request.get("threads"),
        progress=report if request.get("progress") else None,
        passing=request.get("passing", False),
    )
    if "sql" in request:
        return fleet.sql(request["sql"])
    return fleet.query(request["query"], **(request.get("parameters") or {}))


def _report(error: WhyslowError) -> int:
    document = {"error": error.message, "causes": list(error.causes), "hint": error.hint}
    print(json.dumps(document, ensure_ascii=False), file=sys.stderr, flush=True)
    return 2


def _write(answer: FleetAnswer, output: int) -> None:
    table = answer.arrow()
    # The reader may close the pipe before the end.
    with (
        contextlib.suppress(BrokenPipeError),
        os.fdopen(output, "wb") as file,
        pa.ipc.new_stream(file, table.schema) as stream,
    ):
        stream.write_table(table)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
