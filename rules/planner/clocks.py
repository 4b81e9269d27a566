"""Statements that read the clock: what is planned of them is good for one statement only."""

from rules.sql.grammar import Node, items, strings, walk

_CLOCKS = frozenset(("now", "transaction_timestamp", "statement_timestamp", "clock_timestamp"))


def reads_clock(query: Node) -> bool:
    """Whether the moment of the statement stands anywhere in it."""
    return any(map(_is_clock, walk(query)))


def _is_clock(node: Node) -> bool:
    body = node.get("FuncCall")
    if not isinstance(body, dict):
        return "SQLValueFunction" in node
    function = strings(body.get("funcname"))[-1]
    return function in _CLOCKS or (function == "age" and len(items(body, "args")) == 1)
