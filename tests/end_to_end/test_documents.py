"""The examples of the pages, as they stand there, over the demo's shop: SQL, psql sessions and rules files."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import psycopg
import pytest
import yaml

from rules.policy.finding import Severity
from rules.policy.load import load_policy
from rules.synopses.check import check_whole
from tests.conftest import RealDatabase
from tests.planner.test_refusal_table import rows
from tests.support import shop as shop_data
from tests.support.catalogs import catalog_of
from tests.support.markdown import PAGES, ROOT, Fence, fences
from tests.support.running import Noisegate, noisegate

DEMO = ROOT / "proxy" / "demo"
FENCES = fences(*PAGES)
VERIFIER = yaml.safe_load(shop_data.RULES)["analysts"]["ada"]["password"]
RULES = {
    **yaml.safe_load((DEMO / "rules.yaml").read_text()),
    "budget": {"epsilon": 1000, "delta": 1e-6, "per": "month"},
    "analysts": {"ada": {"password": VERIFIER}},
}
VIEWS = {"tables": {"paid_orders": "view"}}  # which an example for the owner creates
END = re.compile(r";\s*(--.*)?$")
PROMPT = re.compile(r"^shop[=-]> ", re.MULTILINE)


def _sql(*marks: str) -> list[Fence]:
    return [fence for fence in FENCES if fence.info[:1] == ("sql",) and set(marks) & set(fence.info)]


@dataclass(frozen=True)
class Said:
    """A statement of an example, and what the example says comes back, as one line."""

    statement: str
    reply: str = ""


def statements_of(fence: Fence) -> list[Said]:
    """The statements of a fenced example, each with the comments on lines of their own below it."""
    said: list[Said] = []
    lines: list[str] = []
    for line in fence.text.splitlines():
        if line.startswith("-- ") and not lines and said:
            said[-1] = Said(said[-1].statement, f"{said[-1].reply} {line[3:].strip()}".strip())
        elif line.strip() and not line.startswith("-- "):
            lines.append(line)
            if END.search(line):
                said.append(Said("\n".join(lines)))
                lines = []
    assert not lines, f"{fence}: a statement without an end"
    return said


def session_of(fence: Fence) -> list[Said]:
    """The statements of a psql session, and all that psql prints below each; without those of psql itself."""
    said = []
    for part in re.split(r"^shop=> ", fence.text, flags=re.MULTILINE)[1:]:
        lines = part.splitlines()
        end = next(number for number, line in enumerate(lines) if line.startswith("\\") or END.search(line))
        statement = PROMPT.sub("", "\n".join(lines[: end + 1]))
        if not statement.startswith("\\"):
            said.append(Said(statement, "\n".join(lines[end + 1 :])))
    return said


def error_of(connection: psycopg.Connection, statement: str) -> str:
    """The refusal of a statement: "42501: message HINT: hint"."""
    try:
        connection.execute(statement.encode())
    except psycopg.Error as error:
        hint = error.diag.message_hint
        return f"{error.sqlstate}: {error.diag.message_primary}" + (f" HINT: {hint}" if hint else "")
    raise AssertionError(f"answered: {statement}")


def merged(base: Any, changes: Any) -> Any:
    """A rules file with the keys of an example in place of its own."""
    if not (isinstance(base, dict) and isinstance(changes, dict)):
        return changes
    return base | {key: merged(base.get(key), value) for key, value in changes.items()}


@pytest.fixture(scope="session")
def demo_shop(shop: RealDatabase) -> RealDatabase:
    """The demo's schema with a thousandth of its rows, and what the examples for the owner create."""
    database = RealDatabase(shop.cluster, "demo_shop")
    script = re.sub(r"generate_series\(1, (\d+)000\)", r"generate_series(1, \1)", (DEMO / "shop.sql").read_text())
    with psycopg.connect(shop.cluster.dsn(), autocommit=True) as connection:
        connection.execute("CREATE DATABASE demo_shop")
    with database.connect() as connection:
        connection.execute(script.replace("CREATE ROLE noisegate_reader LOGIN;", "").encode())
        for fence in _sql("owner"):
            for said in statements_of(fence):
                connection.execute(said.statement.encode())
    return database


@pytest.fixture(scope="session")
def demo_proxy(demo_shop: RealDatabase, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Noisegate]:
    rules = yaml.safe_dump(merged(RULES, VIEWS))
    place = tmp_path_factory.mktemp("documents")
    with noisegate(place, demo_shop.reader_dsn, rules=rules, name="demo_shop") as running:
        yield running


@pytest.fixture
def session(demo_proxy: Noisegate) -> Iterator[psycopg.Connection]:
    with psycopg.connect(demo_proxy.dsn(), autocommit=True) as connection:
        yield connection


@pytest.mark.parametrize("fence", _sql("answered", "session"), ids=str)
def test_an_example_is_answered(session: psycopg.Connection, fence: Fence) -> None:
    for said in statements_of(fence):
        session.execute(said.statement.encode())


@pytest.mark.parametrize("fence", _sql("refused"), ids=str)
def test_an_example_is_refused_in_the_words_that_stand_below_it(session: psycopg.Connection, fence: Fence) -> None:
    for said in statements_of(fence):
        assert error_of(session, said.statement) == said.reply


def test_the_table_of_refusals_is_what_a_client_is_told(proxy: Noisegate) -> None:
    """The twin describes a statement first, and some that the planner would refuse never come to it."""
    with psycopg.connect(proxy.dsn(), autocommit=True) as session:
        for statement, *told in rows():
            with pytest.raises(psycopg.Error) as refused:
                session.execute(statement.strip("`"))
            diagnostic = refused.value.diag
            assert [diagnostic.sqlstate, diagnostic.message_primary, diagnostic.message_hint] == told


@pytest.mark.parametrize("fence", [fence for fence in FENCES if "shop=> " in fence.text], ids=str)
def test_a_session_of_psql_went_as_it_stands_there(session: psycopg.Connection, fence: Fence) -> None:
    for said in session_of(fence):
        if said.reply.startswith("ERROR:"):
            words = re.findall(r"^(?:ERROR|HINT): +(.*)$", said.reply, re.MULTILINE)
            assert error_of(session, said.statement).partition(": ")[2].split(" HINT: ") == words
        else:
            header = next((line for line in said.reply.splitlines() if line and not line.startswith("NOTICE")), "")
            columns = session.execute(said.statement.encode()).description or ()
            shown = [name.strip() for name in header.split("|")] if columns else []
            assert shown == [column.name for column in columns]


@pytest.mark.parametrize("fence", [fence for fence in FENCES if fence.info == ("yaml",)], ids=str)
def test_a_rules_file_loads_and_fits_the_database(demo_shop: RealDatabase, fence: Fence) -> None:
    tree = yaml.safe_load(fence.text)
    text = fence.text if "database" in tree else yaml.safe_dump(merged(RULES, tree))

    verifiers = dict.fromkeys(("ADA_VERIFIER", "ROOT_VERIFIER"), VERIFIER)
    policy = load_policy(text, str(fence), {"NOISEGATE_DATABASE": demo_shop.reader_dsn, **verifiers})

    findings = check_whole(policy, catalog_of(demo_shop.dsn))
    assert [str(finding) for finding in findings if finding.severity is Severity.ERROR] == []


@pytest.mark.parametrize("fence", _sql("setup"), ids=str)
def test_a_database_is_prepared(demo_shop: RealDatabase, fence: Fence) -> None:
    with psycopg.connect(demo_shop.dsn) as connection:
        for said in statements_of(fence):
            connection.execute(said.statement.replace("noisegate_reader", "another_reader").encode())
        connection.rollback()


def test_there_are_examples_of_all_kinds() -> None:
    assert all(_sql(mark) for mark in ("answered", "refused", "session", "owner", "setup"))
