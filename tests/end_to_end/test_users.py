"""Analysts added, rotated, expired and removed at the command line, and what a running proxy makes of it."""

import re
import time
from collections.abc import Callable
from pathlib import Path

import psycopg
import pytest

from tests.conftest import RealDatabase
from tests.support import shop as shop_data
from tests.support.running import START_SECONDS, command, noisegate

COMMENTED = shop_data.RULES.replace("analysts:\n", "# who may ask\nanalysts:   # by name\n")
ROLES = "roles:\n  research: {epsilon: 8, per_analyst: 2}   # of the institute\n"
IN_FILE = f"{COMMENTED}{ROLES}logins: {{file: verifiers.txt}}\n"


def user(rules: Path, shop: RealDatabase, action: str, *arguments: str) -> str:
    """Run one of the actions; the password that it made up, if it says one."""
    done = command("user", action, str(rules), *arguments, database=shop.reader_dsn)
    assert done.returncode == 0, done.stderr
    found = re.search(r"shown once: (\S+)", done.stdout)
    return found[1] if found else ""


def wait_until(holds: Callable[[], bool]) -> None:
    """The file of verifiers is looked at each second."""
    deadline = time.monotonic() + START_SECONDS
    while not holds():
        assert time.monotonic() < deadline
        time.sleep(0.1)


def can_log_in(dsn: str, name: str, password: str) -> bool:
    try:
        with psycopg.connect(f"{dsn} user={name} password={password}") as session:
            session.execute("SELECT 1")
    except psycopg.OperationalError:
        return False
    return True


def test_a_user_of_the_file_of_verifiers_comes_changes_and_goes(shop: RealDatabase, tmp_path: Path) -> None:
    (tmp_path / "verifiers.txt").write_text("; who may log in\n")
    (tmp_path / "verifiers.txt").chmod(0o600)
    with noisegate(tmp_path, shop.reader_dsn, rules=IN_FILE) as running:
        rules = running.rules
        first = user(rules, shop, "add", "grace", "--role", "research")
        text = rules.read_text()
        assert text.startswith(COMMENTED.rstrip("\n")) and "# of the institute" in text
        assert 'grace: {role: "research"}' in text
        running.process.send_signal(1)  # SIGHUP
        running.wait_for("rules_loaded")
        wait_until(lambda: can_log_in(running.dsn(), "grace", first))

        second = user(rules, shop, "rotate", "grace")
        wait_until(lambda: can_log_in(running.dsn(), "grace", second))
        assert can_log_in(running.dsn(), "grace", first)
        third = user(rules, shop, "rotate", "grace", "--grace", "0")
        wait_until(lambda: not can_log_in(running.dsn(), "grace", second))
        assert can_log_in(running.dsn(), "grace", third) and not can_log_in(running.dsn(), "grace", first)
        assert (tmp_path / "verifiers.txt").read_text().startswith("; who may log in\n")

        user(rules, shop, "expire", "grace")
        running.process.send_signal(1)
        running.wait_for("rules_loaded", count=2)
        assert not can_log_in(running.dsn(), "grace", third)
        user(rules, shop, "remove", "grace")
        assert rules.read_text() == IN_FILE
        assert (tmp_path / "verifiers.txt").read_text() == "; who may log in\n"
        assert (tmp_path / "verifiers.txt").stat().st_mode & 0o777 == 0o600


def test_a_user_of_the_rules_has_the_verifiers_there(shop: RealDatabase, tmp_path: Path) -> None:
    rules = shop_data.rules_file(tmp_path, COMMENTED)
    user(rules, shop, "add", "grace", "--epsilon", "2", "--until", "2030-01-31")
    user(rules, shop, "rotate", "grace")
    made = shop_data.policy(rules=rules.read_text()).analysts["grace"]
    assert (str(made.epsilon), made.password is not None and len(made.password)) == ("2", 2)
    user(rules, shop, "rotate", "grace", "--grace", "0")
    user(rules, shop, "expire", "grace", "--at", "2027-01-31")
    made = shop_data.policy(rules=rules.read_text()).analysts["grace"]
    assert made.password is not None and len(made.password) == 1
    assert made.valid_until is not None and made.valid_until.isoformat() == "2027-01-31T00:00:00+00:00"
    user(rules, shop, "remove", "grace")
    assert rules.read_text() == COMMENTED


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("add", "ada"), "ada is already in the rules"),
        (("add", "pg_ada"), "pg_ada cannot be added: this name is reserved"),
        (("add", "grace", "--role", "unknown"), 'the role "unknown" of grace is not in roles'),
        (("add", "grace", "--until", "2020-01-31"), "--until 2020-01-31 00:00:00+00:00 has passed"),
        (("rotate", "eve"), "there is no analyst eve"),
        (("remove", "eve"), "there is no analyst eve"),
    ],
)
def test_a_change_that_would_be_a_mistake_is_not_written(
    shop: RealDatabase, tmp_path: Path, arguments: tuple[str, ...], words: str
) -> None:
    rules = shop_data.rules_file(tmp_path, COMMENTED)
    action, *others = arguments
    done = command("user", action, str(rules), *others, database=shop.reader_dsn)
    assert (done.returncode, words in done.stderr) == (1, True), done.stderr
    assert rules.read_text() == COMMENTED


def test_who_has_no_password_yet_gets_one_by_what_rotate_says(shop: RealDatabase, tmp_path: Path) -> None:
    rules = shop_data.rules_file(
        tmp_path, f"{IN_FILE}".replace("analysts:   #", "analysts:\n  grace: {epsilon: 1}   #")
    )
    (verifiers := tmp_path / "verifiers.txt").write_text("")
    refused = command("user", "rotate", str(rules), "grace", database=shop.reader_dsn)
    assert refused.stderr.rstrip().endswith(f"or run noisegate password --user grace >> {verifiers}")
