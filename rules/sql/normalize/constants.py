"""Constants, lifted out of a statement: statements that differ in nothing else have one text, which sqlglot reads once.

A dashboard asks the same with other filters. A stand-in of the same kind takes the place of each constant and tells its
number; the syntax of the text is then filled with the constants themselves.
"""

import re
from typing import Final

from rules.sql.syntax import Constant
from rules.sql.tree import Node

_FIRST: Final = 10**12  # beyond all numbers that are not lifted
_DECIMAL = re.compile(r"-?[0-9]+(\.[0-9]+)?([eE][+-]?[0-9]+)?")  # 0x1F and 1_000 are left to the parser


class LiftedConstants:
    """The constants of one statement by their stand-ins."""

    def __init__(self) -> None:
        self.by_stand_in: dict[Constant, Constant] = {}

    def lift(self, constant: Node) -> Node:
        """The stand-in of a constant in its one spelling; the constant itself where the syntax may depend on it."""
        match constant:
            case {"A_Const": {"sval": dict() as value}}:
                return self._string(str(value.get("sval", "")))
            case {"A_Const": {"ival": dict() as value}}:
                return self._number(str(value.get("ival", 0)))
            case {"A_Const": {"fval": {"fval": str(number)}}} if _DECIMAL.fullmatch(number):
                return self._number(number)
        return constant

    def _string(self, text: str) -> Node:
        name = str(len(self.by_stand_in))
        self.by_stand_in[Constant("string", name)] = Constant("string", text)
        return {"A_Const": {"sval": {"sval": name}}}

    def _number(self, text: str) -> Node:
        name = str(_FIRST + len(self.by_stand_in))
        self.by_stand_in[Constant("number", name)] = Constant("number", text)
        return {"A_Const": {"fval": {"fval": name}}}
