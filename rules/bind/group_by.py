"""The keys of GROUP BY, DISTINCT and DISTINCT ON, with numbers and names of the select list resolved."""

from rules.bind.scope import Scope
from rules.bind.walk_syntax import column_name, unnumbered
from rules.frozen import frozen
from rules.refusal import NotAllowed, NotSupported
from rules.sql import syntax as s


@frozen
class BoundKey:
    """A grouping expression with ordinals and aliases resolved, and where it stands."""

    expression: s.Expression
    item: int | None = None
    element: int | None = None


def keys_of(select: s.Select, scope: Scope) -> tuple[tuple[BoundKey, ...], tuple[tuple[int, ...], ...]]:
    """GROUP BY resolved as PostgreSQL does: numbers, then input columns, then aliases."""
    keys: list[BoundKey] = []
    sets: list[tuple[int, ...]] = [()]
    has_sets = False
    for place, element in enumerate(select.group_by):
        if isinstance(element, s.GroupingSets):
            has_sets = True
            places = [
                tuple(_place(keys, _key(expression, place, select, scope)) for expression in one)
                for one in element.sets
            ]
            sets = [(*before, *added) for before in sets for added in places]
        else:
            at = _place(keys, _key(element, place, select, scope))
            sets = [(*before, at) for before in sets]
    return tuple(keys), tuple(sets) if has_sets else ()


def _key(element: s.Expression, place: int, select: s.Select, scope: Scope) -> BoundKey:
    match element:
        case s.Constant(kind="number", text=text):
            return _numbered(select, text)
        case s.Name(parts=(name,)) if scope.find((name,)) is None:
            named = [at for at, item in enumerate(select.items) if (item.alias or column_name(item.expression)) == name]
            if named:
                return _item_key(select, named[0])
    return BoundKey(element, element=place)


def distinct_keys(select: s.Select) -> tuple[tuple[BoundKey, ...], tuple[tuple[int, ...], ...]]:
    """SELECT DISTINCT groups by its whole list."""
    if any(isinstance(item.expression, s.Star) for item in select.items):
        raise NotAllowed(
            "SELECT DISTINCT * would return protected rows", hint="List the columns whose values you need instead of *."
        )
    keys: list[BoundKey] = []
    for place, item in enumerate(select.items):
        _place(keys, BoundKey(item.expression, item=place))
    return tuple(keys), ()


def output_of(written: s.Expression, select: s.Select) -> s.Expression:
    """Resolve a key of ORDER BY or DISTINCT ON: a number or a name of the select list comes first."""
    match written:
        case s.Constant(kind="number", text=text):
            return _numbered(select, text).expression
        case s.Name(parts=(name,)):
            named = (item.expression for item in select.items if item.alias == name)
            return next(named, written)
    return written


def _place(keys: list[BoundKey], key: BoundKey) -> int:
    """Return where a key stands in the list; equal ones are one."""
    for at, known in enumerate(keys):
        if unnumbered(known.expression) == unnumbered(key.expression):
            return at
    keys.append(key)
    return len(keys) - 1


def _numbered(select: s.Select, text: str) -> BoundKey:
    """The item that a number in GROUP BY or ORDER BY means, if it is one: 1.0 and 1e1 are none."""
    if not text.isdecimal() or len(text) > _MOST_DIGITS:
        raise NotSupported(f"GROUP BY position {text[:_MOST_DIGITS]} is not in the select list")
    return _item_key(select, int(text) - 1)


_MOST_DIGITS = 10


def _item_key(select: s.Select, at: int) -> BoundKey:
    if not 0 <= at < len(select.items) or any(isinstance(item.expression, s.Star) for item in select.items[: at + 1]):
        raise NotSupported(f"GROUP BY position {at + 1} is not in the select list")
    return BoundKey(select.items[at].expression, item=at)
