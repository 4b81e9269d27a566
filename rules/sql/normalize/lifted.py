"""Constants and names, lifted out of a statement: statements of one structure have one text, which sqlglot reads once.

A dashboard asks the same with other filters, and of other columns. A stand-in takes the place of each constant, of the
same kind, and of each name, equal names alike, and tells its number; the syntax of the text is then filled with the
names and the constants themselves. All names are quoted, so that neither parser looks at what is in them.
"""

import re
from typing import Final

from rules.sql.syntax import Constant
from rules.sql.tree import Json, Node, kind

_FIRST: Final = 10**12  # beyond all numbers that are not lifted
_DECIMAL = re.compile(r"-?[0-9]+(\.[0-9]+)?([eE][+-]?[0-9]+)?")


class Lifted:
    """The constants of one statement by their stand-ins, and the stand-ins of its names."""

    def __init__(self) -> None:
        self.constants: dict[Constant, Constant] = {}
        self.names: dict[str, str] = {}

    def constant(self, constant: Node) -> Node:
        """The stand-in of a constant in its one spelling; the constant itself where the syntax may depend on it."""
        match constant:
            case {"A_Const": {"sval": dict() as value}}:
                return self._string(str(value.get("sval", "")))
            case {"A_Const": {"ival": dict() as value}}:
                return self._number(str(value.get("ival", 0)))
            case {"A_Const": {"fval": {"fval": str(number)}}} if _DECIMAL.fullmatch(number):
                return self._number(number)
        return constant

    def name(self, name: Json) -> str:
        """The stand-in of a name."""
        assert isinstance(name, str), "a name is a text"
        return self.names.setdefault(name, f"${len(self.names)}")

    def parts(self, nodes: list[Json]) -> list[Json]:
        """The stand-ins of a list of names, in which * stays what it is."""
        return [node if (body := kind(node))[0] != "String" else self._part(body[1]) for node in nodes]

    def _part(self, body: Node) -> Node:
        return {"String": {"sval": self.name(body.get("sval", ""))}}

    def _string(self, text: str) -> Node:
        name = str(len(self.constants))
        self.constants[Constant("string", name)] = Constant("string", text)
        return {"A_Const": {"sval": {"sval": name}}}

    def _number(self, text: str) -> Node:
        name = str(_FIRST + len(self.constants))
        self.constants[Constant("number", name)] = Constant("number", text)
        return {"A_Const": {"fval": {"fval": name}}}
