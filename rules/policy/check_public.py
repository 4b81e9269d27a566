"""Whether a table that the rules call public may be: this word gives every row of it away."""

from collections.abc import Iterator

from rules.catalog import Catalog, Table
from rules.policy.exposure import Exposure
from rules.policy.finding import Finding, error, nearest, note, warning
from rules.policy.identifying import personal_columns
from rules.policy.model import Policy, TableRules, table_name

TRUSTED = "foreign: trusted says that all of them can always be read"


def exposure_of(policy: Policy, catalog: Catalog) -> Exposure:
    """What these rules protect, and what leads there."""
    names = {table_name(text): rules for text, rules in policy.tables.items()}
    return Exposure(
        catalog,
        protected=(name for name, rules in names.items() if not rules.public),
        public=(name for name, rules in names.items() if rules.public),
        unit_columns={name: rules.unit_step().column for name, rules in names.items() if rules.unit},
        hidden={
            name: frozenset(column for column, each in rules.columns.items() if each.hidden)
            for name, rules in names.items()
        },
    )


_SAY_WHY = 'give it a unit, leave it out, or say why it tells of nobody: public: {because: "…"}'


def check_public(path: str, table: Table, rules: TableRules, exposure: Exposure, catalog: Catalog) -> Iterator[Finding]:
    """Say what speaks against it, unless the rules say why it tells of nobody."""
    reasons = exposure.reasons(table.name)
    told = "; ".join(each.words for each in reasons[:3]) + (f"; and {len(reasons) - 3} more" if reasons[3:] else "")
    if any(each.same_rows for each in reasons):
        yield error(path, f"{told}: it cannot be public", "leave it out, or the other one")
    elif reasons and rules.because is None:
        yield error(path, told, _SAY_WHY)
    elif rules.because is not None:
        yield note(path, f'public, because: "{rules.because}" ({told or "nothing seems to speak against it"})')
    shown = [column for column in table.columns if not rules.hides(column)]
    if not reasons and rules.because is None and (personal := personal_columns(shown, table)):
        words = f"every row of it can be read, and {', '.join(personal[:4])} may be about people"
        yield warning(path, words, 'hide them, leave it out, or say why: public: {because: "…"}')
    for name in rules.columns:
        if table.find_column(name) is None:
            names = sorted(each.name for each in table.columns)
            yield error(f"{path}.columns.{name}", f"{table.name} has no such column", nearest(name, names))
    if table.kind in ("view", "materialized view"):
        yield note(path, f"a public {table.kind} can be read alone, and not together with protected tables")
    if table.row_security and not catalog.bypasses_row_security:
        yield warning(path, "row security hides some of its rows from us, and so from analysts")
    if table.foreign and rules.foreign is None:
        words = "it has rows on another server, so it can be read alone and not together with protected tables"
        yield warning(path, words, TRUSTED)
    for name in (column.name for column in table.columns if column.generated == "v"):
        words = f'"{name}" is computed when it is read, so it cannot be read together with protected tables'
        yield note(path, words, "make it STORED")
    yield note(path, "public: every row of it can be read")
