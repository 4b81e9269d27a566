"""The syntax of statements that differ in their constants alone: read once, and filled with those of each."""

from collections.abc import Mapping
from dataclasses import dataclass

from rules.sql import syntax as s


@dataclass(frozen=True, slots=True)
class Template:
    """A query with stand-ins for its constants, and its nodes that hold any of them, by identity."""

    query: s.Query
    holding: frozenset[int]

    @classmethod
    def of(cls, query: s.Query) -> "Template":
        holding: set[int] = set()
        _note(query, holding)
        return cls(query, frozenset(holding))

    def filled(self, constants: Mapping[s.Constant, s.Constant]) -> s.Query:
        """The query with each constant in place of what stands for it."""
        made = self._filled(self.query, constants)
        assert isinstance(made, s.Query)
        return made

    def _filled(self, part: object, constants: Mapping[s.Constant, s.Constant]) -> object:
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
