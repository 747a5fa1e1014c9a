"""What the program `whyslow fleet` starts: one question on stdin, one answer on stdout.

stdin is one JSON object: `lake`, `question` (or `sql`), `parameters`, `window` (begin and end, ns),
`hosts` (globs), `cluster`, `engine`, `memory`, `threads`, `progress`, `passing` (true if the lake
is made for this question only, of recordings that were given: hints do not name it). stdout is a
stream of Arrow whose schema has the rest of the answer under the key `whyslow`. What goes wrong is
one line of JSON on stderr (`error`, `causes`, `hint`), and exit code 2.

`--describe` prints the questions, with what they are asked for by and their columns, as JSON.
"""

from __future__ import annotations

import contextlib
import json
import os
import sys
from typing import Any

import pyarrow as pa

from ..errors import QuestionError, WhyslowError
from .answer import FleetAnswer
from .fleet import open_fleet
from .questions import questions

#: Version of both forms; within it, keys are only ever added.
VERSION = 1
_KEYS = {
    "cluster": (str, type(None)),
    "engine": (str,),
    "hosts": (list,),
    "lake": (str,),
    "memory": (str, type(None)),
    "parameters": (dict, type(None)),
    "passing": (bool,),
    "progress": (bool,),
    "question": (str,),
    "sql": (str,),
    "threads": (int, type(None)),
    "version": (int,),
    "window": (list, type(None)),
}


def main(words: list[str]) -> int:
    # Whatever else prints something, only the answer is on standard output.
    output = os.dup(1)
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    if words == ["--describe"]:
        described = [one.described() for one in questions().values()]
        text = json.dumps({"version": VERSION, "questions": described}, ensure_ascii=False)
        with contextlib.suppress(BrokenPipeError), os.fdopen(output, "wb") as stream:
            stream.write(f"{text}\n".encode())
        return 0
    try:
        if words:
            raise QuestionError(
                f"`{' '.join(words)}` is nothing that is known here",
                hint="give a question as JSON on stdin, or --describe",
            )
        answer = _answered(_asked(sys.stdin.buffer.read()))
    except WhyslowError as error:
        return _refused(error)
    except KeyboardInterrupt:
        return 130
    _write(answer, output)
    return 0


def _asked(document: bytes) -> dict[str, Any]:
    try:
        asked = json.loads(document)
    except ValueError as error:
        raise QuestionError("stdin holds no JSON", causes=[str(error)]) from None
    if not isinstance(asked, dict):
        raise QuestionError("stdin holds no object of JSON")
    for name, value in asked.items():
        kinds = _KEYS.get(name)
        if kinds is None:
            raise QuestionError(f"`{name}` is no key", hint=f"keys are {', '.join(_KEYS)}")
        if not isinstance(value, kinds) or (isinstance(value, bool) and bool not in kinds):
            raise QuestionError(f"`{name}` is not of the right type")
    if asked.get("version", VERSION) != VERSION:
        raise QuestionError(
            f"the question is of version {asked['version']}; this package knows {VERSION}",
            hint="use a package and a program of one version",
        )
    if "lake" not in asked:
        raise QuestionError("`lake` is missing")
    if ("question" in asked) == ("sql" in asked):
        raise QuestionError("give either `question` or `sql`")
    return asked


def _answered(asked: dict[str, Any]) -> FleetAnswer:
    def say(text: str) -> None:
        print(text, file=sys.stderr, flush=True)

    window = asked.get("window")
    fleet = open_fleet(
        asked["lake"],
        window=None if window is None else tuple(window),
        hosts=asked.get("hosts", []),
        cluster=asked.get("cluster"),
        engine=asked.get("engine", "duckdb"),
        memory=asked.get("memory") or "4GiB",
        threads=asked.get("threads"),
        progress=say if asked.get("progress") else None,
        passing=asked.get("passing", False),
    )
    if "sql" in asked:
        return fleet.sql(asked["sql"])
    return fleet.ask(asked["question"], **(asked.get("parameters") or {}))


def _refused(error: WhyslowError) -> int:
    said = {"error": error.message, "causes": list(error.causes), "hint": error.hint}
    print(json.dumps(said, ensure_ascii=False), file=sys.stderr, flush=True)
    return 2


def _write(answer: FleetAnswer, output: int) -> None:
    table = answer.arrow()
    # Whoever reads may have enough before the end.
    with (
        contextlib.suppress(BrokenPipeError),
        os.fdopen(output, "wb") as file,
        pa.ipc.new_stream(file, table.schema) as stream,
    ):
        stream.write_table(table)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
