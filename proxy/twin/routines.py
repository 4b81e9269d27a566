"""Functions of the real schema on the twin: those that only compute, with their bodies; the others by their names.

A function in SQL that is immutable and reads nothing can be used over answers. It runs with the rights of its caller,
so it can do nothing there that the caller could not write himself. Of all others tools see the name and the types, and
nobody may call them.
"""

import re
from collections.abc import Collection, Iterator
from typing import Final

from proxy.twin.sql_text import Step, literal, optional, qualified
from rules.catalog import Catalog, Routine, Table

_READS: Final = re.compile(
    r"\b(from|table|into|insert|update|delete|merge|truncate|copy|call|do)\b|;\s*(?!end\s*$)\S", re.IGNORECASE
)
_READS_NOTHING: Final = re.compile(r"\bextract\s*\(\s*\w+\s+from\b|\bis\s+(not\s+)?distinct\s+from\b", re.IGNORECASE)
_UNAVAILABLE: Final = "BEGIN RAISE EXCEPTION 'this function cannot be called through the proxy'; END"


def shown_routine(routine: Routine) -> Routine:
    """The routine without its body, unless that computes from its arguments alone.

    What reads a table has one of a few words in its text. Who has one for another reason is listed.
    """
    reads = _READS.search(_READS_NOTHING.sub("", routine.body))
    return Routine(routine.name, routine.kind, routine.arguments, routine.result) if reads else routine


def find_changed(old: Catalog, new: Catalog, *, types_change: bool) -> frozenset[Routine]:
    """Those with bodies that come, go or change. All do when types are made anew, which they may rest on."""
    before = {each for each in old.routines if each.definition}
    after = {each for each in new.routines if each.definition}
    return frozenset(before | after if types_change else before ^ after)


def rests_on(table: Table, routines: Collection[Routine]) -> bool:
    """Return whether a text of the table may name one of them."""
    texts = [column.default or "" for column in table.columns]
    texts += [check.definition for check in table.checks]
    texts += [index.definition for index in table.indexes]
    return any(routine.name.name in text for routine in routines for text in texts)


def drop_routines(old: Catalog, changed: Collection[Routine]) -> Iterator[Step]:
    """Before all else: what is only listed goes each time, so that no table ever rests on it."""
    for routine in old.routines:
        if routine in changed or not routine.definition:
            yield Step(f"DROP ROUTINE IF EXISTS {_signature(routine)} CASCADE")


def create_routines(new: Catalog, changed: Collection[Routine]) -> Iterator[Step]:
    """Those with bodies, before the tables that may use them; what they call is looked up when they run."""
    for routine in new.routines:
        if routine in changed and routine.definition:
            yield Step("SET LOCAL check_function_bodies = off")
            yield optional(routine.definition)


def list_routines(new: Catalog) -> Iterator[Step]:
    """All that are not there, after the tables whose rows they may take."""
    yield Step("SET LOCAL check_function_bodies = on")
    yield from (optional(_listed(routine)) for routine in new.routines)


def _signature(routine: Routine) -> str:
    return f"{qualified(routine.name)}({', '.join(routine.arguments)})"


def _listed(routine: Routine) -> str:
    returns = f" RETURNS {routine.result}" if routine.kind == "function" else ""
    return (
        f"CREATE {routine.kind} {_signature(routine)}{returns} LANGUAGE plpgsql AS {literal(_UNAVAILABLE)}; "
        f"REVOKE EXECUTE ON ROUTINE {_signature(routine)} FROM PUBLIC"
    )
