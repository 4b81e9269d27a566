"""Which functions and casts stand in the statements that the kernel writes: those on its lists, and no others."""

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TypeVar

import pytest

from rules.kernel.statement import Bounded, Marginals, Tally
from rules.kernel.templates import CALLED
from rules.replay import Kernel

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
_STRING = re.compile(r"'(?:[^']|'')*'")  # a backslash stands in them twice
_QUOTED = re.compile(r'"(?:[^"]|"")*"')
_CALL = re.compile(r"(?<![\w.])(?<!\bAS )([A-Za-z_]\w*)\s*\(")
_CAST = re.compile(r"::\s*((?:\w+\.)?\w+(?: precision| varying)?)")


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
