"""`noisegate shadow`: which of a day's statements of a tool would be refused, and why. None of them is run.

A whole proxy is started by the same rules, with a ledger that nobody keeps, and each statement is explained by it. That
reads the catalog and public tables, as any start does, and charges nothing. Of protected tables no row is read.
"""

import asyncio
import re
import secrets
import shutil
import tempfile
from collections import Counter
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from decimal import Decimal
from pathlib import Path
from typing import Final

import psycopg
from psycopg.conninfo import make_conninfo

from proxy.app import App
from proxy.load_config import ConfigurationError, ledger_identity, lock_of, make_ledger, open_ledger, read_rules
from proxy.settings import ServerSettings, Settings
from proxy.wire.scram import Verifier
from rules.accounting.store import KeptBounds
from rules.catalog import Catalog
from rules.policy.freeze import as_text, see
from rules.policy.model import Policy, table_name
from rules.policy.rules_yaml import CannotEdit, put, remove
from rules.sql.grammar import fingerprint, parse, shape
from rules.sql.read import read
from rules.sql.statement import Kind, Reading, Statement
from rules.sql.tree import kind

Session = psycopg.AsyncConnection[tuple[object, ...]]

_NAME: Final = "shadow"
_WITHOUT_CONSTANTS: Final = frozenset(("SelectStmt", "InsertStmt", "UpdateStmt", "DeleteStmt", "MergeStmt"))
"""The statements whose normalized texts have no constants."""
_EXPLAINED: Final = frozenset({Kind.QUERY, Kind.DECLARE})
_TYPES: Final = "SELECT parameter_types::text[] FROM pg_prepared_statements WHERE name = 'shadowed'"
_COST: Final = re.compile(r"Private answer  \(epsilon=([0-9.eE+-]+)")
_PARAMETER: Final = re.compile(r"\$[0-9]+")
_END: Final = re.compile(r";[ \t]*(?:\n|\Z)")
_MAY_GO_ON: Final = re.compile(r"['\"$]|/\*")
_MOST_PIECES: Final = 8
_CONSTANTS: Final = re.compile(r"'(?:[^']|'')*'|(?<![\w.$])[0-9]+(?:\.[0-9]+)?\b")
_VALUES: Final = re.compile(rf'"[^"]*"|{_CONSTANTS.pattern}')
_MISSING: Final = re.compile(r'(?P<kind>relation|column) "?(?:[\w$]+\.)*(?P<name>[^".]+)"? does not exist')
_UNPREPARED: Final = (
    (
        re.compile(
            r"\b(interval|date|time(?:stamp)?(?: with(?:out)? time zone)?|timestamptz) (\$[0-9]+)", re.IGNORECASE
        ),
        r"\2::\1",
    ),
    (re.compile(r"\b(date_trunc|date_part)\(\s*\$[0-9]+", re.IGNORECASE), r"\1('month'"),
    (re.compile(r"\bextract\(\s*\$[0-9]+\s+from\b", re.IGNORECASE), "extract(month FROM"),
)
_EXAMPLES: Final = {
    **dict.fromkeys(("smallint", "integer", "bigint", "numeric", "real", "double precision"), "1"),
    **dict.fromkeys(("text", "character varying", "character", "name"), "'a'"),
    **dict.fromkeys(("date", "timestamp without time zone", "timestamp with time zone"), "'2025-01-01'"),
    "boolean": "true",
    "interval": "'1 day'",
}


@dataclass(frozen=True, slots=True)
class RefusedStatement:
    """A kind of refusal, without constants of any statement."""

    sqlstate: str
    message: str
    hint: str


@dataclass(slots=True)
class Findings:
    """The statements of a log, by what would become of them."""

    statements: int = 0
    different: int = 0
    private: int = 0
    exact: int = 0
    session: int = 0
    epsilon: Decimal = Decimal(0)  # of all different private ones, asked once
    priced: set[str] = field(default_factory=set)  # the texts of these
    refused: dict[RefusedStatement, Counter[str]] = field(
        default_factory=dict
    )  # by kind: shapes, with how many there are

    def refuse(self, kind: RefusedStatement, shown: str, count: int) -> None:
        self.refused.setdefault(kind, Counter())[shown] += count


def statements_in(text: str) -> list[tuple[Statement | None, str]]:
    """The statements of a text, each with its own text; None for one that PostgreSQL's grammar cannot read."""
    statements: list[tuple[Statement | None, str]] = []
    pieces, place = _END.split(text), 0
    while place < len(pieces):
        reading, taken = _read_one(pieces, place)
        if reading.unreadable:
            statements.append((None, pieces[place].strip()))
        statements += [
            (statement, statement.text.rstrip().rstrip(";"))
            for statement in reading.statements
            if statement.text.strip()
        ]
        place += taken
    return statements


def _read_one(pieces: Sequence[str], place: int) -> tuple[Reading, int]:
    """Return what begins with a piece, and of how many it is made: a line may end with a semicolon inside of quotes."""
    alone = read(pieces[place])
    if alone.unreadable and _MAY_GO_ON.search(pieces[place]):
        for count in range(2, min(_MOST_PIECES, len(pieces) - place) + 1):
            whole = read(";\n".join(pieces[place : place + count]))
            if not whole.unreadable:
                return whole, count
    return alone, 1


async def shadow(rules: Path, catalog: Catalog, text: str, kept: Sequence[KeptBounds] = ()) -> Findings:
    """Explain every different statement; ConfigurationError where no proxy could be started by these rules."""
    whole = statements_in(text)
    counts = Counter(own for _, own in whole)
    made = Findings(statements=len(whole), different=len(counts))
    withheld = _withheld(read_rules(rules), catalog)
    with tempfile.TemporaryDirectory(prefix="noisegate-shadow-") as folder:
        async with _session(rules, Path(folder), catalog, kept) as session:
            for statement, own in dict(zip((own for _, own in whole), whole, strict=True)).values():
                await _ask(session, statement, own, counts[own], made, withheld)
    return made


@asynccontextmanager
async def _session(rules: Path, folder: Path, catalog: Catalog, kept: Sequence[KeptBounds]) -> AsyncIterator[Session]:
    """A session of a proxy that lives as long."""
    password = secrets.token_urlsafe(18)
    settings = _settings(rules, folder, password, catalog)
    make_ledger(settings, catalog)
    ledger = await open_ledger(settings, ledger_identity(catalog))
    for bounds in kept:  # of bounds: auto: nothing is looked at here
        await ledger.keep_bounds(bounds)
    await ledger.close()
    ready = asyncio.Event()
    app = App(settings, on_ready=ready.set, warns_of_zones=False)
    running, waiting = asyncio.create_task(app.run()), asyncio.create_task(ready.wait())
    await asyncio.wait({running, waiting}, return_when=asyncio.FIRST_COMPLETED)
    try:
        if running.done():
            running.result()
            raise ConfigurationError("the proxy was stopped")
        place = make_conninfo("", host="127.0.0.1", port=app.listener.port, dbname=catalog.database, sslmode="disable")
        login = make_conninfo(place, user=_NAME, password=password)
        async with await psycopg.AsyncConnection.connect(login, autocommit=True) as session:
            yield session
    finally:
        waiting.cancel()
        app.stop()
        await asyncio.gather(running, return_exceptions=True)


def _settings(rules: Path, folder: Path, password: str, catalog: Catalog) -> Settings:
    """The rules with only one analyst, for an empty ledger."""
    policy, text, path = read_rules(rules), rules.read_text(encoding="utf-8"), folder / "rules.yaml"
    verifier = Verifier.of_password(password, secrets.token_bytes(16))
    try:
        text = put(text, ("analysts",), f'{{{_NAME}: {{password: "{verifier}"}}}}')
        for key in ("operators", "logins", "synopses"):  # to make a synopsis would read rows
            text = remove(text, (key,)) if key in policy.model_fields_set else text
        if policy.previews == "synopsis":
            text = put(text, ("previews",), "empty")
    except CannotEdit as error:
        raise ConfigurationError(str(error)) from None
    path.write_text(text, encoding="utf-8")
    if lock_of(rules).exists():
        shutil.copyfile(lock_of(rules), lock_of(path))
    else:
        lock_of(path).write_text(as_text(see(policy, catalog)), encoding="utf-8")
    return Settings(path, folder / "rules.ledger", server=ServerSettings(port=0))


async def _ask(
    session: Session,
    statement: Statement | None,
    own: str,
    count: int,
    made: Findings,
    withheld: Mapping[tuple[str, str], str],
) -> None:
    """Find what would become of one statement."""
    if statement is None:
        # The first word of what cannot be read: the rest may hold constants
        made.refuse(
            RefusedStatement("42601", "PostgreSQL's grammar cannot read this statement", ""),
            f"{own.split(maxsplit=1)[0].upper()} …",
            count,
        )
        return
    if statement.refusal is not None:
        kind = RefusedStatement(statement.refusal.sqlstate, statement.refusal.message, statement.refusal.hint)
        made.refuse(_without_constants(kind), shape_of(own), count)
        return
    query = _query_in(statement, own)
    if query is None:
        made.session += count
        return
    try:
        plan = await _explained(session, query)
    except psycopg.Error as error:
        diagnosis = error.diag
        words = diagnosis.message_primary or "the connection was lost"
        missing = _MISSING.fullmatch(words)
        hint = diagnosis.message_hint or withheld.get((missing["kind"], missing["name"]) if missing else ("", ""), "")
        kind = RefusedStatement(error.sqlstate or "", words, hint)
        made.refuse(_without_constants(kind), shape_of(query), count)
        return
    if (cost := _COST.match(plan)) is not None:
        made.private += count
        made.epsilon += Decimal(0) if query.strip() in made.priced else Decimal(cost[1])
        made.priced.add(query.strip())
    else:
        made.exact += count


def _withheld(policy: Policy, catalog: Catalog) -> dict[tuple[str, str], str]:
    """Return what the DBA may know of that does not exist for analysts, by kind and name."""
    named = {name.name for name in map(table_name, policy.tables)}
    unnamed = {table.name.name for table in catalog.tables} - named
    tables = {("relation", name): "The database has it, and the rules file does not name it." for name in unnamed}
    columns = ((name, column) for table in policy.tables.values() for name, column in table.columns.items())
    hidden = {
        ("column", name): "The rules file hides a column of this name." for name, column in columns if column.hidden
    }
    return tables | hidden


def _query_in(statement: Statement, own: str) -> str | None:
    """The query of a statement; None for what is the session's own business."""
    if statement.kind in (Kind.PREPARE, Kind.EXPLAIN):
        return statement.query or None
    if statement.kind is Kind.COPY_OUT:
        match = re.match(r"\s*copy\s*\((.*)\)\s*to\s+stdout", own, re.IGNORECASE | re.DOTALL)
        return own if match is None else match[1]
    return own if statement.kind in _EXPLAINED else None


async def _explained(session: Session, query: str) -> str:
    """The first line of a plan. Statements of pg_stat_statements have parameters where constants were."""
    if _PARAMETER.search(query) is None:
        return await _first_line(session, f"EXPLAIN {query}")
    await session.execute(f"PREPARE shadowed AS {prepared_text(query)}".encode())
    try:
        cursor = await session.execute(
            "SELECT parameter_types::text[] FROM pg_prepared_statements WHERE name = 'shadowed'"
        )
        (types,) = await cursor.fetchone() or ([],)
        assert isinstance(types, list), "an array comes as a list"
        values = ", ".join(f"{_EXAMPLES.get(str(type_), 'NULL')}::{type_}" for type_ in types)
        return await _first_line(session, f"EXPLAIN EXECUTE shadowed{f' ({values})' if values else ''}")
    finally:
        await session.execute("DEALLOCATE shadowed")


def prepared_text(query: str) -> str:
    """A statement of pg_stat_statements that PostgreSQL can prepare, and whose fields of time have an example.

    Example:
        >>> prepared_text("SELECT date_trunc($1, at) FROM t WHERE at > now() - interval $2 AND n = $3")
        "SELECT date_trunc('month', at) FROM t WHERE at > now() - $1::interval AND n = $2"
    """
    for pattern, written in _UNPREPARED:
        query = pattern.sub(written, query)
    numbers = {name: place for place, name in enumerate(dict.fromkeys(_PARAMETER.findall(query)), 1)}
    return _PARAMETER.sub(lambda match: f"${numbers[match[0]]}", query)


async def _first_line(session: Session, text: str) -> str:
    cursor = await session.execute(text.encode())
    (line, *_) = await cursor.fetchone() or ("",)
    return str(line)


def shape_of(text: str) -> str:
    """A statement without its constants, and for one of which libpg_query leaves some its fingerprint."""
    kinds = {kind(piece.tree)[0] for piece in parse(text)}
    return (shape(text) if kinds <= _WITHOUT_CONSTANTS else "") or f"statement {fingerprint(text)}"


def _without_constants(kind: RefusedStatement) -> RefusedStatement:
    """A value that PostgreSQL cannot read stands in double quotes, as names do elsewhere."""
    constants = _VALUES if kind.sqlstate.startswith("22") else _CONSTANTS
    return replace(kind, message=constants.sub("?", kind.message), hint=constants.sub("?", kind.hint))


def most_frequent(refused: dict[RefusedStatement, Counter[str]]) -> Sequence[tuple[RefusedStatement, Counter[str]]]:
    """Kinds of refusal, the most frequent first."""
    return sorted(refused.items(), key=lambda counted: (-counted[1].total(), counted[0].message))
