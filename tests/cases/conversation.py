"""A client's connection to the proxy, and beside it one to the real database that is sent the same."""

import re
from dataclasses import dataclass, field
from decimal import Decimal

import psycopg
from psycopg import pq

from rules.sql.read import read
from rules.sql.statement import Kind
from tests.cases.case_file import Step

Row = tuple[str | None, ...]
NUMBERS = frozenset(("int2", "int4", "int8", "numeric", "float4", "float8"))
# Of the largest number of a column: noise, and what bounds cut off. Where noise alone does that more often than once in
# 1e8 answers, a case lets fewer rows of each customer count.
NEAR = Decimal("0.15")
FAILS = "SELECT 1 / 0"  # puts a transaction of the real database into the state that the proxy's is in


@dataclass(frozen=True)
class Said:
    """What came back for one string."""

    columns: tuple[tuple[str, str], ...]  # name and type
    rows: tuple[Row, ...]
    tag: str
    sqlstate: str = ""
    message: str = ""


@dataclass
class Line:
    """One connection at the level of the protocol."""

    connection: psycopg.Connection
    notices: list[str] = field(default_factory=list)
    types: dict[int, str] = field(default_factory=dict)

    @classmethod
    def to(cls, dsn: str) -> "Line":
        line = cls(psycopg.connect(dsn, autocommit=True))
        line.connection.add_notice_handler(lambda notice: line.notices.append(notice.message_primary or ""))
        found = line.connection.execute("SELECT oid::int8, typname FROM pg_type")
        line.types.update((oid, str(name)) for oid, name in found)
        return line

    @property
    def is_idle(self) -> bool:
        return self.connection.pgconn.transaction_status is pq.TransactionStatus.IDLE

    def ask(self, sql: str, parameters: list[str | None], *, extended: bool) -> Said:
        self.notices.clear()
        text = sql.encode(self.connection.info.encoding)
        if extended:
            values = [None if value is None else value.encode() for value in parameters]
            return self._said(self.connection.pgconn.exec_params(text, values))
        return self._said(self.connection.pgconn.exec_(text))

    def _said(self, result: pq.abc.PGresult) -> Said:
        def text(value: bytes | None) -> str | None:
            return None if value is None else value.decode(self.connection.info.encoding)

        def part(name: pq.DiagnosticField) -> str:
            return text(result.error_field(name)) or ""

        width = range(result.nfields)
        columns = tuple((text(result.fname(n)) or "", self.types.get(result.ftype(n), "?")) for n in width)
        rows = tuple(tuple(text(result.get_value(row, n)) for n in width) for row in range(result.ntuples))
        tag = text(result.command_status) or ""
        return Said(columns, rows, tag, part(pq.DiagnosticField.SQLSTATE), part(pq.DiagnosticField.MESSAGE_PRIMARY))


@dataclass
class Conversation:
    """A case as it goes on."""

    proxy: Line
    truth: Line

    def step(self, step: Step) -> None:
        """Send one string by both protocols, and hold what comes back against the promise."""
        said = self._ask_both(step)
        if step.outcome in ("refused", "error"):
            assert (said.sqlstate, said.message[: len(step.says)]) == (step.sqlstate, step.says), said
            self.truth.ask(FAILS, [], extended=False)
            return
        assert not said.sqlstate, said
        truth = self.truth.ask(step.sql, step.parameters, extended=bool(step.parameters))
        assert not truth.sqlstate, truth
        assert said.columns == truth.columns
        self._check_cost(step.outcome)
        _check_rows(step, said, truth)

    def _ask_both(self, step: Step) -> Said:
        """A query outside a transaction is asked by both protocols: the answer must be one."""
        was_idle = self.proxy.is_idle
        statements = read(step.sql).statements
        said = self.proxy.ask(step.sql, step.parameters, extended=bool(step.parameters))
        if was_idle and not step.parameters and [statement.kind for statement in statements] == [Kind.QUERY]:
            notices = list(self.proxy.notices)
            again = self.proxy.ask(step.sql, [], extended=True)
            assert again == said
            self.proxy.notices[:] = notices
        return said

    def _check_cost(self, outcome: str) -> None:
        """`free` tells no noise, `again` tells noise of before, and only `answer` spends."""
        told = self.proxy.notices
        costs = any(re.match(r"(ε|epsilon) (?!0 spent)\S+ spent", notice) for notice in told)
        before = any(notice.startswith("reused the answer of") for notice in told)
        found = "again" if before and not costs else "answer" if costs else "free"
        assert found == outcome or (found, outcome) == ("again", "answer"), told


def _check_rows(step: Step, said: Said, truth: Said) -> None:
    if step.rows is not None:
        assert len(said.rows) == step.rows, said
    if step.expected:
        assert [tuple("" if cell is None else cell for cell in row) for row in said.rows] == step.expected
    if "same" in step.words:
        assert said.rows == truth.rows
    if step.outcome == "free" or "other rows" in step.words:
        return
    assert said.tag == truth.tag
    if "apart" not in step.words:
        check_near(said, truth)


def check_near(said: Said, truth: Said) -> None:
    """The same groups, and in each of them numbers near the true ones."""
    width = range(len(said.columns))
    keys = [n for n in width if sorted(map(str, _column(said, n))) == sorted(map(str, _column(truth, n)))]

    def key(row: Row) -> list[str]:
        return [str(row[n]) for n in keys]

    pairs = list(zip(sorted(said.rows, key=key), sorted(truth.rows, key=key), strict=True))
    assert all(key(one) == key(other) for one, other in pairs)
    for n in (n for n in width if n not in keys):
        name, kind = said.columns[n]
        assert kind in NUMBERS, f"{name}: {_column(said, n)} is not {_column(truth, n)}"
        largest = max(abs(Decimal(value)) for value in _column(truth, n) if value is not None)
        for one, other in pairs:
            assert abs(_number(one[n]) - _number(other[n])) <= NEAR * largest, (name, one, other)


def _column(said: Said, number: int) -> list[str | None]:
    return [row[number] for row in said.rows]


def _number(text: str | None) -> Decimal:
    return Decimal(0) if text is None else Decimal(text)
