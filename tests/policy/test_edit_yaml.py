"""A key of a rules file is changed as text: it says what was meant, and every other line stays as it was written."""

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from rules.policy.rules_yaml import CannotEdit, put, remove

NAMES = ["ada", "bob", "o'hara", 'a "b"', "12", "yes", "zoë"]
names = st.sampled_from(NAMES)
VALUES = ["5", "{epsilon: 5}", "[a, b]", '"x # y"', "2027-01-31", '{password: "${V}", epsilon: 1}']


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '\\"') + '"'


@st.composite
def files(draw: st.DrawFn) -> tuple[str, list[str]]:
    """A file with analysts in one of the layouts of people, and comments wherever they may stand."""
    chosen = draw(st.lists(names, min_size=2, max_size=4, unique=True))
    comment = st.sampled_from(["", "  # why", "   #"])
    lines = ["# head", "unit: customers.id" + draw(comment), "analysts:" + draw(comment)]
    if draw(st.booleans()):
        inner = ", ".join(f"{_quoted(name)}: {draw(st.sampled_from(VALUES))}" for name in chosen)
        lines[-1] = f"analysts: {{{inner}}}{draw(comment)}"
    else:
        indent = " " * draw(st.integers(1, 4))
        for name in chosen:
            lines += draw(st.sampled_from([[], [f"{indent}# {len(lines)}"], [""]]))
            if draw(st.booleans()):
                lines.append(f"{indent}{_quoted(name)}: {draw(st.sampled_from(VALUES))}{draw(comment)}")
            else:
                lines += [f"{indent}{_quoted(name)}:", f"{indent}  epsilon: 1{draw(comment)}", f"{indent}  delta: 0"]
    tail = draw(st.sampled_from([[], ["# tail"], ["budget: {epsilon: 1}  # all", "# end"]]))
    return "\n".join([*lines, *tail]) + draw(st.sampled_from(["\n", ""])), chosen


def meaning(text: str) -> dict[str, dict[str, object]]:
    found: dict[str, dict[str, object]] = yaml.load(text, Loader=yaml.BaseLoader)
    return found


@given(file=files(), name=names, value=st.sampled_from(VALUES))
def test_a_key_that_is_put_says_the_value_and_nothing_else_changes(
    file: tuple[str, list[str]], name: str, value: str
) -> None:
    text, _ = file
    made = put(text, ("analysts", name), value)

    expected = meaning(text)
    expected["analysts"][name] = yaml.load(value, Loader=yaml.BaseLoader)
    assert meaning(made) == expected
    changed = set(text.splitlines()) - set(made.splitlines())
    assert all("# head" not in line and "# tail" not in line and not line.lstrip().startswith("#") for line in changed)


@given(file=files(), data=st.data())
def test_a_key_that_is_removed_is_gone_and_comments_stay(file: tuple[str, list[str]], data: st.DataObject) -> None:
    text, chosen = file
    name = data.draw(st.sampled_from(chosen))
    made = remove(text, ("analysts", name))

    expected = meaning(text)
    del expected["analysts"][name]
    assert meaning(made) == expected
    comments = [line for line in text.splitlines() if line.lstrip().startswith("#")]
    assert [line for line in made.splitlines() if line.lstrip().startswith("#")] == comments


def test_what_cannot_be_changed_line_by_line_is_refused() -> None:
    with pytest.raises(CannotEdit, match="by hand"):
        put("analysts:\n  ada:\n    note: |\n      a\n      b\n", ("analysts", "bob"), "{}")
    with pytest.raises(CannotEdit, match="there is no analysts"):
        put("unit: row\n", ("analysts", "bob"), "{}")
