"""Recordings of whyslow in Python.

    import whyslow

    rec = whyslow.open("web.wsl")
    rec.table("syscall", columns=["ts", "dur", "path"])       # Arrow
    rec.sql("SELECT op, calls, dur_max_ns FROM io_stats")     # DuckDB
    rec.io.top(op="open", limit=4)["top_open"]                # the program's answer

Times are integers in ns since the Unix epoch; durations are in ns, sizes in bytes.
"""

from .answer import Answer, Loss
from .errors import (
    LakeError,
    MissingPackageError,
    ProgramError,
    QueryError,
    RecordingError,
    WhyslowError,
)
from .frames import to_pandas, to_polars
from .manifest import Source, TableInfo
from .recording import Recording, import_trace
from .recording import open_recording as open
from .times import with_times

__version__ = "0.1.0"

__all__ = [
    "Answer",
    "LakeError",
    "Loss",
    "MissingPackageError",
    "ProgramError",
    "QueryError",
    "Recording",
    "RecordingError",
    "Source",
    "TableInfo",
    "WhyslowError",
    "import_trace",
    "open",
    "to_pandas",
    "to_polars",
    "with_times",
]
