"""A private statement on its way through a session: what is asked, and what is at hand once it is answered."""

from dataclasses import dataclass, replace

from proxy.session.literals import literal, typed_literal
from proxy.session.prepared_statements import PreparedStatements
from proxy.session.twin_probe import SessionState
from proxy.wire.backend import Field
from proxy.wire.frontend import Bind
from rules.functions.function import Styles
from rules.mechanisms.noised_outputs import Text
from rules.planner.plan import Plan, Request
from rules.sql.session_settings import AnalystSettings
from rules.sql.statement import EnclosedQuery, Kind, Statement, split_around


@dataclass(frozen=True, slots=True)
class PrivateRequest:
    """A statement that may read a protected table."""

    statement: Statement
    around: EnclosedQuery | None  # None: it has no query that could be planned
    place: int | None = None  # characters before the query in what the client sent; None where it is not written there
    name: bytes | None = None  # under which the twin has parsed it; None: it has not
    types: tuple[int, ...] = ()  # of its parameters, as far as the client has declared them
    bind: Bind | None = None  # its values in the extended protocol
    arguments: tuple[str, ...] = ()  # its values in EXECUTE, as expressions
    explains: bytes | None = None  # the prepared statement that EXPLAIN EXECUTE names: it knows the types


def asked_by_execute(statement: Statement, names: PreparedStatements, codec: str) -> PrivateRequest | None:
    """Return what EXECUTE of a prepared statement, or EXPLAIN of one, asks for; None where it needs no look."""
    name = statement.name or ""
    prepared = names.find_prepared(name)
    if prepared is None or prepared.statement.kind is not Kind.QUERY:
        return None
    inside, key = prepared.statement, name.encode(codec)
    if statement.kind is Kind.EXECUTE:
        return PrivateRequest(inside, split_around(inside), None, key, arguments=statement.arguments)
    return PrivateRequest(
        replace(statement, relations=inside.relations),
        _explaining(statement, inside),
        arguments=statement.arguments,
        explains=key,
    )


def _explaining(statement: Statement, inside: Statement) -> EnclosedQuery | None:
    """EXPLAIN of what is prepared, in place of EXECUTE; None where it would be run."""
    around = None if statement.analyze else split_around(statement)
    return None if around is None else EnclosedQuery("", f"{around.head} {inside.text}", "")


@dataclass(frozen=True, slots=True)
class Parameters:
    """The values of $1, $2 …: what they are and, for the planner, their canonical text."""

    types: tuple[int, ...] = ()
    type_names: tuple[str, ...] = ()
    values: tuple[Text, ...] = ()


def request_of(query: str, moment: SessionState, settings: AnalystSettings, parameters: Parameters) -> Request:
    """Return what the planner is asked, by the session as it is now."""
    return Request(
        text=query,
        search_path=moment.search_path,
        parameter_types=parameters.type_names,
        parameters=parameters.values,
        epsilon=settings.epsilon,
        delta=settings.delta,
        rows_per_unit=settings.rows_per_unit,
        groups_per_unit=settings.groups_per_unit,
        rows_auto=settings.rows_auto,
        sums_auto=settings.sums_auto,
        cut=settings.cut,
        other=settings.other,
        confidence=settings.confidence,
        mark=settings.mark,
        previews=settings.previews,
        time_zone=moment.setting("TimeZone"),
        now=moment.now,
        styles=Styles(moment.setting("DateStyle"), moment.setting("IntervalStyle")),
    )


@dataclass(frozen=True, slots=True)
class Answered:
    """A private statement, paid and noised: all that is left is the outer statement on the twin."""

    plan: Plan
    around: EnclosedQuery
    columns: tuple[Field, ...]  # as PostgreSQL describes the original
    parameters: Parameters
    arrays: tuple[str, ...]  # the columns of its blocks, as texts of text[]
    notices: tuple[str, ...]
    is_parsed: bool  # whether the twin has the outer statement of a query ready, under its name

    def with_parameters(self) -> str:
        """The statement to be bound: the client's values and then `arrays` are its parameters."""
        return self.around.put(self.plan.outer_with_parameters())

    def with_literals(self) -> str:
        """The statement where no parameter can stand."""
        return self.around.put(
            "".join(part if isinstance(part, str) else self._literal(part) for part in self.plan.outer)
        )

    def _literal(self, hole: int) -> str:
        """Return what stands at $hole: a parameter of the client, or a column of a block."""
        if hole <= self.plan.parameters:
            return typed_literal(self.parameters.values[hole - 1], self.parameters.type_names[hole - 1])
        return f"({literal(self.arrays[hole - self.plan.parameters - 1])}::text[])"
