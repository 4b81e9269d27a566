"""Bounds that a valid CHECK constraint proves: of integer columns only, for NaN passes x >= 0 on all other numbers."""

import re
from fractions import Fraction

from rules.catalog import Column, Table
from rules.relation.domain import ANYTHING, Domain, Range, intersect
from rules.relation.types import Type

# pg_get_constraintdef's own spelling: CHECK (((age >= 0) AND (age <= 120))), numbers perhaps as '-5'::integer
_PART = re.compile(
    r"\((?P<column>\"(?:[^\"]|\"\")+\"|[a-z_][a-z0-9_]*) (?P<operator>>=|<=|>|<|=) "
    r"(?:(?P<plain>\d+)|\(?'?(?P<signed>-?\d+)'?\)?::(?:smallint|integer|bigint))\)"
)


def bounds_of_checks(table: Table, column: Column, given: Type) -> Domain:
    """What the table's CHECKs prove of one integer column. NULL passes every CHECK, so nullability stays."""
    found: Domain = ANYTHING
    if given.kind != "integer" or table.has_children:
        return found
    for check in table.checks:
        if check.proves and column.name in check.columns:
            found = intersect(found, _bounds(check.definition, column.name))
    return found


def _bounds(definition: str, name: str) -> Domain:
    found: Domain = ANYTHING
    for part in _conjuncts(definition):
        match = _PART.fullmatch(part)
        if match is not None and _plain(match["column"]) == name:
            found = intersect(found, _range(match["operator"], Fraction(int(match["plain"] or match["signed"]))))
    return found


def _plain(written: str) -> str:
    return written[1:-1].replace('""', '"') if written.startswith('"') else written


def _conjuncts(definition: str) -> tuple[str, ...]:
    """The comparisons that all hold; a definition of any other form proves nothing."""
    inside = re.fullmatch(r"CHECK \((.*)\)(?: NOT VALID)?", definition, re.DOTALL)
    text = inside[1] if inside else ""
    if _PART.fullmatch(text):
        return (text,)
    parts = tuple(text[1:-1].split(" AND ")) if text.startswith("((") else ()
    return parts if parts and all(_PART.fullmatch(part) for part in parts) else ()


def _range(operator: str, bound: Fraction) -> Range:
    match operator:
        case ">=":
            return Range(bound, None)
        case ">":
            return Range(bound + 1, None)
        case "<=":
            return Range(None, bound)
        case "<":
            return Range(None, bound - 1)
    return Range(bound, bound)
