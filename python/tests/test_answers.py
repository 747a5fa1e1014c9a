"""Answers equal those of the command line, cell by cell."""

from __future__ import annotations

import os
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from conftest import cli, cli_json

import whyslow
from whyslow import program, queries

FORMS_WITH_MARKS = ("table", "tree", "histogram")


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "every" not in metafunc.fixturenames:
        return
    try:
        known = queries.kinds()
    except whyslow.WhyslowError as error:
        metafunc.parametrize("every", [pytest.param("", marks=pytest.mark.skip(error.message))])
        return
    found = [f"{kind} {verb}" for kind, verbs in known.items() for verb in verbs]
    assert {"io stats", "io top", "block hist", "files tree", "threads states"} <= set(found)
    metafunc.parametrize("every", found)


def check(answer: whyslow.Answer, document: dict[str, Any]) -> None:
    """The answer has the content of the document, and nothing else."""
    for key in (
        "query",
        "recording",
        "host",
        "zone",
        "next",
        "state",
        "reason",
        "record_with",
    ):
        assert getattr(answer, key) == document[key]
    window = document["window"]
    assert answer.window == (window["begin_ns"], window["end_ns"])
    assert list(answer.caveats) == document["caveats"]
    assert [vars(loss) for loss in answer.losses] == document["losses"]
    assert list(answer.tables) == [table["name"] for table in document["tables"]]
    for table in document["tables"]:
        got = answer[table["name"]]
        names = [column["name"] for column in table["columns"]]
        if table["form"] in FORMS_WITH_MARKS:
            names += ["outlier", "overlap"]
        assert got.column_names == names
        assert answer.facts[table["name"]] == table["facts"]
        for column in table["columns"]:
            about = got.schema.field(column["name"]).metadata
            assert about[b"measure"].decode() == column["measure"]
            assert about[b"title"].decode() == column["title"]
        rows = got.to_pylist()
        assert rows == table["rows"]
        for row, printed in zip(rows, table["rows"], strict=True):
            for name, cell in printed.items():
                # Python also treats 1, 1.0 and True as equal.
                exact = type(row[name]) is type(cell)
                assert exact or (type(row[name]), type(cell)) == (float, int), name


def check_both(recording: whyslow.Recording, binary: str, query: str, **flags: Any) -> None:
    """Python and the command line return the same answer, or the same error."""
    words = [*query.split(), str(recording.path)]
    for name, value in flags.items():
        words.append(f"--{name.replace('_', '-')}={value}")
    refused = cli(binary, *words, "--json")
    if refused.returncode:
        with pytest.raises(whyslow.QueryError) as caught:
            recording.query(query, **flags)
        assert caught.value.exit_code == refused.returncode
        assert caught.value.message in refused.stderr.decode()
        return
    check(recording.query(query, **flags), cli_json(binary, *words))


def test_every_question_is_answered_alike(web: whyslow.Recording, binary: str, every: str) -> None:
    middle = (web.begin_ns + web.end_ns) // 2
    begin, end = middle, middle + 700_000_000
    window = "..".join(f"{at // 10**9}.{at % 10**9:09}" for at in (begin, end))
    document = cli_json(binary, *every.split(), web.path, "-w", window)
    kind, verb = every.split()
    check(getattr(getattr(web, kind), verb.replace("-", "_"))(window=(begin, end)), document)


def test_every_question_to_a_recording_with_losses_and_hostile_names(
    lossy: whyslow.Recording, binary: str, every: str
) -> None:
    check_both(lossy, binary, every)


def test_tables_have_the_types_of_the_arrow_form(
    web: whyslow.Recording, binary: str, every: str, tmp_path: Path
) -> None:
    output = tmp_path / "table.arrow"
    answer = web.query(every, window="+8s..+8.2s")
    for name, table in answer.tables.items():
        words = [*every.split(), web.path, "-w+8s..+8.2s", "--format=arrow", "--table", name]
        done = cli(binary, *words, "-o", output)
        assert done.returncode == 0, done.stderr.decode()
        written = pa.ipc.open_stream(output.read_bytes()).read_all()
        assert table.schema.names == written.schema.names
        assert table.schema.types == written.schema.types
        assert table.to_pylist() == written.to_pylist()
        assert written.schema.metadata.items() <= table.schema.metadata.items()


@pytest.mark.parametrize(
    ("query", "flags"),
    [
        ("io stats", {"by": "comm"}),
        ("io stats", {"comm": "apache*", "min_size": 2}),
        ("io top", {"op": "open", "limit": 3, "sort": "dur_ns:asc"}),
        ("io top", {"limit": 0, "window": "op:71563"}),
        ("io hist", {"linear": 7}),
        ("io heat", {"weight": "intensity"}),
        ("block hist", {"dev": "sda", "vs": "vda"}),
        ("files top", {"by": "pattern"}),
        ("files open", {"at": "+3s"}),
        ("io log", {"file": "/var/lib/php/**", "min": "1ms"}),
        ("io stats", {"op": "nonsense"}),
        ("io stats", {"by": "nonsense"}),
        ("io stats", {"min": "5"}),
        ("io stats", {"window": "2014-01-01 00:00..2014-01-02 00:00"}),
        ("io stats", {"overlaps": "op:999999999"}),
    ],
)
def test_flags_mean_what_they_mean_on_the_command_line(
    web: whyslow.Recording, binary: str, query: str, flags: dict[str, Any]
) -> None:
    check_both(web, binary, query, **flags)


def test_an_answer_has_what_it_leaves_out(web: whyslow.Recording) -> None:
    left_out = web.io.top().left_out
    assert left_out is not None
    assert left_out["what"] == "waits for work"
    assert left_out["count"] > 0
    assert left_out["total_ns"] > 10**9
    assert web.io.top(waits=True).left_out is None


def test_flags_of_python_are_those_of_the_program(web: whyslow.Recording, binary: str) -> None:
    rec = str(web.path)

    def same(answer: whyslow.Answer, *words: str) -> None:
        check(answer, cli_json(binary, *words))

    same(web.io.stats(pid=[242, 243]), "io", "stats", rec, "-p242,243")
    same(web.io.stats(by=("comm", "op")), "io", "stats", rec, "--by=comm,op")
    same(web.io.top(waits=True, limit=3), "io", "top", rec, "--waits", "--limit=3")
    same(web.io.stats(no_tracer=True, errors=False), "io", "stats", rec, "--no-tracer")
    same(web.io.stats(pid=None, comm=[]), "io", "stats", rec)
    same(web.io.stats(interval="1s"), "io", "stats", rec, "1")
    same(
        web.io.stats(interval=timedelta(milliseconds=500), count=3), "io", "stats", rec, "0.5", "3"
    )
    same(web.io.top(min=timedelta(milliseconds=100)), "io", "top", rec, "--min=100ms")
    same(web.files.open(at=web.begin_ns + 3 * 10**9), "files", "open", rec, "--at=+3s")
    begin = web.begin_ns + 10**9
    same(web.io.stats(begin=begin, end=begin + 10**9), "io", "stats", rec, "-w+1s..+2s")
    same(web.io.stats(window=(begin, None)), "io", "stats", rec, "-w+1s..")
    same(web.io.stats(window=(None, begin)), "io", "stats", rec, "-w..+1s")


def test_words_of_python_cannot_become_flags(web: whyslow.Recording, tmp_path: Path) -> None:
    output = tmp_path / "out"
    for query, part in (
        (lambda: web.query(f"io stats --output={output}"), "invalid query"),
        (lambda: web.query("io stats -h"), "invalid query"),
        (lambda: web.query(""), "invalid query"),
        (lambda: web.io.stats(output=str(output)), "answers are tables"),
        (lambda: web.io.stats(format="csv"), "answers are tables"),
        (lambda: web.io.stats(n=4), "long name"),
        (lambda: web.io.stats(**{"by=comm --output": "x"}), "not a flag"),
        (lambda: web.io.stats(by="a\0b"), "cannot pass the arguments"),
        (lambda: web.io.stats(by="\ud800"), "cannot pass the arguments"),
        (lambda: web.io.stats(count=3), "needs an interval"),
        (lambda: web.io.stats(interval=f"--output={output}"), "--output"),
        (lambda: web.io.stats(frobnicate=1), "--frobnicate"),
        (lambda: web.query("io slowest"), "slowest"),
        (lambda: web.query("sql"), "."),
        (lambda: web.query("schema"), "."),
        (lambda: web.query("import"), "."),
        (lambda: web.io.stats(cols="help"), "does not return tables"),
    ):
        with pytest.raises(whyslow.QueryError, match=part):
            query()
    assert not output.exists()
    # A value that looks like a flag is a value.
    assert web.io.stats(comm=f"--output={output}")["stats"].num_rows == 0
    assert web.io.stats(file="--help")["stats"].num_rows == 0
    assert not output.exists()


@pytest.mark.parametrize("name", ["-x.wsl", "--help", "1", "100ms", "@last", "a b;$(touch x)"])
def test_names_that_read_as_something_else_are_recordings(
    make: Callable[..., Path], monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    path = make(name)
    monkeypatch.chdir(path.parent)
    with whyslow.open(name) as recording:
        monkeypatch.chdir("/")
        assert recording.io.stats().recording == name
        assert recording.table("syscall").num_rows == 7
    assert sorted(os.listdir(path.parent)) == sorted([name, "trace.txt"])


def test_refusals_have_the_message_and_the_hint(web: whyslow.Recording) -> None:
    with pytest.raises(whyslow.QueryError) as caught:
        web.io.top(window="2014-01-01 00:00..2014-01-02 00:00")
    assert caught.value.exit_code == 2
    assert "outside of the recording" in caught.value.message
    assert caught.value.hint is not None
    assert caught.value.hint.startswith("choose a window from ")
    assert "hint: choose a window from " in str(caught.value)


def test_colours_that_a_notebook_asks_for_change_nothing(
    web: whyslow.Recording, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("CLICOLOR_FORCE", "FORCE_COLOR"):
        monkeypatch.setenv(name, "1")
    program._commands.cache_clear()
    assert "io" in web.kinds()
    with pytest.raises(whyslow.QueryError, match=r"^unexpected argument '--frobnicate' found\n"):
        web.io.stats(frobnicate=1)


def test_lost_events_are_an_error_where_that_is_asked(lossy: whyslow.Recording) -> None:
    assert lossy.io.stats().losses[0].count == 7002
    with pytest.raises(whyslow.QueryError, match="events were lost") as caught:
        lossy.io.stats(strict=True)
    assert caught.value.exit_code == 3


def test_messages_are_taken_apart() -> None:
    output = (
        "note: x\nerror: failed to open `a`\n  cause: no\n  cause: not at all\n\nhint: try\nthis"
    )
    error = program.refusal(output, 1)
    assert (error.message, error.causes) == ("failed to open `a`", ("no", "not at all"))
    assert error.hint == "try\nthis"
    assert program.refusal("", 1).message == "the program exited with status 1"
    assert program.refusal("panicked", 101).message == "panicked"


def test_a_missing_program_is_told_with_what_helps(
    web: whyslow.Recording, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.delenv(program.VARIABLE, raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))
    for query in (lambda: web.query("io stats"), lambda: web.io, lambda: web.kinds()):
        with pytest.raises(whyslow.ProgramError, match="cargo install") as caught:
            query()
        assert program.VARIABLE in str(caught.value)
    # Tables work without the program.
    assert web.table("process").num_rows == web.tables["process"].rows
    assert "table" in dir(web)
    monkeypatch.setenv(program.VARIABLE, str(tmp_path))
    with pytest.raises(whyslow.ProgramError, match="is not an executable file"):
        web.query("io stats")
    broken = tmp_path / "broken"
    broken.write_text("#!/no/such/interpreter\n")
    broken.chmod(0o755)
    monkeypatch.setenv(program.VARIABLE, str(broken))
    with pytest.raises(whyslow.ProgramError, match="failed to start"):
        web.query("io stats")


def fake(folder: Path, script: str) -> str:
    path = folder / "fake"
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)
    return str(path)


def test_a_kind_of_tomorrow_needs_no_change_here(
    web: whyslow.Recording, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    document = (
        '{"schema_version":2,"query":"new-kind some-verb","recording":"r","host":null,'
        '"zone":null,"window":null,"tables":[{"name":"t","title":"t","form":"later","columns":'
        '[{"name":"x","title":"x","measure":"later"}],"rows":[{"x":9007199254740993},{"x":null}],'
        '"facts":{}}],"losses":[],"caveats":[],"next":null,"later":1}'
    )
    script = f"""case "$*" in
        --help) printf 'Commands:\\n  new-kind  What is new\\n  other     Not a kind\\n';;
        'new-kind --help') printf 'Commands:\\n  some-verb  About it [alias: v]\\n';;
        other*) ;;
        *) printf '%s' '{document}';;
    esac"""
    monkeypatch.setenv(program.VARIABLE, fake(tmp_path, script))
    assert web.kinds() == {"new-kind": {"some-verb": "About it [alias: v]"}}
    assert dir(web.new_kind)[-1] == "some_verb"
    assert "About it" in (web.new_kind.some_verb.__doc__ or "")
    answer = web.new_kind.some_verb(some_flag=1)
    assert answer.table().column("x").to_pylist() == [9007199254740993, None]
    assert answer.window is None
    with pytest.raises(AttributeError, match="some_verb"):
        _ = web.new_kind.another


@pytest.mark.parametrize(
    ("script", "error", "part"),
    [
        ("echo '{\"schema_version\": 3}'", whyslow.ProgramError, "version 3"),
        ("echo '{'", whyslow.QueryError, "does not return tables"),
        ("echo '[]'", whyslow.QueryError, "does not return tables"),
        ("echo broken >&2; exit 1", whyslow.QueryError, "broken"),
        ("kill -9 $$", whyslow.ProgramError, "signal 9"),
    ],
)
def test_what_is_no_answer_is_an_error(
    web: whyslow.Recording,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    script: str,
    error: type[whyslow.WhyslowError],
    part: str,
) -> None:
    monkeypatch.setenv(program.VARIABLE, fake(tmp_path, script))
    with pytest.raises(error, match=part):
        web.query("io stats")


def test_columns_that_fit_no_type_and_tables_of_one_name_are_kept() -> None:
    column = {"title": "", "measure": "count"}
    table = {
        "name": "t",
        "title": "",
        "form": "heat_map",
        "columns": [{"name": "x", **column}, {"name": "y", **column}, {"name": "x", **column}],
        "rows": [{"x": 2**53 + 1, "y": 1}, {"x": "é", "y": 1.5}, {"x": [1], "y": None}],
        "facts": {},
    }
    head = {"schema_version": 2, "query": "q", "recording": "r", "host": None, "zone": None}
    rest = {"window": None, "losses": [], "caveats": []}
    import json

    document = json.dumps({**head, "tables": [table, table], **rest}).encode()
    answer = whyslow.Answer.parse(document, "q")
    assert list(answer) == ["t", "t_2"]
    assert answer["t"].column("x").to_pylist() == ["9007199254740993", "é", "[1]"]
    assert answer["t_2"].column("y").to_pylist() == [1.0, 1.5, None]
    with pytest.raises(whyslow.QueryError, match="tables: t, t_2"):
        answer["u"]


def test_an_import_is_refused_as_on_the_command_line(
    make: Callable[..., Path], tmp_path: Path
) -> None:
    path = make("-t.wsl")
    with pytest.raises(whyslow.QueryError, match="already exists") as caught:
        whyslow.import_trace(tmp_path / "trace.txt", output=path)
    assert caught.value.hint == "replace it: --force"
    with whyslow.import_trace(tmp_path / "trace.txt", output=path, force=True) as recording:
        assert recording.table("syscall").num_rows == 7
    with pytest.raises(whyslow.QueryError, match="missing"):
        whyslow.import_trace("missing", output=tmp_path / "x.wsl")
