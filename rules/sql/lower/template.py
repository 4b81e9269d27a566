"""The syntax of statements of one structure: read once, and filled with the names and constants of each."""

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any, Final

from rules.frozen import frozen, replace
from rules.sql import syntax as s
from rules.sql.normalize import RESERVED

Constants = Mapping[s.Constant, s.Constant]

_NAMES: Final[dict[type[Any], frozenset[str]]] = {
    s.Name: frozenset(["parts"]),
    s.Star: frozenset(["qualifier"]),
    s.Call: frozenset(["name", "schema"]),
    s.TableSource: frozenset(["name", "schema", "alias", "columns"]),
    s.QuerySource: frozenset(["alias", "columns"]),
    s.FunctionSource: frozenset(["alias", "columns"]),
    s.Join: frozenset(["using"]),
    s.Item: frozenset(["alias"]),
    s.Cte: frozenset(["name", "columns"]),
}  # the fields that hold names
_FIELDS: Final = {kind: [(name, name in _NAMES.get(kind, ())) for name in names] for kind, names in s.FIELDS.items()}


def named(query: s.Query, names: Sequence[str], constants: Constants = MappingProxyType({})) -> s.Query:
    """The query with each name, and each of these constants, in place of what stands for it."""
    made: s.Query = _named(query, {f"${number}": name for number, name in enumerate(names)}, constants)
    return made


def _named(part: Any, names: Mapping[str, str], constants: Constants) -> Any:
    if isinstance(part, tuple):
        return tuple([_named(child, names, constants) for child in part])
    kind = type(part)
    fields = _FIELDS.get(kind)
    if fields is None:
        return part
    if kind is s.Constant:
        return constants.get(part, part)
    if kind is s.Call and part.schema == RESERVED:  # an operation, whose name is ours
        return replace(part, arguments=tuple([_named(argument, names, constants) for argument in part.arguments]))
    return kind(
        *[
            _name(getattr(part, name), names) if is_name else _named(getattr(part, name), names, constants)
            for name, is_name in fields
        ]
    )


def _name(written: object, names: Mapping[str, str]) -> object:
    """A name, or several; what has no stand-in is a word of ours."""
    if isinstance(written, tuple):
        return tuple([names.get(name, name) for name in written])
    return names.get(written, written) if isinstance(written, str) else written


@frozen
class Template:
    """A query with stand-ins for its constants, and its nodes that hold any of them, by identity."""

    query: s.Query
    holding: frozenset[int]

    @classmethod
    def of(cls, query: s.Query) -> "Template":
        holding: set[int] = set()
        _note(query, holding)
        return cls(query, frozenset(holding))

    def filled(self, constants: Constants) -> s.Query:
        """The query with each constant in place of what stands for it."""
        made = self._filled(self.query, constants)
        assert isinstance(made, s.Query)
        return made

    def _filled(self, part: object, constants: Constants) -> object:
        if isinstance(part, s.Constant):
            return constants.get(part, part)
        if id(part) not in self.holding:
            return part
        if isinstance(part, tuple):
            return tuple([self._filled(child, constants) for child in part])
        kind = type(part)
        return kind(*[self._filled(getattr(part, name), constants) for name in s.FIELDS[kind]])


def _note(part: object, holding: set[int]) -> bool:
    """Note the nodes that hold a constant, and return whether this one does."""
    if isinstance(part, s.Constant):
        return True
    names = s.FIELDS.get(type(part), ())
    parts = part if isinstance(part, tuple) else [getattr(part, name) for name in names]
    holds = True in [_note(child, holding) for child in parts]  # all of them are to be noted
    if holds:
        holding.add(id(part))
    return holds
