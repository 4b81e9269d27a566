"""The keys of a block in the statement around it: as they were written, and by the names that subqueries use."""

from rules.planner.find_blocks import ABOVE, Leaves
from rules.sql.tree import Json, Node, kind, strings, walk


def as_written(column: Json, key: Json) -> Json:
    """A key that is cast to a length or a precision has it: the column of its texts has the type alone."""
    written = kind(key)[1].get("typeName") if kind(key)[0] == "TypeCast" else None
    if not isinstance(written, dict) or not written.get("typmods"):
        return column
    return {"TypeCast": {"arg": column, "typeName": written, "location": -1}}


def named_below(body: Node, leaves: Leaves) -> dict[str, int]:
    """The keys that a subquery may mean by a name without a table: PostgreSQL looks for it in the subquery first."""
    subqueries = [part for clause in ABOVE for part in walk(body.get(clause)) if kind(part)[0] == "SelectStmt"]
    references = [kind(part)[1] for each in subqueries for part in walk(each) if kind(part)[0] == "ColumnRef"]
    bare = {fields[0] for each in references if len(fields := strings(each.get("fields"))) == 1}
    named = {
        strings(kind(key)[1].get("fields"))[-1]: number
        for number, key in enumerate(leaves.keys)
        if kind(key)[0] == "ColumnRef"
    }
    return {name: number for name, number in named.items() if name in bare and name != f"k{number + 1}"}
