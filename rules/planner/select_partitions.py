"""Select the groups that are answered: a list known without the data, or those with enough units by a noisy count.

A group that shows only when somebody is in it would betray that somebody. Public keys (declared values, boolean, enum,
whole numbers and dates between bounds, and what is computed from them) are listed in full, empty groups too. All other
keys need a threshold and δ.
"""

import sys
from collections.abc import Mapping, Sequence
from fractions import Fraction
from functools import lru_cache
from math import prod
from typing import Final

from rules.algebra.joint_domains import Joint
from rules.algebra.narrow import refined
from rules.algebra.nodes import Node
from rules.algebra.unit_facts import filtered
from rules.bind.expression import Binding
from rules.bind.from_clause import names_leaf
from rules.bind.scope import PlannerContext
from rules.bind.state import BoundSource
from rules.frozen import frozen, replace
from rules.functions.comparison import both, compare, either, in_list, is_null
from rules.functions.function import EvalContext
from rules.functions.guard import check_blanks, constant
from rules.functions.text.text_casts import shown_type
from rules.kernel.keys import Found, Key, Listed
from rules.mechanisms.noised_outputs import Text
from rules.mechanisms.release_plan import GroupLists, KeyColumn, PublicGroups
from rules.planner.compared_keys import narrowed_key
from rules.planner.find_blocks import GroupKey
from rules.planner.other_groups import Other, wants_other, with_other
from rules.refusal import NotSupported
from rules.sql.syntax import Expression as Written
from rules.values import domain
from rules.values.domain import Anything, Range, Values
from rules.values.expression import Apply, Column, Constant, Expression, all_of, columns_in
from rules.values.time_zones import note_use
from rules.values.types import KEY_KINDS, Type, hint_for
from rules.values.value import Value, text_of

Item = tuple[Value | None, Text]
_Member = tuple[tuple[Item, ...], tuple[int, ...]]  # a group, and which row of each part it has
_MOST_TRIED = 1_000_000  # combinations, of which few may be possible
_FEW = 100  # values of a listed key beside keys that are found


@frozen
class Keyed:
    """A relation whose rows all lie in groups that may be answered, and the keys that say in which."""

    source: BoundSource
    keys: tuple[Expression, ...]
    columns: tuple[KeyColumn, ...]
    unlisted: Node  # without the tests of columns that are keys themselves: a list of groups is such a test
    others: tuple[Other, ...] = ()  # keys with one more group
    enforced: frozenset[int] = frozenset()  # columns by whose declared domain rows are left out


@frozen
class Listing:
    """Groups that are known without the data, and the kernel's keys, whose ordinals stand for them."""

    groups: PublicGroups
    keys: tuple[Listed, ...]


def with_keys(source: BoundSource, written: tuple[GroupKey, ...], context: PlannerContext) -> Keyed:
    """Bind the keys, and leave out the rows whose key lies outside its declared domain."""
    setting = context.key_setting
    first = tuple(_bind(source, key.expression, context, setting) for key in written)
    gathered = {place for place, key in enumerate(first) if wants_other(_columns_of(key), context)}
    strict = [key for place, key in enumerate(first) if place not in gathered]
    declared = {column.id: column for key in strict for column in _enforced(key)}
    computed = {column.id for key in strict if not isinstance(key, Column) for column in _enforced(key)}
    node = unlisted = _with_values(source.node, first, context.setting)
    for column in declared.values():
        node = filtered(node, _inside(column, context.setting))
        if column.id in computed:
            unlisted = filtered(unlisted, _inside(column, context.setting))
    source = replace(source, node=node)
    keys = tuple(_bind(source, key.expression, context, setting) for key in written)
    named = tuple(KeyColumn(_key_type(key), f"k{place}", key.type.is_number) for place, key in enumerate(keys, start=1))
    made, others = list(keys), list[Other]()
    for place in sorted(gathered):
        columns = _columns_of(keys[place])
        tests = [_inside(column, context.setting) for column in columns]
        made[place], other = with_other(keys[place], place, columns, tests, context)
        others.append(other)
    return Keyed(
        source,
        tuple(narrowed_key(refined(key, node), node) for key in made),
        named,
        unlisted,
        tuple(others),
        frozenset(declared),
    )


def _columns_of(key: Expression) -> tuple[Column, ...]:
    """The columns whose declared domain a key relies on, each once."""
    return tuple(dict.fromkeys(_enforced(key)))


def _with_values(node: Node, keys: tuple[Expression, ...], setting: EvalContext) -> Node:
    """The rows that have a value in all columns of keys which the rules say are never NULL."""
    filled = {column.id: column for key in keys for column in columns_in(key) if column.filled and column.nullable}
    for column in filled.values():
        node = filtered(node, is_null(column, setting, negated=True))
    return node


def _bind(source: BoundSource, written: Written, context: PlannerContext, setting: EvalContext) -> Expression:
    leaf = names_leaf(source.scope, {column.id: column for column in source.node.facts.columns})
    binding = Binding(leaf, context, setting)
    key = binding.bind(written)
    if not isinstance(key, Column) and any(column.total for column in columns_in(key)):
        # A total may have bounds in the key itself, as least(n, 100) has.
        whole = binding.reading_whole(lambda column: column.total).bind(written)
        key = key if domain.number_of_items(whole.domain, context.policy.groups_limit) is None else whole
    if key.type.kind not in KEY_KINDS:
        raise NotSupported(
            f"values of type {key.type.sql} cannot be grouped over protected rows", hint=hint_for(key.type)
        )
    check_blanks(key.type)
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
            return tuple(column for argument in arguments for column in _enforced_below(argument))
    return ()


def _enforced_below(key: Expression) -> Sequence[Column]:
    """Inside an operation a bare column is one that is only compared: it is read as it is."""
    return () if isinstance(key, Column) else _enforced(key)


def _inside(column: Column, setting: EvalContext) -> Expression:
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
    """A bare column keeps the precision that PostgreSQL shows for it; what is computed has none, but its look."""
    return key.type.sql if isinstance(key, Column) or key.type.name else shown_type(key)


@frozen
class KeyPart:
    """Keys that go together, by their places, and every combination of values that they have."""

    places: tuple[int, ...]
    rows: tuple[tuple[Item, ...], ...]
    is_ordered: bool = False  # as their types sort them, as what lies between two bounds is listed


def own_part(key: Expression, place: int, limit: int, time_zone: str) -> KeyPart | None:
    """A key by itself, by what is known of its values."""
    items = _items(key, limit, time_zone)
    return None if items is None else KeyPart((place,), tuple(zip(items)), isinstance(key.domain, Range))


def listing_of(
    keys: tuple[Expression, ...], parts: tuple[KeyPart, ...], limit: int, known: tuple[Joint, ...] = ()
) -> Listing | None:
    """All groups that can be, in the order of their keys with NULL last; None where they are too many.

    `known` are the combinations of values that go together.
    """
    parts = tuple(_in_order(keys, part) for part in parts)
    places = [place for part in parts for place in part.places]
    if places == sorted(places) and not any(_ties(joint, keys) for joint in known):
        if prod(len(part.rows) for part in parts) > limit:
            return None
        listed = tuple(_listed_part(keys, part) for part in parts)
        return Listing(GroupLists(tuple(key.labels for key in listed)).combined(), listed)
    groups = _possible_groups(keys, parts, limit, known)
    if groups is None:
        return None
    texts = tuple([tuple([text for _, text in group]) for group, _ in groups])
    if len(groups) < prod(len(part.rows) for part in parts):
        return Listing(GroupLists((texts,)).combined(), (Listed(keys, texts),))
    listed = tuple(_listed_part(keys, part) for part in parts)
    return Listing(PublicGroups(texts, tuple(places for _, places in groups)), listed)


def _possible_groups(
    keys: tuple[Expression, ...], parts: tuple[KeyPart, ...], limit: int, known: tuple[Joint, ...]
) -> list[_Member] | None:
    """The combinations of the parts that some known row has, in the order of their keys."""
    order: tuple[int, ...] = ()
    groups: list[_Member] = [((), ())]
    for part in parts:
        if len(groups) * len(part.rows) > max(limit, _MOST_TRIED):
            return None
        groups = [((*group, *row), (*places, at)) for group, places in groups for at, row in enumerate(part.rows)]
        order += part.places
        for joint in known:
            groups = _possible(groups, [keys[place] for place in order], joint)
        if len(groups) > limit:
            return None
    at = [order.index(place) for place in range(len(keys))]
    groups = [(tuple([group[place] for place in at]), places) for group, places in groups]
    ranks = [_ranks(key, {id(group[place]): group[place] for group, _ in groups}) for place, key in enumerate(keys)]
    groups.sort(key=lambda member: [rank[id(item)] for rank, item in zip(ranks, member[0], strict=True)])
    return groups


def _in_order(keys: tuple[Expression, ...], part: KeyPart) -> KeyPart:
    """The rows of a part as their types sort them."""
    if part.is_ordered:
        return part
    kinds = [keys[place] for place in part.places]
    rows = sorted(part.rows, key=lambda row: [_rank(key, item) for key, item in zip(kinds, row, strict=True)])
    return KeyPart(part.places, tuple(rows))


def _listed_part(keys: tuple[Expression, ...], part: KeyPart) -> Listed:
    labels = tuple([tuple([text for _, text in row]) for row in part.rows])
    return Listed(tuple(keys[place] for place in part.places), labels)


def _ranks(key: Expression, items: Mapping[int, Item]) -> dict[int, int]:
    """Number the items as their type sorts them, by identity: groups share them, and comparing fractions is slow."""
    ranked = {identity: _rank(key, item) for identity, item in items.items()}
    order = {rank: number for number, rank in enumerate(sorted(set(ranked.values())))}
    return {identity: order[rank] for identity, rank in ranked.items()}


def _rank(key: Expression, item: Item) -> tuple[int, int | Fraction, str]:
    """Values as their type sorts them, NULL last. Whole numbers are compared as such, which takes less time."""
    known, _ = item
    match known:
        case None:
            return 2, 0, ""
        case Fraction():
            return 0, known.numerator if known.denominator == 1 else known, ""
        case bool():
            return 0, int(known), ""
        case str() if known in key.type.labels:
            return 0, key.type.labels.index(known), ""
    return 0, len(key.type.labels), known


def found_keys(keyed: Keyed, time_zone: str) -> tuple[tuple[Key, ...], tuple[KeyColumn, ...]]:
    """Keys of groups that are found in the data. Those with few known values leave as ordinals all the same."""
    known = [_items(key, _FEW, time_zone) for key in keyed.keys]
    if None not in known:  # too many combinations for a list
        return tuple(map(Found, keyed.keys)), keyed.columns
    kernel_keys: list[Key] = []
    columns: list[KeyColumn] = []
    for key, column, items in zip(keyed.keys, keyed.columns, known, strict=True):
        if items is None:
            kernel_keys.append(Found(key))
            columns.append(column)
        else:
            labels = tuple(text for _, text in items)
            kernel_keys.append(Listed((key,), tuple((label,) for label in labels)))
            columns.append(replace(column, labels=labels))
    return tuple(kernel_keys), tuple(columns)


def _ties(joint: Joint, keys: tuple[Expression, ...]) -> bool:
    """Tell whether some combinations of these keys' values may be no row's."""
    return sum(isinstance(key, Column) and key.id in joint.columns for key in keys) > 1


def _possible(groups: list[_Member], keys: list[Expression], joint: Joint) -> list[_Member]:
    """The groups whose values some known row has."""
    numbers = [key.id if isinstance(key, Column) else None for key in keys]
    places = [place for place, number in enumerate(numbers) if number in joint.columns]
    if len(places) < 2:
        return groups
    columns = [joint.columns.index(number) for number in numbers if number in joint.columns]
    rows = {tuple(row[column] for column in columns) for row in joint.rows}
    return [member for member in groups if tuple(member[0][place][0] for place in places) in rows]


def _items(key: Expression, limit: int, time_zone: str) -> tuple[Item, ...] | None:
    """The values of a key with their texts."""
    number = domain.number_of_items(key.domain, limit)
    if number is None:
        return None
    printed = _printed if number <= _MOST_KEPT else _printed.__wrapped__
    if key.type.kind == "timestamptz":  # whose texts are of the zone, be they printed now or kept
        span = domain.range_of(key.domain)
        for instant in (span.low, span.high):
            if instant is not None:
                note_use(time_zone, int(instant))
    return printed(key.domain, _shown_as(key), time_zone, key.nullable)


@lru_cache(maxsize=64)
def _printed(known: domain.Domain, shown: Type, time_zone: str, nullable: bool) -> tuple[Item, ...] | None:
    """All values of a domain with their texts, None where we cannot tell one: days and months are grouped by again."""
    items = domain.items_of(known, sys.maxsize) or ()
    if shown.kind == "float" and not all(map(_is_short, items)):  # others may not even fit in a double
        return None
    texts = [text_of(item, shown, time_zone) for item in items]
    return None if None in texts else (*zip(items, texts, strict=True), *(_NULL if nullable else ()))


_MOST_KEPT = 2_000  # values of a list that is kept
_NULL: Final[tuple[Item, ...]] = ((None, None),)


def item_of(item: Value, key: Expression, time_zone: str) -> Item | None:
    """A value of a key with the text that is shown of it, if it is surely the one that PostgreSQL has."""
    if key.type.kind == "float" and not _is_short(item):
        return None
    text = text_of(item, _shown_as(key), time_zone)
    return None if text is None else (item, text)


def _shown_as(key: Expression) -> Type:
    """Return the type by which a key's values are printed."""
    return key.type if isinstance(key, Column) else key.type.plain()


def _is_short(item: Value) -> bool:
    """Doubles whose text is the same in Python and PostgreSQL: whole and small."""
    return isinstance(item, Fraction) and item.denominator == 1 and abs(item) < 10**15
