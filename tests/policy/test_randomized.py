"""Randomized columns in the rules file: what fits, what does not, and what check advises."""

import pytest

from rules.catalog import Table, TableName, TypeName
from rules.policy.check import check_randomized
from rules.policy.finding import Severity
from rules.policy.load import load_policy
from rules.policy.rule_values import Randomized
from rules.policy.rules_yaml import RulesError
from tests.policy.test_check import RULES, STATUS, TEXT, column

BOOL = TypeName("boolean", "bool")
SKETCH = "by: sketch, epsilon: 1, hashes: 4, width: 9, index: n, key: aa"
TABLE = Table(TableName("public", "t"), "table", (column("n", TypeName("smallint", "int2")), column("t", TEXT)))


def rules(randomized: str) -> Randomized:
    """As it is read from a file."""
    text = RULES.replace("city: {values: [Berlin]}", f"city: {{randomized: {{{randomized}}}}}")
    found = load_policy(text, "rules.yaml", {}).tables["customers"].columns["city"].randomized
    assert found is not None
    return found


@pytest.mark.parametrize(
    "written",
    [
        "by: k-ary, epsilon: 1",
        "by: k-ary, epsilon: 1, values: [a]",
        "by: unary, epsilon: 1",
        "by: bit, epsilon: 1, values: [a, b]",
        "by: mean, epsilon: 1, lower: 0",
        "by: mean, epsilon: 1, lower: 3, upper: 3",
        "by: k-ary, epsilon: 0, values: [a, b]",
        "by: k-ary, epsilon: 31, values: [a, b]",
        "by: k-ary, values: [a, b]",
        "by: k-ary, epsilon: 1, values: [a, a]",
        "by: sketch, epsilon: 1",
        "by: sketch, epsilon: 1, hashes: 4, width: 9, index: n",
        "by: sketch, epsilon: 1, hashes: 4, width: 9, index: n, key: 0g",
        "by: sketch, epsilon: 1, hashes: 0, width: 9, index: n, key: aa",
        "by: sketch, epsilon: 1, hashes: 4, width: 9, index: n, key: aa, values: [a, b]",
        "by: bit, epsilon: 1, width: 9",
    ],
)
def test_a_law_that_cannot_be_is_an_error(written: str) -> None:
    with pytest.raises(RulesError, match="randomized"):
        rules(written)


def test_values_and_bounds_stand_inside() -> None:
    text = RULES.replace("{values: [Berlin]}", "{values: [a, b], randomized: {by: k-ary, epsilon: 1, values: [a, b]}}")
    with pytest.raises(RulesError, match="belong inside randomized"):
        load_policy(text, "rules.yaml", {})


@pytest.mark.parametrize(
    ("written", "kind", "complaint"),
    [
        ("by: k-ary, epsilon: 1, values: [a, b, c]", TEXT, ""),
        ("by: k-ary, epsilon: 1, values: [open, paid]", STATUS, ""),
        ("by: k-ary, epsilon: 1, values: [open, closed]", STATUS, "not a label"),
        ("by: k-ary, epsilon: 1, values: [a, b]", BOOL, "not boolean"),
        ("by: bit, epsilon: 1", BOOL, ""),
        ("by: bit, epsilon: 1", TEXT, "are boolean, not text"),
        ("by: mean, epsilon: 1, lower: 0, upper: 9", BOOL, ""),
        ("by: unary, epsilon: 1, values: [a, b, c]", TypeName("bit(3)", "bit", 3), ""),
        ("by: unary, epsilon: 1, values: [a, b, c]", TypeName("bit(4)", "bit", 4), "are of type bit(3)"),
        ("by: unary, epsilon: 1, values: [a, b, c]", TypeName("bit varying", "varbit"), "are of type bit(3)"),
        (SKETCH, TypeName("bit(9)", "bit", 9), ""),
        (SKETCH, TypeName("bit(8)", "bit", 8), "is of type bit(9)"),
        (SKETCH, TEXT, "is of type bit(9)"),
        (SKETCH.replace("index: n", "index: m"), TypeName("bit(9)", "bit", 9), 'has no column "m"'),
        (SKETCH.replace("index: n", "index: t"), TypeName("bit(9)", "bit", 9), "smallint or integer, not text"),
    ],
)
def test_a_column_holds_its_reports_or_it_is_an_error(written: str, kind: TypeName, complaint: str) -> None:
    found = [*check_randomized("here", column("x", kind), TABLE, rules(written))]
    errors = [finding for finding in found if finding.severity is Severity.ERROR]

    assert bool(errors) == bool(complaint)
    assert not complaint or complaint in errors[0].message
    assert any("noisegate.estimate(x, " in finding.message for finding in found)


def test_the_kind_of_report_with_less_error_is_advised() -> None:
    many = ", ".join(f"v{number}" for number in range(40))
    kary, unary = (
        [finding.message for finding in check_randomized("here", column("x", kind), TABLE, rules(written))]
        for written, kind in (
            (f"by: k-ary, epsilon: 1, values: [{many}]", TEXT),
            ("by: unary, epsilon: 1, values: [a, b, c]", TypeName("bit(3)", "bit", 3)),
        )
    )
    assert any("reports by unary would have less error" in text for text in kary)
    assert any("reports by k-ary would have less error" in text for text in unary)


def test_a_column_without_reports_has_no_law() -> None:
    assert load_policy(RULES, "rules.yaml", {}).tables["customers"].columns["city"].randomized is None
