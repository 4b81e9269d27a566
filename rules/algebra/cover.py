"""The public rows that each row of a relation is made of: a superset of what the relation's public columns can be.

A row of a join has a row of each public table that is joined, and these meet as the join says. So the public part of a
relation, evaluated by itself, has every combination of public values that a row can have. It follows from the text and
the public tables alone. Whether it is complete is a matter of meaning: the kernel counts what is listed.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import field
from functools import reduce

from rules.algebra.nodes import Filter, Gathered, Join, Node, PerUnit, Project, Scan, SemiJoin, Windowed
from rules.frozen import frozen, replace
from rules.values import domain
from rules.values.expression import Apply, Column, Constant, Expression, conjuncts, ids_in
from rules.values.types import equality
from rules.values.value import Span

_DAYS_OR_MORE = (
    "year", "isoyear", "decade", "century", "millennium", "quarter", "month", "week", "day", "doy", "dow", "isodow",
)  # fmt: skip
_FIELD = re.compile(r"(?:date_trunc\('|extract\()(\w+)")
_PASSING = frozenset(("clamp", "within"))
_FINE_PATTERN = re.compile(r"HH|MI|SS|MS|US|FF|AM|PM|A\.M|P\.M|TZ|OF|J", re.IGNORECASE)


@frozen
class Cover:
    """Public rows that cover the rows of a relation, and the expressions they are computed from."""

    public: tuple[Scan, ...] = ()
    partners: tuple["Partner", ...] = ()
    protected: tuple[Scan, ...] = ()
    conditions: tuple[Expression, ...] = ()  # that hold of every row
    computed: Mapping[int, Expression] = field(default_factory=dict)

    def scans(self) -> Iterator[Scan]:
        """All protected tables whose rows may be there."""
        yield from self.protected
        for partner in self.partners:
            yield from partner.cover.scans()


@frozen
class Partner:
    """Rows that an outer join may have found: public ones that meet the condition, or NULLs."""

    cover: Cover
    conditions: tuple[Expression, ...] = ()


def cover_of(node: Node) -> Cover:
    """The public part of a relation; of a union nothing is known."""
    match node:
        case Scan():
            return Cover(public=(node,)) if node.facts.unit is None else Cover(protected=(node,))
        case Filter(source=source, condition=condition):
            return _together(cover_of(source), Cover(), tuple(conjuncts(condition)))
        case Project(source=source, computed=computed) | PerUnit(source=source, keys=computed):
            return _together(cover_of(source), Cover(computed=dict(computed)))
        case SemiJoin(source=source) | Gathered(source=source) | Windowed(source=source):
            return cover_of(source)
        case Join():
            return _joined(node)
    return Cover()


def _joined(node: Join) -> Cover:
    """Return where public rows stay without partners (`absent`), the protected side is like that of an outer join."""
    left, right, holding = cover_of(node.left), cover_of(node.right), tuple(conjuncts(node.condition))
    if node.kind == "inner" and node.facts.absent:
        kept, lost = (left, right) if node.left.facts.unit is None else (right, left)
        return _extended(kept, Partner(lost))
    match node.kind:
        case "inner":
            return _together(left, right, holding)
        case "left":
            return _extended(left, Partner(right, holding))
        case "right":
            return _extended(right, Partner(left, holding))
        case "full":
            return _extended(_extended(Cover(), Partner(left)), Partner(right))


def _together(left: Cover, right: Cover, holding: tuple[Expression, ...] = ()) -> Cover:
    return Cover(
        (*left.public, *right.public),
        (*left.partners, *right.partners),
        (*left.protected, *right.protected),
        (*left.conditions, *right.conditions, *holding),
        {**left.computed, **right.computed},
    )


def _extended(kept: Cover, partner: Partner) -> Cover:
    """Return what is computed of a partner's columns is NULL without a partner, whatever it is of NULLs."""
    same = {
        number: expression for number, expression in partner.cover.computed.items() if isinstance(expression, Column)
    }
    return replace(kept, partners=(*kept.partners, partner), computed={**kept.computed, **same})


def equal_columns(conditions: tuple[Expression, ...], computed: Mapping[int, Expression]) -> dict[int, frozenset[int]]:
    """For each column those that surely have its value: equated by a condition, or the same under another number."""
    pairs = [(number, expression.id) for number, expression in computed.items() if isinstance(expression, Column)]
    for condition in conditions:
        match condition:
            case Apply(name="=", arguments=(Column(id=one, type=kind), Column(id=two, type=other))):
                pairs += [(one, two)] if kind.kind == other.kind and equality(kind, other) == "same" else []
    groups: dict[int, frozenset[int]] = {}
    for first, second in pairs:
        merged = groups.get(first, frozenset([first])) | groups.get(second, frozenset([second]))
        groups.update(dict.fromkeys(merged, merged))
    return groups


def types_of(scan: Scan) -> dict[int, Column]:
    """The columns of a public table that can be read: of types whose values have a text that means them."""
    return {column.id: column for column in scan.facts.columns if column.type.kind not in ("other", "unknown")}


def is_over(expression: Expression, numbers: AbstractSet[int]) -> bool:
    """Return whether an expression reads these columns alone, and one at least."""
    ids = ids_in(expression) if numbers else frozenset[int]()
    return bool(ids) and ids <= numbers


def is_of_days(expression: Expression, number: int) -> bool:
    """Return whether all that an expression takes of a column is the day, by the session's clock."""
    match expression:
        case Column(id=own, type=kind):
            return own != number or kind.kind == "date"
        case Constant():
            return True
        case Apply(name="date_trunc" | "extract", arguments=(inner,)) if _is_plain(inner, number):
            match = _FIELD.match(expression.sql)
            return (match is not None and match[1] in _DAYS_OR_MORE) or is_of_days(inner, number)
        case Apply(name="to_char", arguments=(inner, Constant(text=str() as text))) if _is_plain(inner, number):
            return _FINE_PATTERN.search(text) is None or is_of_days(inner, number)
        case Apply(name="cast", type=kind, arguments=(inner,)) if kind.kind == "date" and _is_plain(inner, number):
            return True
    return all(is_of_days(argument, number) for argument in expression.arguments)


def _is_plain(expression: Expression, number: int) -> bool:
    """The column's own moment, on the session's clock, held between bounds perhaps."""
    match expression:
        case Column():
            return True
        case Apply(name=name, arguments=(inner, *bounds)) if name in _PASSING and not ids_in(*bounds):
            return _is_plain(inner, number)
        case Apply(name="cast", type=kind, arguments=(inner,)) if kind.is_time:
            return _is_plain(inner, number)
        case Apply(name="shift", arguments=(inner, Constant(value=Span(microseconds=0)))):
            return _is_plain(inner, number)  # by whole days or months, which keep the time of day
    return False


def reached(keys: Sequence[Expression], computed: Mapping[int, Expression]) -> list[Expression]:
    """The keys, and what their columns are computed from, each once."""
    expressions, seen = list(keys), set[int]()
    for expression in expressions:
        for number in sorted(ids_in(expression) - seen):
            seen.add(number)
            if isinstance(source := computed.get(number), Apply):
                expressions.append(source)
    return expressions


def clamped(expressions: Sequence[Expression], number: int) -> domain.Domain:
    """The bounds between which all expressions hold a column."""
    held = [hold for expression in expressions for hold in _held(expression, number)]
    return domain.ANYTHING if not held or domain.ANYTHING in held else reduce(domain.union, held)


def _held(expression: Expression, number: int) -> Iterator[domain.Domain]:
    """The bounds of a column at each place where it stands."""
    match expression:
        case Column(id=own) if own == number:
            yield domain.ANYTHING
        case Apply(name=name, domain=bounds, arguments=(Column(id=own), *_)) if name in _PASSING and own == number:
            yield bounds  # those of what is computed of it are of another scale
        case Apply(arguments=arguments):
            for argument in arguments:
                yield from _held(argument, number)
