"""Groups of what the rules do not declare: values outside of a list or of bounds, so that totals add up.

A key becomes CASE WHEN it is as declared THEN it ELSE other END, inside: one more group of the list, in which a unit's
rows count as in any other, for the same ε.
"""

from collections.abc import Sequence

from rules.bind.scope import PlannerContext
from rules.frozen import frozen
from rules.functions.comparison import both
from rules.functions.conditional import case
from rules.mechanisms.noised_outputs import Text
from rules.mechanisms.release_plan import PublicGroups
from rules.values import domain
from rules.values.domain import Values
from rules.values.expression import Column, Constant, Expression, null_of
from rules.values.types import TEXT

LABEL = "other"


@frozen
class Other:
    """A key with one more group."""

    place: int
    label: Text  # of this group; NULL where the type has no text for it
    is_apart: bool  # whether nothing else has this label
    names: tuple[str, ...]  # of the columns

    @property
    def notice(self) -> str:
        called = f"the group {LABEL}" if self.label else "the group NULL"
        return f"values of {', '.join(self.names)} outside of what the rules declare are {called}"


def wants_other(columns: Sequence[Column], context: PlannerContext) -> bool:
    """Tell whether a key has such a group: session or rules ask for it, and conditions leave something outside."""
    is_asked = context.other or any(column.other for column in columns)
    return is_asked and any(not domain.is_within(column.domain, column.declared) for column in columns)


def with_other(
    key: Expression, place: int, columns: Sequence[Column], tests: Sequence[Expression], context: PlannerContext
) -> tuple[Expression, Other]:
    """The key with one more value; the tests say that its columns are as declared."""
    setting = context.key_setting
    label = LABEL if _has_room(key) else None
    nothing = null_of(key.type if key.type.name else key.type.plain())
    default = nothing if label is None else Constant(TEXT, label, label)
    made = case(((both(*tests, setting=setting), key),), default, setting)
    is_apart = label is not None or not any(column.nullable for column in columns)
    return made, Other(place, label, is_apart, tuple(dict.fromkeys(column.name for column in columns if column.name)))


def _has_room(key: Expression) -> bool:
    """Return whether the word is a value of the key's type, and of no row that is as declared."""
    if key.type.kind != "text" or (key.type.size is not None and key.type.size < len(LABEL)):
        return False
    domain = key.declared if isinstance(key, Column) else key.domain
    return isinstance(domain, Values) and LABEL not in domain.items


def outside_of(groups: PublicGroups, others: Sequence[Other]) -> tuple[int, ...]:
    """The numbers of the listed groups that hold nothing else."""
    apart = [other for other in others if other.is_apart]
    if not apart:
        return ()
    return tuple(
        number for number, row in enumerate(groups.rows) if any(row[other.place] == other.label for other in apart)
    )
