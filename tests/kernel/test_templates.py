"""A template is an expression: it reads no rows, and no window but the one that the renderer writes."""

import pytest

from rules.kernel.templates import check_template, is_operand
from rules.refusal import Mismatch


@pytest.mark.parametrize(
    "template",
    [
        "(SELECT 1)", "{0} -- x", "{0}; x", "pg_sleep(1)", "now()", "random()", "current_setting({0})", "f({0})",
        "'{0}'", r"'\'", "{0.x}", "$1", "extract({0} from x)", "count(*) OVER ()", "sum({0}) OVER (ORDER BY {0})",
        '({0})::"x{1}"', '({0})::"public"."{1}"', "{0}{1}", "{0}text", "date{0}", "'x'{0}", "{0}'x'", "1{0}", "",
        "({0}]", "day", "({0} + day)", "extract(day from year)", "extract(day)", "date", "name", '"C"',
        '({0} = "default")', "({0} = unknown)", "({0} between by and {1})", "count(*) FILTER (WHERE last)",
        "({0}).name", "year.length({0})",
    ],
)  # fmt: skip
def test_what_is_no_expression_is_refused(template: str) -> None:
    with pytest.raises(Mismatch):
        check_template(template, is_call=True)


@pytest.mark.parametrize("count", [4_000, 60_000], ids=["words of a statement", "an array in one word"])
def test_a_list_is_as_long_as_a_statement_may_be(count: int) -> None:
    holes = ", ".join(f"{{{place}}}" for place in range(1, count))
    assert check_template(f"{{0}} IN ({holes})") == frozenset()


def test_aggregates_are_calls_and_no_expressions() -> None:
    assert check_template("sum({0}) FILTER (WHERE {1}){over}", is_call=True) == {"sum"}
    with pytest.raises(Mismatch):
        check_template("sum({0})")


@pytest.mark.parametrize(
    "template", ["{0}", "TRUE", "'x'", "({0} OR {1})", "coalesce({0}, (1))", "abs({0})", '"left"({0}, 1)']
)
def test_a_hole_a_constant_a_call_and_parentheses_are_one_operand(template: str) -> None:
    assert is_operand(template)


@pytest.mark.parametrize(
    "template",
    [
        "{0} OR {1}", "({0}) OR ({1})", "abs({0}) + abs({1})", "-{0}", "({0})::int8", "CASE WHEN {0} THEN {1} END",
        "or({0})", "or", "-", "[{0}]",
    ],
)  # fmt: skip
def test_all_else_is_none(template: str) -> None:
    assert not is_operand(template)
