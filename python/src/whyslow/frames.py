"""Arrow tables as data frames, without loss.

Nullable integers stay integers: a time as float would be wrong by up to 256 ns.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from .errors import MissingPackageError

if TYPE_CHECKING:
    import pandas as pd
    import polars as pl


def to_pandas(table: Any) -> pd.DataFrame:
    """A pandas data frame; integers and booleans have nullable pandas types.

    Args:
        table: an Arrow table or the result of `Recording.sql`.

    Raises:
        MissingPackageError: pandas is not installed.
    """
    try:
        import pandas as pd
    except ImportError:
        raise _missing("pandas") from None
    kinds = {
        pa.bool_(): pd.BooleanDtype(),
        pa.int32(): pd.Int32Dtype(),
        pa.int64(): pd.Int64Dtype(),
    }
    return _arrow(table).to_pandas(types_mapper=kinds.get)


def to_polars(table: Any) -> pl.DataFrame:
    """A Polars data frame.

    Args:
        table: an Arrow table or the result of `Recording.sql`.

    Raises:
        MissingPackageError: Polars is not installed.
    """
    try:
        import polars as pl
    except ImportError:
        raise _missing("polars") from None
    frame = pl.from_arrow(_without_odd_offsets(_arrow(table)))
    if not isinstance(frame, pl.DataFrame):
        raise TypeError("Polars did not return a data frame")
    return frame


def _arrow(table: Any) -> pa.Table:
    """An Arrow table with integer sums: DuckDB returns 128-bit sums, which are decimals."""
    table = table if isinstance(table, pa.Table) else table.to_arrow_table()
    for index, field in enumerate(table.schema):
        if pa.types.is_decimal128(field.type) and field.type.scale == 0:
            try:
                sums = table.column(index).cast(pa.int64())
            except pa.ArrowInvalid:  # exceeds 64 bits
                continue
            table = table.set_column(index, field.with_type(pa.int64()), sums)
    return table


def _without_odd_offsets(table: pa.Table) -> pa.Table:
    """Polars does not support offsets like +05:30: such times are converted to UTC."""
    for index, field in enumerate(table.schema):
        zone = getattr(field.type, "tz", None)
        if zone is not None and re.fullmatch(r"[+-]\d\d:(?!00)\d\d", zone):
            kind = pa.timestamp(field.type.unit, "UTC")
            table = table.set_column(index, field.with_type(kind), table.column(index).cast(kind))
    return table


def _missing(name: str) -> MissingPackageError:
    return MissingPackageError(f"`{name}` is not installed", hint=f"pip install 'whyslow[{name}]'")
