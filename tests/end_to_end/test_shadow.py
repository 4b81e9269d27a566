"""`noisegate shadow`: a report on statements of which none is run, without a constant of any of them."""

import json
from pathlib import Path

import pytest

from proxy.commands.tool_log import statements_in
from tests.conftest import RealDatabase
from tests.support import shop as shop_data
from tests.support.running import command

STATEMENTS = """\
SET application_name = 'dashboard';
SELECT city, count(*) FROM customers
WHERE city <> 'Berlin; not the end'
GROUP BY city;
BEGIN; SELECT count(*) FROM orders; COMMIT;
COPY (SELECT count(*) FROM orders) TO STDOUT;
SELECT sum(amount) FROM orders WHERE amount > $1 AND status = $2;
SELECT count(*) FROM orders WHERE amount > (SELECT avg(amount) FROM orders);
SELECT name, price FROM products ORDER BY 2 LIMIT 3;
SELECT * FROM customers WHERE id = 471147;
SELECT * FROM customers WHERE id = 4712;
SELECT name FROM customers WHERE name = 'Secretname' LIMIT $1;
SELECT count(*) FROM customers WHERE id = 'Secretvalue';
SELECT email FROM customers;
SELECT max(salary) FROM staff;
SELECT date_trunc($1, ordered_at), extract($2 FROM ordered_at), count(*) FROM orders
WHERE ordered_at > now() - interval $3 AND amount > $4 GROUP BY 1, 2;
INSERT INTO customers VALUES (471147);
SELEC 'Secretword';
SELECT date_trunc('month', ordered_at), count(*) FROM orders GROUP BY 1
"""


@pytest.fixture(scope="module")
def rules(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("shadow")
    (folder / "statements.sql").write_text(STATEMENTS)
    return shop_data.rules_file(folder, shop_data.RULES + "logins: {file: nowhere.txt}\n")


def test_a_report_counts_what_is_answered_and_groups_what_is_refused(rules: Path, shop: RealDatabase) -> None:
    statements = str(rules.parent / "statements.sql")
    done = command("shadow", str(rules), statements, "--json", database=shop.reader_dsn)
    assert done.returncode == 0, done.stderr
    report = json.loads(done.stdout)

    assert (report["statements"], report["with_noise"], report["exact"], report["session"]) == (19, 7, 1, 3)
    assert report["epsilon"] == "6"  # what is asked twice is asked once
    kinds = {each["sqlstate"]: each for each in report["refused"]}
    assert sum(each["statements"] for each in report["refused"]) == 8
    assert kinds.keys() == {"42501", "22P02", "25006", "42601", "42703", "42P01"}
    assert {"SELECT * FROM customers WHERE id = ?": 2} in [each["shapes"] for each in report["refused"]]
    assert kinds["42703"]["hint"] == "The rules file hides a column of this name."
    assert kinds["42P01"]["hint"] == "The database has it, and the rules file does not name it."
    for secret in ("Secret", "4711", "Berlin"):
        assert secret not in done.stdout + done.stderr
    assert sorted(each.name for each in rules.parent.iterdir()) == ["rules.yaml", "statements.sql"]


def test_statements_are_told_apart_where_a_line_ends_with_a_semicolon() -> None:
    found = [(None if each is None else each.kind.value, text) for each, text in statements_in(STATEMENTS)]
    assert len(found) == 19
    assert found[1][1].endswith("GROUP BY city")
    assert [kind for kind, _ in found].count(None) == 1


def test_a_semicolon_inside_of_quotes_ends_no_statement() -> None:
    quoted = "SELECT 'a;\nb;\n', count(*) FROM orders"
    dollars = "SELECT count(*) FROM orders WHERE note = $q$x;\n$q$"
    commented = "SELECT count(*) /* one;\ntwo; */ FROM orders"
    broken = "SELEC 'x'"

    found = statements_in(";\n".join((quoted, broken, dollars, "SELECT 1", commented)) + ";\n")

    assert [text for _, text in found] == [quoted, broken, dollars, "SELECT 1", commented]
    assert [each is None for each, _ in found] == [False, True, False, False, False]


def test_a_file_that_is_not_there_is_told(rules: Path, shop: RealDatabase) -> None:
    done = command("shadow", str(rules), "nowhere.sql", database=shop.reader_dsn)
    assert (done.returncode, "cannot be read" in done.stderr) == (1, True)
