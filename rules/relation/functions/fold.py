"""What is computed from constants alone is a constant, so that it can bound a column as a written one does."""

from rules.relation import domain, value
from rules.relation.expression import Apply, Constant, Operand, ids_in
from rules.relation.functions.guard import Setting


def folded(given: Operand, setting: Setting) -> Operand:
    """date_trunc('month', timestamp '2025-01-15') as timestamp '2025-01-01'; what reads a column as it is."""
    if not isinstance(given, Apply) or given.nullable or given.type.kind in ("float", "other") or ids_in(given):
        return given
    items = domain.items_of(given.domain, 1)
    shown = value.text_of(items[0], given.type, setting.time_zone) if items else None
    return given if not items or shown is None else Constant(given.type, shown, items[0])
