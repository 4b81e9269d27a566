"""Write synthetic rows as Parquet: PostgreSQL's CSV in, columns of their own types out. Needs the extra `parquet`."""

import importlib
from collections.abc import Sequence
from pathlib import Path
from types import ModuleType
from typing import Any, Final

from proxy.commands.basic import ConfigurationError
from rules.catalog import Column
from rules.values.types import type_of

_PRECISE: Final = 38  # digits of a decimal128
_TYPES: Final = {
    "int2": "int16", "int4": "int32", "int8": "int64", "float4": "float32", "float8": "float64", "bool": "bool_",
    "date": "date32",
}  # fmt: skip


def check_parquet() -> None:
    """Refuse at once where the library is missing: nothing has been fitted yet."""
    _pyarrow("pyarrow.parquet")


def write_parquet(path: Path, csv: bytes, columns: Sequence[Column]) -> None:
    """Write one table. Types that Parquet does not have are texts, as PostgreSQL writes them."""
    arrow, reader, writer = (_pyarrow(module) for module in ("pyarrow", "pyarrow.csv", "pyarrow.parquet"))
    options = reader.ConvertOptions(
        column_types={column.name: _type(arrow, column) for column in columns},
        null_values=[""],
        strings_can_be_null=True,
        quoted_strings_can_be_null=False,  # "" is a text without a letter, and no NULL
        true_values=["t"],
        false_values=["f"],
    )
    parse = reader.ParseOptions(newlines_in_values=True)
    table = reader.read_csv(arrow.BufferReader(csv), parse_options=parse, convert_options=options)
    writer.write_table(table, path)


def _type(arrow: ModuleType, column: Column) -> Any:
    sql_type = type_of(column)
    if sql_type.base in _TYPES:
        return getattr(arrow, _TYPES[sql_type.base])()
    if sql_type.base in ("timestamp", "timestamptz"):
        return arrow.timestamp("us", tz="UTC" if sql_type.base == "timestamptz" else None)
    is_precise = sql_type.base == "numeric" and sql_type.size is not None and sql_type.size <= _PRECISE
    return arrow.decimal128(sql_type.size, sql_type.scale or 0) if is_precise else arrow.string()


def _pyarrow(name: str) -> ModuleType:
    try:
        return importlib.import_module(name)
    except ImportError:
        words = "writing Parquet needs pyarrow, which is not installed: pip install 'noisegate[parquet]'"
        raise ConfigurationError(words) from None
