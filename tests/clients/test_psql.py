"""psql, of this machine and of the wheel: its own commands are queries too, and all of them have to work."""

import os
import pty
import select
import shutil
import subprocess
import time
from pathlib import Path

import pytest

from tests.clients.conftest import PSQLS
from tests.clients.questions import AMOUNTS, CITIES, ROWS, check_amounts, check_cities
from tests.conftest import RealDatabase
from tests.support.running import Noisegate

Cities = dict[str | None, int]

every_psql = pytest.mark.parametrize("psql", PSQLS.values(), ids=PSQLS)


def run(psql: str, proxy: Noisegate, script: str, *, footers: bool = False) -> subprocess.CompletedProcess[str]:
    """Feed a script to psql; it goes on after errors, as at a terminal."""
    # The wheel's libpq knows no TLS.
    mode = "disable" if "pginstall" in psql else "require"
    return subprocess.run(
        [psql, "-X", "-A", *([] if footers else ["-t"]), proxy.dsn(sslmode=mode)],
        input=script,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
        env=os.environ | {"PGTZ": "Europe/Berlin", "LC_ALL": "C.UTF-8"},
    )


def answer(psql: str, proxy: Noisegate, script: str) -> list[list[str]]:
    """The fields of all lines that a script prints, which must not fail."""
    done = run(psql, proxy, script)
    assert "ERROR" not in done.stderr, done.stderr
    assert done.returncode == 0
    return [line.split("|") for line in done.stdout.splitlines()]


def pairs(lines: list[list[str]]) -> list[tuple[str | None, int]]:
    return [(city or None, int(count)) for city, count in lines]


@every_psql
def test_a_private_answer(psql: str, proxy: Noisegate, cities: Cities) -> None:
    check_cities(pairs(answer(psql, proxy, CITIES + ";")), cities)


@every_psql
@pytest.mark.parametrize(
    ("command", "shown"),
    [
        (r"\d", "customers"),
        (r"\d+", "people who buy here"),
        (r"\d orders", "orders_customer_id_fkey"),
        (r"\d+ customers", "where they live"),
        (r"\dt", "order_items"),
        (r"\dt+", "customers"),
        (r"\dt *.*", "pg_class"),
        (r"\dn", "public"),
        (r"\dn+", "public"),
        (r"\dT", "segment"),
        (r"\dT+", "public sector"),
        (r"\df *.*count*", "count"),
        (r"\di", "customers_pkey"),
        (r"\di+", "orders_pkey"),
        (r"\ds", "orders_id_seq"),
        (r"\dv *.pg_stats", "pg_stats"),
        (r"\dp", "customers"),
        (r"\dd", None),
        (r"\dx", "plpgsql"),
        (r"\dL", "plpgsql"),
        (r"\dO", None),
        (r"\dC", "integer"),
        (r"\dD", None),
        (r"\do =", "boolean"),
        (r"\dF", "english"),
        (r"\dRp", None),
        (r"\l", "shop"),
        (r"\l+", "shop"),
        (r"\du", "ada"),
        (r"\drds", None),
        (r"\conninfo", None),
        (r"\encoding", "UTF8"),
    ],
)
def test_every_description_command_works(
    psql: str, proxy: Noisegate, shop: RealDatabase, command: str, shown: str | None
) -> None:
    done = run(psql, proxy, command, footers=True)

    if "ERROR" in done.stderr:  # so it must be with the database itself, which is newer than this psql
        direct = [psql, "-X", "-c", command, shop.reader_dsn]
        assert subprocess.run(direct, capture_output=True, text=True, check=False).stderr == done.stderr
    elif shown is not None:
        assert shown in done.stdout


@every_psql
def test_hidden_things_are_not_described(psql: str, proxy: Noisegate) -> None:
    described = run(psql, proxy, "\\d customers\n\\d\n\\d staff\n")

    assert "email" not in described.stdout
    assert "staff" not in described.stdout
    assert 'Did not find any relation named "staff"' in described.stderr


@every_psql
def test_a_private_answer_is_copied_to_a_file(psql: str, proxy: Noisegate, cities: Cities, tmp_path: Path) -> None:
    target = tmp_path / "cities.csv"

    done = run(psql, proxy, f"\\copy ({CITIES}) TO '{target}' CSV")

    assert done.returncode == 0, done.stderr
    check_cities(pairs([line.split(",") for line in target.read_text().splitlines()]), cities)


@every_psql
def test_gdesc_describes_without_spending(psql: str, proxy: Noisegate) -> None:
    done = run(psql, proxy, "SELECT status, count(*), avg(amount), sum(amount) FROM orders GROUP BY status \\gdesc\n")

    assert done.stdout.splitlines() == ["status|status", "count|bigint", "avg|numeric", "sum|numeric"]
    assert "spent" not in done.stderr


@pytest.mark.parametrize("psql", [PSQLS["psql 16"], PSQLS["psql 18"]], ids=["psql 16", "psql 18"])
def test_bind_sends_a_parameter(psql: str, proxy: Noisegate) -> None:
    lines = answer(psql, proxy, AMOUNTS.format("$1") + " \\bind 50 \\g\n")

    check_amounts([(status, int(count), average, total) for status, count, average, total in lines])


def test_psql_18_prepares_and_pipelines(proxy: Noisegate, cities: Cities) -> None:
    named = f"{CITIES} \\parse answer\n\\bind_named answer \\g\n"
    script = f"{named}\\startpipeline\n{CITIES} \\bind \\sendpipeline\n\\endpipeline\n"

    lines = [line for line in answer(PSQLS["psql 18"], proxy, script) if line != [""]]

    check_cities(pairs(lines[:5]), cities)
    assert lines[5:] == lines[:5]


@every_psql
def test_fetch_count_goes_through_a_cursor(psql: str, proxy: Noisegate, cities: Cities) -> None:
    check_cities(pairs(answer(psql, proxy, f"\\set FETCH_COUNT 2\n{CITIES};")), cities)


@every_psql
def test_on_error_rollback_keeps_the_transaction_alive(psql: str, proxy: Noisegate, cities: Cities) -> None:
    done = run(psql, proxy, f"\\set ON_ERROR_ROLLBACK on\nBEGIN;\n{ROWS};\n{CITIES};\nCOMMIT;\n")

    assert "ERROR" in done.stderr
    assert "HINT" in done.stderr
    check_cities(pairs([line.split("|") for line in done.stdout.splitlines() if "|" in line]), cities)
    assert "COMMIT" in done.stdout


@every_psql
def test_crosstab_and_gexec_and_semicolons(psql: str, proxy: Noisegate) -> None:
    crossed = run(psql, proxy, "SELECT segment, is_vip, count(*) FROM customers GROUP BY 1, 2 \\crosstabview\n")
    assert "business" in crossed.stdout, crossed.stderr
    lines = answer(psql, proxy, "SELECT 1 \\; SELECT 2;\nSELECT 'SELECT 3' \\gexec\n")
    assert [line for line in lines if line != [""]] == [["1"], ["2"], ["3"]]


@every_psql
def test_watch_repeats_an_answer_at_no_cost(psql: str, proxy: Noisegate) -> None:
    mode = "disable" if "pginstall" in psql else "require"
    watching = subprocess.Popen(
        [psql, "-X", "-A", "-t", proxy.dsn(sslmode=mode)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    assert watching.stdin is not None
    assert watching.stdout is not None
    watching.stdin.write("SELECT count(*) FROM customers \\watch 0.1\n")
    watching.stdin.flush()
    counts: list[str] = []
    while len(counts) < 3:
        line = watching.stdout.readline()
        assert line
        counts += [line.strip()] if line.strip().isdigit() else []
    watching.kill()
    watching.wait()
    watching.stdout.close()

    assert len(set(counts)) == 1
    assert 390 < int(counts[0]) < 410


@pytest.mark.skipif(shutil.which("psql") is None, reason="no psql with readline on the PATH")
def test_tab_completion_knows_the_tables(proxy: Noisegate) -> None:
    screen = at_a_terminal(
        proxy, ["SELECT count(*) FROM cust\t;\n", "SELECT count(*) FROM public.ord\t\t\t;\n", "\\q\n"]
    )

    assert "customers" in screen
    assert "orders" in screen
    assert "order_items" in screen


def at_a_terminal(proxy: Noisegate, typed: list[str]) -> str:
    """What psql shows to somebody who types, one line after the other."""
    psql = shutil.which("psql")
    assert psql is not None
    pid, terminal = pty.fork()
    if pid == 0:
        os.environ.update(PAGER="cat", TERM="dumb", INPUTRC="/dev/null")
        os.execv(psql, [psql, "-X", proxy.dsn()])
    screen = _read(terminal, until="=> ")
    for line in typed:
        for key in line:
            os.write(terminal, key.encode())
            time.sleep(0.01)
        screen += _read(terminal, until="=> ")
    os.waitpid(pid, 0)
    os.close(terminal)
    return screen


def _read(terminal: int, *, until: str) -> str:
    seen, deadline = "", time.monotonic() + 30
    while time.monotonic() < deadline:
        readable, _, _ = select.select([terminal], [], [], 0.5)
        try:
            data = os.read(terminal, 65536) if readable else b""
        except OSError:  # it has ended
            return seen
        seen += data.decode(errors="replace")
        if seen.endswith(until) and not data:
            return seen
    return seen
