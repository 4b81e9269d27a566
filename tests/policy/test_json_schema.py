"""The JSON Schema takes every rules file of this repository, and not what the loader does not take."""

import re
from pathlib import Path
from typing import Any

import pytest

from rules.policy.json_schema import FIRST_LINE, rules_schema
from rules.policy.load import load_policy
from rules.policy.rules_yaml import RulesError, Source
from rules.policy.suggest import suggest_rules
from tests.planner import test_column_facts, test_views, tpch
from tests.policy import test_exposure
from tests.policy.test_check import CATALOG, CUSTOMERS, RULES
from tests.policy.test_load import VERIFIER
from tests.samples import music, rental, trading
from tests.support import shop
from tests.support.json_schema import problems

ROOT = Path(__file__).parents[2]
VARIABLES = {"NOISEGATE_DATABASE": "dbname=x", "ADA_VERIFIER": VERIFIER}
PAGES = [*ROOT.glob("docs/*.md"), ROOT / "README.md"]
BLOCKS = [
    block
    for page in PAGES
    for block in re.findall(r"```yaml\n(.*?)```", page.read_text(encoding="utf-8"), re.DOTALL)
    if block.startswith("database:")
]
FILES = {
    "demo": (ROOT / "proxy/demo/rules.yaml").read_text(encoding="utf-8"),
    "docker": (ROOT / "docker/rules/rules.yaml").read_text(encoding="utf-8"),
    "shop": shop.RULES,
    "check": RULES,
    "exposure": test_exposure.RULES.replace("NAME: public", 'x: {public: {because: "made up here"}}'),
    "views": test_views.RULES,
    "undeclared": test_column_facts.UNDECLARED + test_column_facts.REST,
    "rows": test_column_facts.EVERY_ROW + test_column_facts.REST,
    "suggested": suggest_rules(CATALOG, CUSTOMERS.name),
    **{f"page {number}": block for number, block in enumerate(BLOCKS)},
    **{module_type.__name__: module_type.RULES + test_column_facts.REST for module_type in (music, rental, trading)},
    "tpch": tpch.RULES,
}


def tree_of(text: str) -> Any:
    variables = dict.fromkeys(re.findall(r"\$\{(\w+)\}", text), "x")
    return Source(text, "rules.yaml", variables).tree


@pytest.mark.parametrize("name", FILES)
def test_every_rules_file_of_the_repository_is_taken(name: str) -> None:
    schema = rules_schema()

    assert problems(tree_of(FILES[name]), schema, schema) == []


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("budget:", "bugdet:"),
        ("unit: customer_id", "unti: customer_id"),
        ("rows_per_unit: 40", "rows_per_unit: many"),
        ("rows_per_unit: 40", "rows_per_unit: 0"),
        ("rows_per_unit: 40", "rows_per_unit: auto up to nothing"),
        ("products: public", "products: publik"),
        ("products: public", "products: {public: {because: no}}"),
        ("products: public", 'products: {public: {why: "made up here"}}'),
        ("email: hidden", "email: hiden"),
        ("{epsilon: 1000,", "{epsilon: 0,"),
        ("delta: 1e-6", "delta: 1"),
        ("delta: 1e-6}", "delta: 1e-6, per: year}"),
        ("unit: customers.id\n", "unit: customers.id\nfresh_for: long\n"),
        ("unit: customers.id\n", "unit: customers.id\nnoise: pink\n"),
        ("unit: customers.id\n", ""),
    ],
)
def test_what_the_loader_refuses_by_its_form_is_not_taken(old: str, new: str) -> None:
    assert old in shop.RULES
    text, schema = shop.RULES.replace(old, new, 1), rules_schema()

    with pytest.raises(RulesError):
        load_policy(text, "rules.yaml", VARIABLES)
    assert problems(tree_of(text), schema, schema)


@pytest.mark.parametrize(
    "line", ["fresh_for: 6 hours", "fresh_for: 0", "pad_to: full", "pad_to: 100 ms", "group_size: 4"]
)
def test_short_forms_are_taken(line: str) -> None:
    text, schema = shop.RULES.replace("unit: customers.id", f"unit: customers.id\n{line}", 1), rules_schema()

    assert load_policy(text, "rules.yaml", VARIABLES)
    assert problems(tree_of(text), schema, schema) == []


def test_a_draft_names_it_below_whose_protection_it_is() -> None:
    assert suggest_rules(CATALOG, CUSTOMERS.name).partition("\n")[2].startswith(FIRST_LINE)
