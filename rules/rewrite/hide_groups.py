"""Which groups are answered: a list known without the data, or those whose noisy number of units is large enough.

A group that shows only when somebody is in it would betray that somebody. Public keys (declared values, boolean, enum,
whole numbers and dates between bounds, and what is computed from them) are listed in full, empty groups too. All other
keys need a threshold and δ.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from fractions import Fraction

from rules.noise.measures import KeyColumn, PublicGroups, Text
from rules.refusal import NotAllowed, NotSupported
from rules.relation import domain
from rules.relation.bind_expression import Binding
from rules.relation.bind_source import Relation, names_leaf
from rules.relation.branches import refined
from rules.relation.domain import Anything, Range, Values
from rules.relation.expression import Apply, Column, Constant, Expression, all_of
from rules.relation.functions.comparison import both, compare, either, in_list, is_null
from rules.relation.functions.guard import Setting, constant
from rules.relation.joint import Joint
from rules.relation.privacy import filtered
from rules.relation.scope import World
from rules.relation.types import Type
from rules.relation.value import Value, text_of
from rules.rewrite.site import GroupKey
from rules.sql.syntax import Expression as Written

_Item = tuple[Value | None, Text]
KEY_KINDS = (
    "boolean",
    "integer",
    "numeric",
    "float",
    "date",
    "timestamp",
    "timestamptz",
    "time",
    "text",
    "enum",
    "uuid",
)


@dataclass(frozen=True, slots=True)
class Keyed:
    """A relation whose rows all lie in groups that may be answered, and the keys that say in which."""

    source: Relation
    keys: tuple[Expression, ...]  # canonical: equal keys have one text
    columns: tuple[KeyColumn, ...]


def with_keys(source: Relation, written: tuple[GroupKey, ...], world: World) -> Keyed:
    """Bind the keys, and leave out the rows whose key lies outside its declared domain."""
    setting = world.setting(as_key=True)
    first = tuple(_bind(source, key.expression, world, setting) for key in written)
    declared = {column.id: column for key in first for column in _enforced(key)}
    node = source.node
    for column in declared.values():
        node = filtered(node, _inside(column, world.setting()))
    source = replace(source, node=node)
    keys = tuple(refined(_bind(source, key.expression, world, setting), node) for key in written)
    named = tuple(KeyColumn(_key_type(key), f"k{place}") for place, key in enumerate(keys, start=1))
    return Keyed(source, tuple(map(canonical_key, keys)), named)


def _bind(source: Relation, written: Written, world: World, setting: Setting) -> Expression:
    leaf = names_leaf(source.scope, {column.id: column for column in source.node.facts.columns})
    key = Binding(leaf, world, setting).bind(written)
    if key.type.kind not in KEY_KINDS:
        hint = "Cast it to a plain type, such as text or numeric."
        raise NotSupported(f"values of type {key.type.sql} cannot be grouped over protected rows", hint=hint)
    return key


def _enforced(key: Expression) -> Sequence[Column]:
    """The columns in a key whose declared domain it relies on."""
    match key:
        case Column(declared=Anything()):
            return ()
        case Column():
            return (key,)
        case Apply(name="clamp" | "listed", arguments=(Column() as column, *_)):
            return (column,)
        case Apply(arguments=arguments):
            return tuple(column for each in arguments for column in _enforced_below(each))
    return ()


def _enforced_below(key: Expression) -> Sequence[Column]:
    """Inside an operation a bare column is one that is only compared: it is read as it is."""
    return () if isinstance(key, Column) else _enforced(key)


def _inside(column: Column, setting: Setting) -> Expression:
    """NULL, or in the declared domain."""
    match column.declared:
        case Values(items=items):
            listed = tuple(Constant(_plain(column), text_of(item, column.type) or "", item) for item in items)
            test = in_list(column, listed, setting, negated=False)
        case Range(low=low, high=high) if low is not None and high is not None:
            first, last = constant(low, column.type), constant(high, column.type)
            test = both(compare(">=", column, first, setting), compare("<=", column, last, setting), setting=setting)
        case _:
            return all_of(())
    return either(is_null(column, setting, negated=False), test, setting=setting) if column.nullable else test


def _plain(column: Column) -> Type:
    return column.type if column.type.name else column.type.plain()


def _key_type(key: Expression) -> str:
    """A bare column keeps the precision that PostgreSQL shows for it; what is computed has none."""
    return key.type.sql if isinstance(key, Column) or key.type.name else key.type.plain().sql


def canonical_key(key: Expression) -> Expression:
    """Equal keys have one text: numbers without trailing zeros, no minus zero, texts compared by their bytes."""
    match key.type.kind:
        case "numeric" if key.type.scale is not None and isinstance(key, Column):
            return key
        case "numeric":
            sql = "trim_scale({0})"
        case "float":
            sql = "({0} + 0.0)"
        case "text":
            sql = '({0})::text COLLATE "C"'
        case _:
            return key
    return Apply("canonical", sql, (key,), key.type, key.domain, key.nullable)


def find_groups(
    keys: tuple[Expression, ...], limit: int, time_zone: str, known: tuple[Joint, ...] = ()
) -> PublicGroups | None:
    """All groups that can be, in the order of their keys with NULL last; None when they cannot be listed.

    `known` are the combinations of values that go together.
    """
    groups: list[tuple[_Item, ...]] = [()]
    for place, key in enumerate(keys):
        found = _items(key, limit, time_zone)
        if found is None:
            return None
        groups = [(*group, item) for group in groups for item in found]
        for joint in known:
            groups = _possible(groups, keys[: place + 1], joint)
        if len(groups) > limit:
            return None
    return PublicGroups(tuple(tuple(text for _, text in group) for group in groups))


def _possible(groups: list[tuple[_Item, ...]], keys: tuple[Expression, ...], joint: Joint) -> list[tuple[_Item, ...]]:
    """The groups whose values some known row has."""
    numbers = [_column_of(key) for key in keys]
    places = [place for place, number in enumerate(numbers) if number in joint.columns]
    if len(places) < 2 or places[-1] != len(keys) - 1:
        return groups
    columns = [joint.columns.index(number) for number in numbers if number in joint.columns]
    rows = {tuple(row[column] for column in columns) for row in joint.rows}
    return [group for group in groups if tuple(group[place][0] for place in places) in rows]


def _column_of(key: Expression) -> int | None:
    """The column that a key is, as it is or in its canonical form."""
    match key:
        case Column(id=number) | Apply(name="canonical", arguments=(Column(id=number),)):
            return number
    return None


def _items(key: Expression, limit: int, time_zone: str) -> tuple[_Item, ...] | None:
    """The values of a key with their texts."""
    items = domain.items_of(key.domain, limit)
    if items is None or (key.type.kind == "float" and not all(map(_is_short, items))):
        return None
    shown = key.type if isinstance(key, Column) else key.type.plain()
    texts = [(item, text_of(item, shown, time_zone)) for item in items]
    if any(text is None for _, text in texts):
        return None
    return (*texts, (None, None)) if key.nullable else tuple(texts)


def _is_short(item: Value) -> bool:
    """Doubles whose text is the same in Python and PostgreSQL: whole and small."""
    return isinstance(item, Fraction) and item.denominator == 1 and abs(item) < 10**15


def check_threshold(keys: tuple[Expression, ...], written: tuple[GroupKey, ...], delta: Decimal) -> None:
    """Without δ nothing found in the data may be shown."""
    if delta > 0:
        return
    places = [place for place, key in enumerate(keys, start=1) if domain.items_of(key.domain, 100_000) is None]
    which = ", ".join(f"{place}" for place in places) or "all together"
    message = f"the groups of this query (key {which}) are not known without the data, and delta is 0"
    hint = "Declare values or bounds for the column in the rules, narrow it in WHERE, or give a budget with delta."
    raise NotAllowed(message, hint=hint)
