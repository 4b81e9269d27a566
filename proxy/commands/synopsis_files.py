"""Write synthetic rows into a folder: as CSV, or as Parquet, whose columns have their own types, by an extra."""

import asyncio
import importlib
import json
from collections.abc import Sequence
from pathlib import Path
from types import ModuleType
from typing import Any, Final

import psycopg

from proxy.load_config import ConfigurationError
from proxy.twin.steps import qualified
from proxy.twin.synthetic import SyntheticSchema
from rules.accounting.store import KeptRelease
from rules.catalog import Column
from rules.mechanisms.additive import NOISES, kind_paid
from rules.synopses.release import seed_of
from rules.values.types import type_of

_PRECISE: Final = 38  # digits of a decimal128
_TYPES: Final = {
    "int2": "int16", "int4": "int32", "int8": "int64", "float4": "float32", "float8": "float64", "bool": "bool_",
    "date": "date32",
}  # fmt: skip


def check_parquet() -> None:
    """Refuse at once where the library is missing: nothing has been fitted yet."""
    _pyarrow("pyarrow.parquet")


def make_folder(folder: Path) -> None:
    try:
        folder.mkdir(mode=0o700)
    except OSError as error:
        raise ConfigurationError(f"{folder} cannot be made: {error.strerror}") from None


async def write_tables(dsn: str, schema: SyntheticSchema, folder: Path, *, as_parquet: bool) -> None:
    """Write one file a table, of rows that the twin of this connection string holds."""
    async with await psycopg.AsyncConnection.connect(dsn, autocommit=True) as owner:
        await owner.execute("SET TimeZone = 'UTC'; SET DateStyle = 'ISO'")
        for table in schema.tables:
            pieces: list[bytes] = []
            sql = f"COPY {qualified(table.table.name)} TO STDOUT (FORMAT csv, HEADER)"
            async with owner.cursor() as cursor, cursor.copy(sql.encode()) as copy:
                async for piece in copy:
                    pieces.append(bytes(piece))
            path = folder / f"{table.table.name.name}.{'parquet' if as_parquet else 'csv'}"
            if as_parquet:
                path.touch(mode=0o600)
                await asyncio.to_thread(write_parquet, path, b"".join(pieces), table.table.columns)
            else:
                _write(path, b"".join(pieces))


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
        words = "writing Parquet needs pyarrow, which is not installed: pip install 'pyarrow>=18'"
        raise ConfigurationError(words) from None


def write_about(schema: SyntheticSchema, kept: KeptRelease, folder: Path) -> None:
    """Write synopsis.json: what a reader of the files has to know."""
    about = {
        "name": schema.name,
        "rows": "synthetic: made from noised counts, not data",
        "made_at": schema.made_at.isoformat(),
        "epsilon": str(schema.epsilon),
        "rho": str(schema.rho),
        "noise": NOISES[kind_paid(kept.release.mechanism)].title,
        "seed": seed_of(kept.release),
        "pairs": list(schema.pairs),
    }
    _write(folder / "synopsis.json", json.dumps(about, indent=2).encode() + b"\n")


def _write(path: Path, content: bytes) -> None:
    path.touch(mode=0o600)
    path.write_bytes(content)
