"""Synopses at the command line: made now, dropped, reported on, written out. A running proxy goes on meanwhile."""

import argparse
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from proxy.commands.basic import Names, Unreachable, add_ledger, add_rules, run, say, settings_of
from proxy.commands.synopsis_files import check_parquet, make_folder, write_about, write_tables
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
from proxy.twin.synthetic import SyntheticSchema
from proxy.twin.twin import ClusterError, Twin, TwinError
from rules.accounting.store import KeptRelease
from rules.mechanisms.cost import price
from rules.mechanisms.draw import OpenDPNoise
from rules.refusal import Refusal
from rules.synopses.plan import SynopsisPlan, plan_synopsis


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
    """The database, the rules as analysts meet them, and the ledger; what fails is told to the DBA."""
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
        help="take a synopsis or a cube away until it is made again",
        description="Take away what was made, from all proxies with this ledger, within some seconds. It is there "
        "again once it is made anew, by hand or by its refresh. What was paid for it stays paid.",
    )
    reported = actions.add_parser(
        "report",
        help="how far each pair of columns may be from the data",
        description="Fit the rows of the newest release again, and tell from noised counts alone how far each pair of "
        "columns may be from the data. Costs nothing.",
    )
    exported = actions.add_parser(
        "export",
        help="write the rows into a folder, as CSV or Parquet",
        description="Write one file a table, and synopsis.json: what was measured, with which noise, and how good "
        "the rows are. They are the very rows that the proxy shows. Costs nothing.",
    )
    for action in (made, dropped, reported, exported):
        add_rules(action)
        action.add_argument("name", metavar="NAME", help="name of the synopsis")
        add_ledger(action)
    _add_files(exported)
    made.set_defaults(run=lambda options: make(settings_of(options), options.name))
    dropped.set_defaults(run=lambda options: drop(settings_of(options), options.name))
    reported.set_defaults(run=lambda options: report(settings_of(options), options.name))
    exported.set_defaults(run=_export)


def _export(options: argparse.Namespace) -> int:
    as_parquet = options.format == "parquet"
    return export(settings_of(options), options.name, options.folder, as_parquet=as_parquet)


def _add_files(export: argparse.ArgumentParser) -> None:
    formats = ("csv", "parquet")
    export.add_argument(
        "--format",
        choices=formats,
        default="csv",
        help="format of the files (default: csv); parquet needs the package pyarrow",
    )
    export.add_argument("folder", type=Path, metavar="FOLDER", help="where the files go; it must not exist")
