"""Which functions and casts stand in the statements that the kernel writes: those on its lists, and no others."""

import re
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from types import CodeType, FunctionType
from typing import TypeVar

import psycopg
import pytest

from proxy.twin.embedded import OWNER, Cluster
from rules.kernel.statement import Bounded, Marginals, Tally
from rules.kernel.templates import CALLED
from rules.replay import Kernel
from tests.support.kept import forgotten
from tests.support.written import BY_HAND

ON_NO_LIST = "on no list"
Made = TypeVar("Made", Bounded, Tally, Marginals)

# `rules.kernel.added`, `rules.kernel.summand`, and the numbers that the kernel itself counts with.
ADDED = frozenset(
    """
    coalesce div encode enum_larger float8larger float8send float8smaller greatest hash_array_extended
    hashint8extended hashtextextended int8larger int8smaller interval_send least numeric_larger numeric_send
    numeric_smaller octet_length row_number char_length trim_scale round abs extract width_bucket count sum min max mode
    percentile_cont percentile_disc dense_rank grouping array_position
    """.split()
)
_WORDS = frozenset(
    """
    all and any array as between case by distinct else end exists filter from full group having in inner is join left
    lateral materialized n not offset on or order over right select sets then union using values when where with within
    bit character float interval numeric time timestamp varying
    """.split()
)
_TYPES = frozenset(
    """
    bigint boolean bool bpchar bytea date float4 float8 int2 int4 int8 integer interval jsonb name numeric smallint text
    time timestamp timestamptz uuid real character
    """.split()
) | {"double precision", "character varying"}  # a type in a schema is an enum of a constant
# The functions of the kernel that write a cast: on a column or a unit's value, on a constant, and on a number that the
# kernel has made of these.
WRITERS = frozenset(
    """
    added._compared_by_bytes added.canonical added.canonical_key added.hashed added.in_one_type added.key_text
    added.last_order added.row_identity added.saturated added.stored added.typed summand.Summand.wrap
    summand._from_float summand._from_numeric summand._from_time
    expressions.constant_sql summand._decimal summand._double
    bounded._needed bounded.tally forms.Frame.share forms._corrected forms._measured forms._unit forms._value
    forms.with_rows keys.Bins.wrap keys._join keys.listed_sql source._cases special.blocks._aggregate
    special.blocks._cell special.blocks._place special.blocks._share special.blocks._value special.blocks.block_values
    special.marginals.EdgeBins.read
    """.split()
)
_STRING = re.compile(r"'(?:[^']|'')*'")  # a backslash stands in them twice
_QUOTED = re.compile(r'"(?:[^"]|"")*"')
_CALL = re.compile(r"(?<![\w.])(?<!\bAS )([A-Za-z_]\w*)\s*\(")
_CAST = re.compile(r"::\s*((?:\w+\.)?\w+(?: precision| varying)?)")
_WRITTEN = re.compile(rf"(?:/\*([\w.]+)\*/)?{_CAST.pattern}")
_SENT = re.compile(r"PREPARE noisegate_[0-9a-f]{8}_\d+ AS (.*?); EXPLAIN \(COSTS O", re.DOTALL)


def unlisted(sql: str) -> set[str]:
    """The functions and types of casts in a statement that are on no list.

    Example:
        >>> sorted(unlisted("SELECT lower(a), md6(b), c::text, d::regclass, 'e(f)::g'"))
        ['::regclass', 'md6']
    """
    bare = _QUOTED.sub("Q", _STRING.sub("''", sql))
    calls = {name for name in _CALL.findall(bare) if name.lower() not in _WORDS}
    casts = {f"::{kind}" for kind in _CAST.findall(bare) if kind not in _TYPES and "." not in kind}
    return {name for name in calls if name.lower() not in CALLED | ADDED | {"q"}} | casts


def sent_to(cluster: Cluster) -> set[str]:
    """The statements of the kernel that proxies have sent, by the server's log: without those that a test wrote."""
    log = (cluster.directory / "log").read_text(errors="replace").replace("\n\t", "\n")
    return set(_SENT.findall(log)) - BY_HAND


@contextmanager
def all_sent_are_listed(cluster: Cluster) -> Iterator[None]:
    """As long as this lasts, the server logs what roles other than its owner send; then it is looked at."""
    with psycopg.connect(cluster.dsn(), autocommit=True) as owner:
        owner.execute("ALTER SYSTEM SET log_statement = 'all'")
        owner.execute(f"ALTER ROLE {OWNER} SET log_statement = none")
        owner.execute("SELECT pg_reload_conf()")
    yield
    found = {name for sql in sent_to(cluster) for name in unlisted(sql)}
    assert not found, f"{ON_NO_LIST}: {', '.join(sorted(found))}"


def writers(sql: str, statement: object) -> set[str]:
    """The functions of the kernel that wrote a cast, where they say so, and casts that neither they nor a template of
    the statement wrote."""
    found = _WRITTEN.findall(_QUOTED.sub("Q", _STRING.sub("''", sql)))
    templates = {kind for _, kind in _WRITTEN.findall(repr(statement))}
    return {writer or f"::{kind}" for writer, kind in found if writer or kind not in templates}


@contextmanager
def casts_say_their_writer() -> Iterator[None]:
    """As long as this lasts, a comment in front of each cast names the function of the kernel that wrote it."""
    modules = [module for name, module in sys.modules.items() if name.startswith("rules.kernel.")]
    holders = [*modules, *(each for module in modules for each in vars(module).values() if isinstance(each, type))]
    values = [value for holder in holders for value in vars(holder).values() if value.__hash__]
    functions = {getattr(value, "fget", None) or getattr(value, "__wrapped__", value) for value in values}
    with ExitStack() as stack:
        stack.enter_context(forgotten())
        for function in functions:
            if isinstance(function, FunctionType) and function.__module__.startswith("rules.kernel."):
                stack.callback(setattr, function, "__code__", function.__code__)
                writer = f"{function.__module__.removeprefix('rules.kernel.')}.{function.__qualname__}"
                function.__code__ = _marked(function.__code__, writer)
        yield


def _marked(code: CodeType, writer: str) -> CodeType:
    parts = (_marked(part, writer) if isinstance(part, CodeType) else part for part in code.co_consts)
    return code.replace(
        co_consts=tuple(part.replace("::", f"/*{writer}*/::") if isinstance(part, str) else part for part in parts)
    )


@contextmanager
def all_listed() -> Iterator[None]:
    """As long as this lasts, a kernel of this process fails where it writes a statement with anything else."""
    with pytest.MonkeyPatch.context() as patch:
        for name in ("_make_bounded", "_make_tally", "marginals"):
            patch.setattr(Kernel, name, _looked_at(getattr(Kernel, name)))
        yield


def _looked_at(make: Callable[..., Made]) -> Callable[..., Made]:
    def made(kernel: Kernel, statement: object) -> Made:
        written = make(kernel, statement)
        found = unlisted(written.sql)
        assert not found, f"{ON_NO_LIST}: {', '.join(sorted(found))} in {written.sql}"
        return written

    return made
