"""Synopses at the command line: made now, dropped, reported on. A running proxy goes on meanwhile.

Rows are written as CSV, or as Parquet, whose columns have their own types, by an extra.
"""

import argparse
import asyncio
import importlib
import json
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any, Final

import psycopg

from proxy.commands.basic import Names, Unreachable, add_ledger, add_rules, run, say, settings_of
from proxy.engines.engine import Engine, EngineError
from proxy.engines.engines import real_database
from proxy.execute.clock import system_clock
from proxy.execute.rulebook import Rulebook
from proxy.load_config import ConfigurationError, check_rules, ledger_identity, open_ledger, read_rules
from proxy.policy_in_force import Freeze
from proxy.settings import Settings
from proxy.synopses.cubes import CubeMaker, listing_of
from proxy.synopses.fit_release import FitFailed, fitted_schema, told_epsilon
from proxy.synopses.make import Maker
from proxy.synopses.make import drop as drop_made
from proxy.twin.steps import qualified
from proxy.twin.synthetic import SyntheticSchema
from proxy.twin.twin import ClusterError, Twin, TwinError
from rules.accounting.store import KeptRelease
from rules.catalog import Column
from rules.mechanisms.additive import NOISES, kind_paid
from rules.mechanisms.cost import price
from rules.mechanisms.draw import OpenDPNoise
from rules.refusal import Refusal
from rules.synopses.plan import SynopsisPlan, plan_synopsis
from rules.synopses.release import seed_of
from rules.values.types import type_of


@dataclass(frozen=True, slots=True)
class Open:
    """Hold what a command works with."""

    rulebook: Rulebook
    maker: Maker
    cubes: CubeMaker
    engine: Engine

    async def newest(self, name: str) -> tuple[SynopsisPlan, KeptRelease]:
        """The plan of a synopsis, and its newest release."""
        if name in self.rulebook.policy.cubes:
            raise ConfigurationError(f"{name} is a cube, which has no rows: it serves questions about its table")
        plan = plan_synopsis(name, self.rulebook.policy, self.rulebook.catalog)
        kept = await self.maker.find(plan)
        if kept is None:
            raise ConfigurationError(f"there is no synopsis {name} made by these rules: run noisegate synopsis make")
        return plan, kept


def make(settings: Settings, name: str) -> int:
    """Measure a synopsis, charge it, and keep it for all proxies with this ledger."""

    async def work() -> str:
        async with _opened(settings, name) as open_:
            if name in open_.rulebook.policy.cubes:
                return await _make_cube(name, open_)
            kept = await open_.maker.make(name, open_.rulebook)
            epsilon, cost = told_epsilon(kept, open_.rulebook), kept.release.mechanism
            words = f"ε {price(epsilon)}" + (f", paid as ρ {price(cost.rho)}" if cost.epsilon is None else "")
            return f"made {name}: {len(kept.release.values):,} counts, charged to the budget of all ({words})"

    say(run(work()))
    say("a running proxy serves from it within some seconds, and charges each reader once")
    return 0


async def _make_cube(name: str, open_: Open) -> str:
    plan = await open_.cubes.plan(name, open_.rulebook)
    kept = await open_.cubes.make(plan, open_.rulebook)
    cells = sum(key_set.cells for key_set in plan.sets)
    schema = listing_of(plan, kept, (), open_.rulebook)
    words = f"ε {price(schema.epsilon)}" + (f", paid as ρ {price(schema.rho)}" if schema.rho else "")
    return f"made {name}: {len(plan.sets)} sets of keys, {cells:,} cells, charged to the budget of all ({words})"


def drop(settings: Settings, name: str) -> int:
    """Take away what was made of a synopsis or a cube, for all proxies with this ledger."""

    async def work() -> bool:
        async with _opened(settings, name) as open_:
            return await drop_made(name, open_.rulebook, open_.maker.ledger, system_clock())

    if not run(work()):
        raise ConfigurationError(f"there is nothing of {name}: it was not made, or dropped before")
    say(f"dropped {name}: a running proxy takes it away within some seconds, until it is made again")
    return 0


def report(settings: Settings, name: str) -> int:
    """Print how far each pair of columns may be from the data."""

    async def work() -> SyntheticSchema:
        async with _opened(settings, name) as open_:
            plan, kept = await open_.newest(name)
            return await fitted_schema(plan, kept, (), open_.rulebook)

    for line in report_lines(run(work())):
        say(line)
    return 0


def report_lines(schema: SyntheticSchema) -> list[str]:
    """The report as a table: shares of rows that lie in another cell, from noised counts alone."""
    lines = [
        f"{schema.name}, made {schema.made_at:%Y-%m-%d %H:%M} UTC at ε {schema.epsilon:f}",
        "Expected distance: the share of rows that lie in another cell (total variation), by five fits to noise that",
        "is drawn likewise. Patterns of three columns are a guess, and rows beyond rows_per_unit are missing.",
        "",
        f"{'table':16}{'columns':44}{'cells':>7}{'noise':>9}{'distance':>10}  {'from':>6} {'to':>6}",
    ]
    for pair in schema.pairs:
        columns = " × ".join(str(column) for column in map(pair.get, _COLUMNS) if column is not None)
        lines.append(
            f"{pair['table']!s:16}{columns:44}{pair['cells']!s:>7}{_number(pair['noise_sd']):9.1f}"
            f"{_number(pair['expected_distance']):10.3f}  {_number(pair['low']):6.3f} {_number(pair['high']):6.3f}"
        )
    return lines


_COLUMNS = ("column_1", "column_2", "column_3")


def _number(value: object) -> float:
    return float(str(value))


def export(settings: Settings, name: str, folder: Path, *, as_parquet: bool) -> int:
    """Write the rows that the proxy shows, by a twin of their own that holds their constraints."""
    if as_parquet:
        check_parquet()

    async def work() -> None:
        async with _opened(settings, name) as open_:
            plan, kept = await open_.newest(name)
            schema = await fitted_schema(plan, kept, (), open_.rulebook)
            make_folder(folder)
            policy, catalog = open_.rulebook.policy, open_.rulebook.catalog
            twin = await Twin.open(catalog, policy, open_.engine)
            try:
                await twin.show_synopsis(schema)
                await write_tables(twin.owner_dsn, schema, folder, as_parquet=as_parquet)
            finally:
                await twin.close()
            write_about(schema, kept, folder)

    run(work())
    say(f"{folder}: synthetic rows, one file a table, and synopsis.json about them")
    return 0


@asynccontextmanager
async def _opened(settings: Settings, name: str) -> AsyncIterator[Open]:
    """The database, the rules as analysts see them, and the ledger; failures are reported to the DBA."""
    policy = read_rules(settings.rules)
    if name not in policy.synopses:
        known: Sequence[str] = sorted(policy.synopses)
        raise ConfigurationError(f"the rules have no synopsis {name}; they have {', '.join(known) or 'none'}")
    engine = real_database(policy.database).open_engine(settings=policy.engine_settings)
    try:
        catalog = await engine.catalog()
        freeze = Freeze(settings.rules).read_again(policy, catalog)
        shown = freeze.hide(policy, catalog)
        if name not in shown.synopses:
            raise ConfigurationError("\n".join(map(str, freeze.resting(policy, catalog))))
        check_rules(shown, catalog)
        ledger = await open_ledger(settings, ledger_identity(catalog))
        try:
            parts = engine, ledger, OpenDPNoise(), system_clock
            yield Open(Rulebook.of(shown, catalog, 0), Maker(*parts), CubeMaker(*parts), engine)
        finally:
            await ledger.close()
    except Refusal as refusal:
        words = ". ".join(filter(None, [refusal.message, refusal.detail.rstrip("."), refusal.hint]))
        raise ConfigurationError(words) from None
    except (FitFailed, TwinError, ClusterError) as error:
        raise ConfigurationError(f"synopsis {name}: {error}") from None
    except EngineError as error:
        raise Unreachable(str(error) or f"the database cannot be read: {error.cause.advice}") from None
    finally:
        await engine.close()


def add_to(names: "Names[argparse.ArgumentParser]") -> None:
    """Add them to the command line."""
    about = "synopses and cubes: make them now, see how good they are, write rows out"
    actions = names.add_parser("synopsis", help=about).add_subparsers(title="actions", metavar="ACTION", required=True)
    made = actions.add_parser(
        "make",
        help="measure a synopsis or a cube now, and charge it",
        description="Charge the budget of all analysts, then count, add noise and keep the counts in the ledger. A "
        "running proxy serves from them within some seconds, and charges each reader before.",
    )
    dropped = actions.add_parser(
        "drop",
        help="remove a synopsis or a cube until it is made again",
        description="Remove it from all proxies with this ledger, within some seconds, until you or its refresh make "
        "it again. Its charge stays.",
    )
    reported = actions.add_parser(
        "report",
        help="how far each pair of columns may be from the data",
        description="Fit the rows of the newest release again, and estimate from noised counts alone how far each pair "
        "of columns may be from the data. Costs nothing.",
    )
    exported = actions.add_parser(
        "export",
        help="write the rows into a folder, as CSV or Parquet",
        description="Write one file for each table, and synopsis.json with the measurements, their noise and the "
        "accuracy of the rows. These are the rows that the proxy shows. Costs nothing.",
    )
    for action in (made, dropped, reported, exported):
        add_rules(action)
        action.add_argument("name", metavar="NAME", help="name of the synopsis")
        add_ledger(action)
    exported.add_argument(
        "--format",
        choices=("csv", "parquet"),
        default="csv",
        help="format of the files (default: csv); parquet needs the package pyarrow",
    )
    exported.add_argument("folder", type=Path, metavar="FOLDER", help="where the files go; it must not exist")
    made.set_defaults(run=lambda options: make(settings_of(options), options.name))
    dropped.set_defaults(run=lambda options: drop(settings_of(options), options.name))
    reported.set_defaults(run=lambda options: report(settings_of(options), options.name))
    exported.set_defaults(run=_export)


def _export(options: argparse.Namespace) -> int:
    as_parquet = options.format == "parquet"
    return export(settings_of(options), options.name, options.folder, as_parquet=as_parquet)


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
