"""Numbers that noise could have made are NULL in the outermost select list, or their rows are left out.

They are put there last: HAVING, ORDER BY, LIMIT and whatever is computed see the numbers as they were released. So the
statement becomes a sub-select, around which stands nothing but its columns. Which numbers are marked is decided from
released numbers (`rules.release.marks`), and comes as one more array for each column.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from rules.planner.plan import Request
from rules.release.formula import Result
from rules.release.marks import Mark
from rules.sql.grammar import Json, Node, holders, items, kind, parse
from rules.sql.selects import column_name

_WHOLE = "_ngm"  # the statement inside
_UNMARKED = "noisegate.mark: nothing is marked: the outermost SELECT does not group protected rows itself, in one set"


@dataclass(frozen=True, slots=True)
class Marked:
    """The items of a select list that are marked, each with the number of its array."""

    holes: Mapping[int, int]
    by_rows: bool  # rows are left out of which all such items are marked


def marks_of(results: Sequence[Result], top: Node, request: Request) -> dict[int, Mark]:
    """The columns that are marked, by their place in the outermost select list.

    DISTINCT would tell rows apart by their marks, so there is none beside it.
    """
    if request.mark == "off" or request.explains or "distinctClause" in top:
        return {}
    if holders(top.get("targetList"), "A_Star"):
        return {}
    if (
        len({result.block for result in results if result.item is not None}) > 1
    ):  # each grouping set is an answer of its own
        return {}
    known = ((result.item, result.formula, result.block) for result in results)
    return {
        item: Mark(block, formula, is_alone=request.mark == "cell", by_rows=request.mark == "rows")
        for item, formula, block in known
        if item is not None and formula is not None
    }


def unmarked(marks: Mapping[int, Mark], request: Request) -> tuple[str, ...]:
    """Return what an analyst who asks for marks should know where there are none."""
    return () if marks or request.mark == "off" or request.explains else (_UNMARKED,)


def put_marks(body: Node, marked: Marked, source: str) -> None:
    """Put a SELECT, in place, into one that has its columns, NULL where they are marked.

    NULLIF keeps the type of its first operand, and that type's precision.
    """
    targets = items(body, "targetList")
    names = [str(kind(target)[1].get("name") or column_name(kind(target)[1].get("val"))) for target in targets]
    marks = [f"x{item + 1}" for item in marked.holes]
    inside = dict(body)
    more: list[Json] = [{"ResTarget": {"name": mark, "val": _column(source, mark)}} for mark in marks]
    inside["targetList"] = [*targets, *more]
    columns = [f"c{place + 1}" for place in range(len(targets))]
    shown = ", ".join(
        f"NULLIF({column}, CASE WHEN x{place + 1} THEN {column} END)" if place in marked.holes else column
        for place, column in enumerate(columns)
    )
    where = f" WHERE NOT ({' AND '.join(marks)})" if marked.by_rows else ""
    (piece,) = parse(f"SELECT {shown} FROM (SELECT) AS {_WHOLE}({', '.join((*columns, *marks))}){where}")
    around = kind(piece.tree)[1]
    for target, name in zip(items(around, "targetList"), names, strict=True):
        kind(target)[1]["name"] = name
    (source_item,) = items(around, "fromClause")
    kind(source_item)[1]["subquery"] = {"SelectStmt": inside}
    body.clear()
    body.update(around)


def _column(table: str, name: str) -> Json:
    return {"ColumnRef": {"fields": [{"String": {"sval": table}}, {"String": {"sval": name}}], "location": -1}}
