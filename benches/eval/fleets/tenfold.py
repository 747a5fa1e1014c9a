"""Multiplies the hosts of a compacted lake by ten: the same rows under other names."""

import json
import shutil

import pyarrow
import pyarrow.parquet
from lakes import T0, ulid

TIMES = 10
#: Offset between the recording numbers of two copies, and the first number of compactions.
APART, COMPACTIONS = 10_000, 9_000_000


def write(source, target):
    """Writes a lake with ten copies of each compaction of `source`."""
    shutil.rmtree(target, ignore_errors=True)
    commits = sorted(source.glob("v1/_commits/*/*/@*.json"))
    for place, path in enumerate(commits):
        commit = json.loads(path.read_text())
        for time in range(TIMES):
            stem = f"@{ulid(T0, COMPACTIONS + time * len(commits) + place)}"
            copy(source, target, path, commit, stem, time)


def copy(source, target, path, commit, stem, time):
    hosts = {held["recording"]: held["host"] for held in commit["recordings"]}
    names = {
        "host": lambda host: f"copy{time}-{host}",
        "recording": lambda recording: ulid(T0, 1 + number(hosts[recording]) + time * APART),
    }
    tables = {}
    for table, info in commit["tables"].items():
        rows = renamed(pyarrow.parquet.read_table(source / "v1" / info["file"], partitioning=None), names)
        name = info["file"].replace(path.stem, stem)
        file = target / "v1" / name
        file.parent.mkdir(parents=True, exist_ok=True)
        pyarrow.parquet.write_table(rows, file, compression="zstd", row_group_size=128 * 1024)
        tables[table] = {**info, "file": name, "bytes": file.stat().st_size}
    held = [{name: names[name](one[name]) for name in names} for one in commit["recordings"]]
    file = (target / path.relative_to(source)).with_stem(stem)
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(json.dumps({**commit, "recordings": held, "tables": tables}))


def renamed(rows, names):
    for column, name in names.items():
        if column in rows.column_names:
            values = rows[column].combine_chunks().dictionary_encode()
            words = pyarrow.array([name(word) for word in values.dictionary.to_pylist()])
            rows = rows.set_column(rows.column_names.index(column), column, words.take(values.indices))
    return rows


def number(host):
    return int(host.rpartition("-")[2])
