"""Error bars in PostgreSQL's tree: noisegate.margin, low and high around an expression of a block's aggregates.

What the bar is computed from are replicates (`noise.replicates`): arrays beside the released columns, over which the
analyst's own expression is computed again. Its quantiles are the bar.
"""

from collections.abc import Iterator, Sequence
from decimal import Decimal
from typing import Final

from rules.mechanisms.release_plan import Bar, BarEnd
from rules.planner.find_blocks import ABOVE, Leaves, is_aggregate, replace_leaves
from rules.refusal import NotSupported
from rules.release.replicates import share_below
from rules.sql.grammar import parse
from rules.sql.tree import Json, Node, holders, items, kind, strings, walk

BARS: Final[tuple[BarEnd, ...]] = ("margin", "low", "high")
REPLICATE: Final = "_ngr"  # the sub-select whose rows are the replicates of one group

_GUARDS: Final = {"sqrt": "greatest($1, 0)", "ln": "NULLIF(greatest($1, 0), 0)"}  # to what is defined
_HINT: Final = "Apply it to an aggregate in the same SELECT, as in noisegate.margin(avg(x))."


def bar_name(node: Json) -> BarEnd | None:
    """Return which error bar a call asks for."""
    body = node.get("FuncCall") if isinstance(node, dict) else None
    if not isinstance(body, dict):
        return None
    match strings(body.get("funcname")):
        case ("noisegate", called) | (called,):
            return next((bar for bar in BARS if bar == called), None)
    return None


def argument_of(bar: Json) -> Json:
    (argument,) = items(kind(bar)[1], "args")
    return argument


def barred_aggregates(body: Node, leaves: Leaves) -> tuple[Bar, ...]:
    """The aggregates of a block, by number, that stand in error bars. A bar that cannot be computed is refused."""
    bars: dict[Bar, None] = {}
    for clause in ABOVE:
        for bar in _bars_in(body.get(clause)):
            _check(bar, leaves)
            end = bar_name(bar) if is_aggregate(argument_of(bar)) else None
            bars.update(dict.fromkeys(Bar(number, end) for number in aggregates_in(argument_of(bar), leaves)))
    return tuple(bars)


def aggregates_in(argument: Json, leaves: Leaves) -> tuple[int, ...]:
    """The aggregates of an expression, by number."""
    places: dict[int, None] = {}

    def note(node: Json) -> Json:
        if (number := leaves.find_aggregate(node)) is not None:
            places[number] = None
        return node

    replace_leaves(argument, leaves, lambda number: leaves.keys[number], note)
    return tuple(places)


def check_none_left(tree: Node) -> None:
    """On the twin what is left would be a bar of an exact number, and say that there is no noise."""
    if (left := next(filter(bar_name, holders(tree, "FuncCall")), None)) is not None:
        raise _stranded(left)


def end_of_bar(bar: Json, released: Json, end: Json) -> Json:
    """The end of a bar around one output, where it is known: of a margin the replicate that it reaches to."""
    return _filled("greatest($1 - $2, $2 - $1)", [end, released]) if bar_name(bar) == "margin" else end


def error_bar(bar: Json, released: Json, replicated: Json, arrays: dict[str, Json], level: Decimal) -> Json:
    """The sub-select that computes a bar from an expression over released columns and over replicates.

    `arrays` are the columns of replicates by the name that each has among the rows of REPLICATE.
    """
    name = bar_name(bar)
    assert name is not None
    share = share_below(name, level)
    distance = "greatest($1 - $2, $2 - $1)" if name == "margin" else "$1"
    holes = ", ".join(f"${number}" for number in range(3, len(arrays) + 3))
    columns = ", ".join(arrays)
    text = f"(SELECT percentile_disc({share:f}) WITHIN GROUP (ORDER BY {distance}) FROM unnest({holes}) "
    return _filled(
        f"{text}AS {REPLICATE}({columns}))", [*map(_never_failing, (replicated, released)), *arrays.values()]
    )


def _bars_in(node: Json) -> Iterator[Json]:
    """The bars of one SELECT, outermost only; those of subqueries belong to their own blocks."""
    if isinstance(node, list):
        for child in node:
            yield from _bars_in(child)
    elif isinstance(node, dict):
        if bar_name(node) is not None:
            yield node
        elif kind(node)[0] != "SelectStmt":
            for child in node.values():
                yield from _bars_in(child)


def _check(bar: Json, leaves: Leaves) -> None:
    """Return whether what is around the aggregates of a bar can be computed for each replicate by itself."""
    argument = argument_of(bar)
    parts = list(walk(replace_leaves(argument, leaves, lambda number: leaves.keys[number], lambda aggregate: None)))
    if any("SelectStmt" in part for part in parts):
        raise NotSupported(f'"noisegate.{bar_name(bar)}" of a subquery is not supported', hint=_HINT)
    if any(part.get("over") for part in parts):
        raise NotSupported(f'"noisegate.{bar_name(bar)}" of a window function is not supported', hint=_HINT)
    if not aggregates_in(argument, leaves) or any(map(bar_name, parts)):
        raise _stranded(bar)


def _stranded(bar: Json) -> NotSupported:
    return NotSupported(f'"noisegate.{bar_name(bar)}" must be applied to an aggregate', hint=_HINT)


def _never_failing(node: Json) -> Json:
    """A replicate may be zero or less where the released number is not: then it is left out."""
    if isinstance(node, list):
        return [_never_failing(child) for child in node]
    if not isinstance(node, dict):
        return node
    name, body = kind(node)
    match name, strings(body.get("name"))[-1:], strings(body.get("funcname"))[-1:]:
        case "A_Expr", ("/" | "%",), _ if body.get("kind") == "AEXPR_OP":
            divided, divisor = _never_failing(body.get("lexpr")), _never_failing(body.get("rexpr"))
            return {"A_Expr": body | {"lexpr": divided, "rexpr": _filled("NULLIF($1, 0)", [divisor])}}
        case "FuncCall", _, (called,) if called in _GUARDS:
            arguments: Json = [_filled(_GUARDS[called], [_never_failing(argument)]) for argument in items(body, "args")]
            return {"FuncCall": body | {"args": arguments}}
    return {name: _never_failing(child) for name, child in node.items()}


def _filled(text: str, parts: Sequence[Json]) -> Json:
    """An expression with trees in place of its $1, $2 …"""
    (piece,) = parse(f"SELECT {text}")
    (target,) = items(kind(piece.tree)[1], "targetList")

    def put(node: Json) -> Json:
        match node:
            case {"ParamRef": dict() as body}:
                number = body.get("number")
                assert isinstance(number, int)
                return parts[number - 1]
            case list():
                return [put(child) for child in node]
            case dict():
                return {name: put(child) for name, child in node.items()}
        return node

    return put(kind(target)[1].get("val"))
