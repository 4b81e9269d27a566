"""`noisegate init`: from a database to a proxy that answers, as its own two lines say."""

import shlex
import subprocess
import sys
from pathlib import Path

import psycopg
import pytest

from proxy.twin.embedded import Cluster
from tests.conftest import make_shop
from tests.support.running import START_SECONDS, command, start


def test_a_folder_is_made_from_which_the_proxy_starts_and_answers(real_cluster: Cluster, tmp_path: Path) -> None:
    shop = make_shop(real_cluster, "guided")
    folder = tmp_path / "made here"
    answers = "custmers\ncustomers\nEve O'Neil\nmaybe\nyes\nyes\n"

    done = subprocess.run(
        [sys.executable, "-m", "proxy", "init", shop.dsn, "--folder", str(folder), "--role", "guided_reader"],
        input=answers, capture_output=True, text=True, timeout=START_SECONDS, check=False,
    )  # fmt: skip

    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.count("Which table has one row for each individual to protect? [customers]") == 2
    assert '"maybe" is not an answer: type yes or no' in done.stdout
    assert "there is no table custmers; did you mean customers?" in done.stdout
    assert {path.name for path in folder.iterdir()} >= {
        "rules.yaml", "rules.lock", "rules.ledger", "rules.schema.json", "grants.sql", "secrets.env", "server.crt"
    }  # fmt: skip
    assert (folder / "secrets.env").stat().st_mode & 0o077 == 0 == (folder / "grants.sql").stat().st_mode & 0o077
    assert "previews: empty" in (folder / "rules.yaml").read_text()
    (line,) = (text for text in done.stdout.splitlines() if text.startswith("Connect:"))
    _, password, _, target = shlex.split(line)
    lines = (folder / "secrets.env").read_text().splitlines()
    variables = {name: shlex.split(value)[0] for name, _, value in (line.partition("=") for line in lines)}
    tls = ("--tls-certificate", str(folder / "server.crt"), "--tls-key", str(folder / "server.key"))
    running = start(folder / "rules.yaml", variables["NOISEGATE_DATABASE"], arguments=tls, environment=variables)
    try:
        running.wait_for("ready")
        with psycopg.connect(target, port=running.port, password=password.removeprefix("PGPASSWORD=")) as session:
            assert session.execute("SELECT count(*) FROM customers").fetchone()
            with pytest.raises(psycopg.errors.UndefinedColumn):
                session.execute("SELECT count(email) FROM customers")
    finally:
        running.stop()

    other = command(
        "init", shop.dsn, "--folder", str(tmp_path / "other"), "--role", "guided_reader", "--yes", "--unit", "customers"
    )
    assert (other.returncode, '"guided_reader" already exists' in other.stderr) == (1, True)
    assert not (tmp_path / "other").exists()
    again = command("init", shop.dsn, "--folder", str(folder), "--yes")
    assert (again.returncode, "is not empty" in again.stderr) == (1, True)


def test_the_end_of_the_input_is_no_answer(real_cluster: Cluster, tmp_path: Path) -> None:
    shop = make_shop(real_cluster, "unanswered")

    done = command("init", shop.dsn, "--folder", str(tmp_path / "n"), "--role", "unanswered_reader")

    assert (done.returncode, "use --yes to accept the proposals" in done.stderr) == (1, True)
    assert not (tmp_path / "n").exists()
    with psycopg.connect(real_cluster.dsn(), autocommit=True) as owner:
        assert owner.execute("SELECT FROM pg_roles WHERE rolname = 'unanswered_reader'").rowcount == 0


def test_nothing_is_asked_and_nothing_run_where_options_say_so(real_cluster: Cluster, tmp_path: Path) -> None:
    shop = make_shop(real_cluster, "unguided")

    done = command(
        "init", shop.dsn, "--folder", str(tmp_path / "n"), "--yes", "--unit", "customers", "--no-grant", "--no-bi-tools"
    )

    assert done.returncode == 0, done.stderr
    assert "?" not in done.stdout
    line = "unit: customers.id: each row of customers is one protected individual; 2 tables belong to it"
    assert done.stdout.splitlines()[0] == line
    assert (tmp_path / "n" / "rules.yaml").read_text().startswith(f"# {line}\n")
    assert f"Run {tmp_path / 'n' / 'grants.sql'} in the database before you start." in done.stdout
    assert "previews" not in (tmp_path / "n" / "rules.yaml").read_text()
    with psycopg.connect(real_cluster.dsn(), autocommit=True) as owner:
        assert owner.execute("SELECT count(*) FROM pg_roles WHERE rolname = 'guided_other'").fetchone() == (0,)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("--unit", "custommers"), "there is no table custommers; did you mean customers?"),
        (("--unit", "order_items"), "has no primary key of one column"),
    ],
)
def test_a_table_that_cannot_have_units_is_told(
    real_cluster: Cluster, tmp_path: Path, arguments: tuple[str, ...], words: str
) -> None:
    with psycopg.connect(real_cluster.dsn(), autocommit=True) as owner:
        is_there = owner.execute("SELECT FROM pg_database WHERE datname = 'unguided'").fetchone()
    dsn = real_cluster.dsn("unguided") if is_there is not None else make_shop(real_cluster, "unguided").dsn

    done = command("init", dsn, "--folder", str(tmp_path / "n"), "--yes", *arguments)

    assert done.returncode == 1
    assert words in done.stderr
    assert not (tmp_path / "n").exists()


def test_whose_protection_it_is_is_not_guessed_between_two_tables(real_cluster: Cluster, tmp_path: Path) -> None:
    with psycopg.connect(real_cluster.dsn(), autocommit=True) as owner:
        owner.execute("CREATE DATABASE two_kinds")
    dsn = real_cluster.dsn("two_kinds")
    with psycopg.connect(dsn, autocommit=True) as owner:
        owner.execute(
            "CREATE TABLE customer (customer_id int PRIMARY KEY); CREATE TABLE employee (employee_id int PRIMARY KEY);"
            "CREATE TABLE shift (id int PRIMARY KEY, employee_id int REFERENCES employee);"
            "CREATE TABLE task (id int PRIMARY KEY, employee_id int REFERENCES employee)"
        )
    arguments = ("init", dsn, "--no-grant", "--no-bi-tools", "--folder", str(tmp_path / "n"))

    silent = command(*arguments, "--yes")
    asked = command(*arguments, "--analyst", "ada", given="\n")
    named = command(*arguments, "--yes", "--unit", "employee", "--folder", str(tmp_path / "other"))

    likely = "customer (no other table belongs to it), employee (2 tables belong to it)"
    assert (silent.returncode, f"choose one by --unit: {likely}" in silent.stderr) == (1, True)
    assert f"Each row of one of these may be an individual: {likely}" in asked.stdout
    assert "unit: customer.customer_id" in (tmp_path / "n" / "rules.yaml").read_text()
    line = "unit: employee.employee_id: each row of employee is one protected individual; 2 tables belong to it"
    assert named.stdout.splitlines()[0] == line
