"""noise: gaussian — counts and sums are paid as ρ, thresholds and choices as before, and the books tell them apart."""

import re
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from statistics import pstdev

import psycopg
import pytest

from rules.accounting.accountant import epsilon_of
from tests.conftest import RealDatabase
from tests.support import shop as shop_data
from tests.support.running import Noisegate, command, noisegate

RULES = f"{shop_data.RULES}noise: gaussian\n"
DAYS = "SELECT ordered_at::date AS day, count(DISTINCT customer_id) FROM orders GROUP BY day ORDER BY day"


@pytest.fixture(scope="module")
def proxy(shop: RealDatabase, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Noisegate]:
    with noisegate(tmp_path_factory.mktemp("gaussian"), shop.reader_dsn, rules=RULES) as running:
        yield running


class Session:
    """A session of an analyst, and what it is told."""

    def __init__(self, proxy: Noisegate, analyst: str = "ada") -> None:
        self.connection = psycopg.connect(proxy.dsn(analyst), autocommit=True)
        self.told: list[str] = []
        self.connection.add_notice_handler(lambda notice: self.told.append(notice.message_primary or ""))

    def ask(self, sql: str) -> list[tuple[object, ...]]:
        self.told.clear()
        return self.connection.execute(sql).fetchall()

    def set(self, sql: str) -> None:
        self.connection.execute(sql)

    def explain(self, sql: str) -> str:
        return "\n".join(str(row[0]) for row in self.ask(f"EXPLAIN {sql}"))

    def budget(self, columns: str = "epsilon_spent") -> tuple[Decimal, ...]:
        ((*found,),) = self.ask(f"SELECT {columns} FROM noisegate.budget WHERE account = 'yours'")
        return tuple(each for each in found if isinstance(each, Decimal))


@pytest.fixture
def session(proxy: Noisegate) -> Iterator[Session]:
    opened = Session(proxy)
    yield opened
    opened.connection.close()


def test_an_answer_tells_its_rho_and_what_is_left_as_an_epsilon(session: Session) -> None:
    session.set("SET noisegate.epsilon = 0.1")
    session.ask("SELECT city, count(*) FROM customers WHERE NOT is_vip GROUP BY city")

    assert re.fullmatch(
        r"ρ 0.005 spent, ε [\d.]+ of 1000 left; 95% of counts within ±20; no row is cut", session.told[0]
    )


def test_what_is_spent_is_what_all_rho_come_to(session: Session) -> None:
    session.ask("SELECT count(*) FROM customers WHERE is_vip")

    charges = session.ask("SELECT epsilon, epsilon_shared, rho FROM noisegate.ledger")
    assert charges[-1] == (None, None, Decimal("0.5"))
    rho = sum((each for *_, each in charges if isinstance(each, Decimal)), Decimal(0))
    spent, ever = session.budget("epsilon_spent, epsilon_ever")
    assert spent == ever
    assert float(spent) == pytest.approx(float(epsilon_of(rho, Decimal("5e-7"))))


def test_explain_says_which_noise_it_is_and_what_it_costs(session: Session) -> None:
    session.set("SET noisegate.epsilon = 0.1")
    text = session.explain(DAYS)

    assert "Private answer  (epsilon=0.1 paid as rho=0.005)" in text
    assert "charge now: rho=0.005, with epsilon=" in text
    assert "L2 sensitivity 6.32456, epsilon 0.1 paid as rho 0.005, Gaussian noise of sigma 63.2456, 95%" in text
    assert "error of count(DISTINCT customer_id): +/- 124 in 95% of answers" in text


def test_the_charge_that_is_explained_is_the_one_that_is_made_and_is_made_once(
    session: Session, proxy: Noisegate
) -> None:
    sql = "SELECT status, count(*), avg(amount) FROM orders WHERE amount < 123 GROUP BY status"
    charge = re.search("charge now: (rho=[0-9.]+),", session.explain(sql))

    first = session.ask(sql)
    spent = session.told[0].partition(" spent")[0].replace("ρ ", "rho=")
    assert charge is not None and charge[1].startswith(spent[:8])
    before = session.budget()
    assert session.ask(sql) == first
    assert session.told[0].startswith("ε 0 spent, ")
    assert session.budget() == before
    bob = Session(proxy, "bob")
    assert f"cost {charge[1]}" in bob.explain(sql)
    assert bob.ask(sql) == first
    assert bob.told[0].startswith(f"ρ {spent[4:]} spent, ε ")


def test_noise_of_daily_users_grows_with_the_root_of_the_days_of_a_customer(
    session: Session, shop: RealDatabase
) -> None:
    """With ε = 1 and at most 40 days of each: σ = √40, where Laplace noise has a deviation of 40·√2.

    A count is cut at zero where it is shown bare, and its noise with it; a deviation of 1,096 draws is right to 2%.
    """
    with shop.connect() as connection:
        true: dict[object, int] = dict(connection.execute(DAYS).fetchall())
    session.set("SET noisegate.empty_groups = show")
    answer = session.ask(DAYS.replace("customer_id)", "customer_id) + 0"))

    assert len(answer) == 1096
    assert pstdev(int(str(count)) - true.get(day, 0) for day, count in answer) == pytest.approx(40**0.5, rel=0.15)


def test_what_decides_which_groups_are_shown_has_laplace_noise(session: Session) -> None:
    text = session.explain("SELECT name, count(DISTINCT id), avg(id % 5) FROM customers GROUP BY name")

    whole = text.replace("\n           ", "")
    units, *others = re.findall(r"^ +((?:units|rows|sum)\b.*sensitivity .*)", whole, re.MULTILINE)
    assert "noise scale" in units and "Gaussian" not in units
    assert others and all("Gaussian noise of sigma" in other for other in others)


def test_choices_keep_their_mechanism_and_their_epsilon(session: Session) -> None:
    median = "SELECT percentile_cont(0.5) WITHIN GROUP (ORDER BY amount) FROM orders"

    assert "Private answer  (epsilon=1)" in session.explain(median)
    session.ask(median)
    assert session.told[0].startswith("ε 1 spent, ")


def test_means_of_gaussian_releases_are_free(session: Session) -> None:
    sql = "SELECT count(*) FROM orders WHERE amount > 77"
    session.set("SET noisegate.epsilon = 0.3")
    session.ask(sql)
    session.set("SET noisegate.reuse = off; SET noisegate.epsilon = 0.4")
    session.ask(sql)
    session.set("SET noisegate.reuse = on; SET noisegate.epsilon = 0.5")

    assert "combined from 2 releases" in session.explain(sql)
    session.ask(sql)
    assert session.told[0].startswith("ε 0 spent, ")
    assert "95% of counts within ±157;" in session.told[0]  # 1.96 · 40 / 0.5


def test_a_budget_that_is_spent_is_told_in_rho(shop: RealDatabase, tmp_path: Path) -> None:
    rules = RULES.replace("    epsilon: 500", "    epsilon: 2")
    with noisegate(tmp_path, shop.reader_dsn, rules=rules) as running:
        bob = Session(running, "bob")
        with pytest.raises(psycopg.errors.lookup("53400")) as refused:
            bob.ask("SELECT count(*) FROM customers")

    assert re.match(
        r"ρ 0.5 is needed, and ρ 0\.0\d+ of 0\.0\d+, which is ε 2 with δ, is left.",
        refused.value.diag.message_detail or "",
    )


def test_rules_without_delta_are_refused(shop: RealDatabase, tmp_path: Path) -> None:
    path = shop_data.rules_file(tmp_path, RULES.replace(", delta: 1e-6", ""))

    checked = command("check", str(path), database=shop.reader_dsn)

    assert checked.returncode != 0
    assert "no statement with Gaussian noise can be granted" in checked.stdout + checked.stderr
