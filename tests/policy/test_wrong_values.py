"""Whatever stands in the place of whatever in a rules file: it is accepted, or told of in words for DBAs."""

import copy
import re
from collections.abc import Iterator

import pytest
import yaml

from rules.policy.load import load_policy
from rules.policy.rules_yaml import RulesError

VERIFIER = (
    "SCRAM-SHA-256$4096:bm9pc2VnYXRlLXNhbHQtMQ=="
    "$Fx0st/XWuNDfeIQDWXDi1oBnoCVqttNumXyclzzuFCo=:yn7C40SXBTx0F1cq5nA+hSJiJWhbk0thlHnYhZfdRhE="
)
RULES = f"""
database: host=x
public_reader: host=x user=y
unit: people.id
tables:
  people:
    unit: id
    rows_per_unit: 3
    sum_per_unit: auto
    columns:
      a: {{lower: 1, upper: 9}}
      t: {{values: [x, y], other: true, nullable: false}}
      h: {{hidden: true}}
      r: {{randomized: {{by: k-ary, epsilon: 1, values: [x, y]}}}}
      m: {{randomized: {{by: mean, epsilon: 1, lower: 0, upper: 3}}}}
      s: {{bounds: auto}}
  places: {{public: true, because: nobody lives there}}
  seen: {{view: true}}
  far: {{unit: id, foreign: trusted}}
budget: {{epsilon: 10, delta: 1e-6, per: month, time_zone: UTC}}
defaults: {{epsilon: 1, max_epsilon: 2, min_epsilon: 0.1, delta: 1e-9}}
analysts:
  ada: {{password: "{VERIFIER}", role: team, epsilon: 1, delta: 1e-8, previews: empty, valid_until: 2030-01-01}}
roles:
  team: {{epsilon: 5, delta: 1e-8, per_analyst: 1, previews: refuse}}
operators:
  op: {{password: "{VERIFIER}"}}
logins: {{auth_query: {{query: select $1}}}}
group_size: 1
noise: laplace
min_units: 5
groups_limit: 100
fresh_for: 1 day
choice_for: 30 days
previews: refuse
engine_settings: {{work_mem: 64MB}}
pad_to: 1 s
synopses:
  rows: {{epsilon: 1, refresh: day, analysts: [ada], tables: {{people: [a, t, m]}}, marginals: {{people: [[a, t, m]]}}}}
  cube: {{epsilon: 1, cube: [t], measures: [count], orders: [1], table: people}}
"""
WRONG = (
    *("null", '""', "0", "-1", "1.5", "x", "true", "[]", "{}", "[1]", "{k: 1}", "1e400", "1e-400", "nan", "inf"),
    *("2024-02-30", "99999-01-01", "[a, a]", f'"{"a" * 300}"', '"\\0"', "[null]", "[[]]", "[{}]", "auto up to 0"),
    *("-1 day", "99999999 days", "1e999 s", "5 parsecs", "Europe", "../etc", "[a, b, c, d, e, f, g, h, i, j, k, l, m]"),
    *("[[a, b, c, d]]", "[[a]]", "[a by 0]", "[count(x)]", "[9]", "9" * 5000, "[1, a, true]", '"${NOBODY_HAS_SET_IT}"'),
)
# Python's own words, and those of its libraries.
_INTERNAL = re.compile(r"Decimal|Fraction|None|Input|Tuple|List|Dict|[Ii]nstance|validat|value error|<|Errno|__|\\x")
_SHOWN = re.compile(r'^".*" is not a value of|"[^"]*"', re.DOTALL)  # what the file says itself


def _places(tree: object, path: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    if path:
        yield path
    if isinstance(tree, dict):
        for key, value in tree.items():
            yield from _places(value, (*path, key))


TREE = yaml.safe_load(RULES)
PLACES = tuple(_places(TREE))
PARTS = 8  # of the values: each place gets one of them


def test_the_rules_as_they_are_have_no_mistake() -> None:
    load_policy(RULES, "rules.yaml", {})


@pytest.mark.parametrize("number", range(len(PLACES)), ids=[".".join(path) for path in PLACES])
def test_a_wrong_value_is_told_of_in_plain_words(number: int) -> None:
    for wrong in WRONG[number % PARTS :: PARTS]:
        _check([PLACES[number]], wrong)


@pytest.mark.parametrize("wrong", WRONG, ids=range(len(WRONG)))
def test_a_value_that_is_wrong_everywhere_is_told_of_in_plain_words(wrong: str) -> None:
    _check([path for path in PLACES if not any(other[: len(path)] == path != other for other in PLACES)], wrong)


def _check(paths: list[tuple[str, ...]], wrong: str) -> None:
    tree = copy.deepcopy(TREE)
    for path in paths:
        around = tree
        for key in path[:-1]:
            around = around[key]
        around[path[-1]] = "WRONG"
    try:
        load_policy(yaml.safe_dump(tree).replace("WRONG", wrong), "rules.yaml", {})
    except RulesError as error:
        for problem in error.problems:
            assert not _INTERNAL.search(_SHOWN.sub("", problem.message)), f"{wrong}: {problem}"


NO_YAML = ("a: " + "[" * 3000, "a: " + "{a: " * 3000, "a: &a [*a]", "a: 1\n---\nb: 2", "a: {", "\0")


@pytest.mark.parametrize("text", NO_YAML, ids=range(len(NO_YAML)))
def test_what_is_no_yaml_is_told_of_too(text: str) -> None:
    with pytest.raises(RulesError) as caught:
        load_policy(text, "rules.yaml", {})
    assert not _INTERNAL.search(str(caught.value))
