"""Edits of a rules file in the console: what is not edited stays byte for byte, and what is put back is what was."""

import difflib
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from proxy.console.web.rules_draft import diff_of, without_secrets
from proxy.console.web.rules_edits import BadEdit, ColumnEdit, TableEdit, edit_table, read_table
from proxy.console.web.rules_history import BY_HAND, NotWritten, RulesHistory
from rules.policy.load import load_policy
from tests.support import shop as shop_data
from tests.support.markdown import ROOT

DEMO = (ROOT / "proxy" / "demo" / "rules.yaml").read_text()
VERIFIER = "SCRAM-SHA-256$4096:bm9pc2VnYXRlLXNhbHQtMQ==$\
Fx0st/XWuNDfeIQDWXDi1oBnoCVqttNumXyclzzuFCo=:yn7C40SXBTx0F1cq5nA+hSJiJWhbk0thlHnYhZfdRhE="
VARIABLES = {"NOISEGATE_DATABASE": "dbname=shop", "ADA_VERIFIER": VERIFIER}
TEXTS = frozenset({"channel", "status"})
NUMBERS = st.decimals(-(10**6), 10**6, places=2).map(str) | st.integers(-(10**9), 10**9).map(str)
WORDS = st.text(st.characters(codec="utf-8", exclude_categories=("C", "Z")), min_size=1, max_size=8).filter(
    lambda text: "${" not in text
)
COLUMNS = st.one_of(
    st.just(ColumnEdit(hidden=True)),
    st.just(ColumnEdit()),
    st.tuples(NUMBERS, NUMBERS).map(lambda ends: ColumnEdit(lower=ends[0], upper=ends[1])),
    st.lists(WORDS, min_size=1, max_size=4, unique=True).map(lambda values: ColumnEdit(values=tuple(values))),
)


def changed(before: str, after: str) -> list[str]:
    lines = list(difflib.unified_diff(before.splitlines(), after.splitlines(), lineterm="", n=0))[2:]
    return [line for line in lines if not line.startswith("@@")]


@pytest.mark.parametrize("text", [DEMO, shop_data.RULES])
def test_what_is_not_edited_is_as_it_was(text: str) -> None:
    for table in load_policy(text, "rules.yaml", VARIABLES).tables:
        known = read_table(text, table)
        assert edit_table(text, table, known, TEXTS) == text
        unsaid = replace(known, columns={**known.columns, "another": ColumnEdit()})
        assert edit_table(text, table, unsaid, TEXTS) == text


def test_values_that_a_form_cannot_have_stay_in_the_file_until_their_list_is_changed() -> None:
    odd = 'channel: {values: ["", " shop", "a\\nb", web]}'
    text = DEMO.replace("amount: {lower: 0, upper: 400}", f"amount: {{lower: 0, upper: 400}}\n      {odd}")
    known = read_table(text, "orders")
    sent = replace(known.columns["channel"], values=("shop", "a", "b", "web"))
    after = edit_table(text, "orders", replace(known, columns={**known.columns, "channel": sent}, unit="id"), TEXTS)
    assert changed(text, after) == ["-    unit: customer_id", "+    unit: id"]


def test_an_edit_changes_its_own_lines_and_keeps_comments() -> None:
    known = read_table(DEMO, "orders")
    columns = {**known.columns, "amount": ColumnEdit(lower="-5", upper="1200.50"), "status": ColumnEdit(hidden=True)}
    after = edit_table(DEMO, "orders", replace(known, rows_per_unit="auto up to 50", columns=columns), TEXTS)

    assert changed(DEMO, after) == [
        "-    rows_per_unit: 30            # of a customer with more orders than that, only so many count",
        "+    rows_per_unit: auto up to 50 # of a customer with more orders than that, only so many count",
        "-      amount: {lower: 0, upper: 400}",
        "+      amount: {lower: -5, upper: 1200.50}",
        "+      status: hidden",
    ]


def test_a_table_is_made_public_with_its_reason() -> None:
    after = edit_table(DEMO, "order_items", TableEdit(public=True, because="only what is sold"), TEXTS)
    price = {"unit_price": ColumnEdit(lower="0", upper="70")}
    assert read_table(after, "order_items") == TableEdit(public=True, because="only what is sold", columns=price)
    assert load_policy(after, "rules.yaml", VARIABLES).tables["order_items"].public
    assert read_table(edit_table(DEMO, "order_items", TableEdit(public=True), TEXTS), "order_items").public


@pytest.mark.parametrize("rules", ["public", "{public: true}", '{public: {because: "about nobody"}}'])
def test_what_is_hidden_stays_hidden_when_a_table_is_public_and_when_it_is_no_more(rules: str) -> None:
    text = DEMO.replace("products: public", f"products: {rules}")
    known = read_table(text, "products")
    assert known.public
    text = edit_table(text, "products", replace(known, columns={"price": ColumnEdit(hidden=True)}), TEXTS)
    known = read_table(text, "products")
    assert known.columns == {"price": ColumnEdit(hidden=True)}
    for edit in (
        replace(known, because="what is sold"),
        replace(known, because=""),
        replace(known, public=False, because="", unit="id"),
        replace(known, because="", unit="id", rows_per_unit="3"),
    ):
        text = edit_table(text, "products", edit, TEXTS)
        loaded = load_policy(text, "rules.yaml", VARIABLES).tables["products"]
        assert loaded.columns["price"].hidden
        assert (loaded.public, loaded.because or "") == (edit.public, edit.because)
    bare = edit_table(text, "products", replace(read_table(text, "products"), columns={"price": ColumnEdit()}), TEXTS)
    assert "products: public" in bare


@settings(max_examples=40)
@given(amount=COLUMNS, channel=COLUMNS, rows=st.integers(1, 999).map(str))
def test_what_a_form_says_is_what_the_file_says_then(amount: ColumnEdit, channel: ColumnEdit, rows: str) -> None:
    """Values of a text column are texts whatever they look like: 007, no, 2024-01-01."""
    if amount.values:
        amount = ColumnEdit()
    if channel.lower:
        channel = ColumnEdit()
    known = read_table(DEMO, "orders")
    columns = {**known.columns, "amount": amount, "channel": channel}
    after = edit_table(DEMO, "orders", replace(known, rows_per_unit=rows, columns=columns), TEXTS)
    again = read_table(after, "orders")

    assert again.rows_per_unit == rows
    assert again.columns.get("amount", ColumnEdit()) == amount
    assert again.columns.get("channel", ColumnEdit()) == channel
    assert "# whose item it is, the order says" in after
    if channel.values and not amount.lower:
        rules = load_policy(after, "rules.yaml", VARIABLES).tables["orders"].columns["channel"]
        assert rules.values == channel.values
    usual = replace(known, columns={**known.columns, "channel": ColumnEdit()})
    assert read_table(edit_table(after, "orders", usual, TEXTS), "orders") == known


def test_no_variable_and_no_control_sign_gets_in() -> None:
    for column in (
        ColumnEdit(lower="${HOME}", upper="1"),
        ColumnEdit(values=("${ADA_VERIFIER}",)),
        ColumnEdit(lower="\x1b"),
    ):
        with pytest.raises(BadEdit):
            edit_table(DEMO, "orders", TableEdit(unit="customer_id", columns={"channel": column}), TEXTS)
    for table in ("nowhere", "budget"):
        with pytest.raises(BadEdit):
            read_table(DEMO, table)


def test_a_diff_shows_no_secret() -> None:
    secret = f'database: postgresql://u:pa55word@db/shop\nanalysts:\n  ada: {{password: "{VERIFIER}"}}\n'
    told = "\n".join(line.text for line in diff_of(secret, secret.replace("ada", "eve")))
    assert "pa55word" not in told
    assert "bm9pc2" not in told
    assert without_secrets(f'  - "{VERIFIER}"') == '  - "SCRAM-SHA-256$(not shown)"'


@pytest.mark.parametrize(
    "secret",
    [
        "database: >-\n  host=db\n  password='pass SECRET word'\n  user=SECRET",
        "public_reader: host=db user=reader password='SECRET'",
        'database: "host=db\n  SECRET"',
        'analysts:\n  ada:\n    password: "SCRAM-SHA-256$4096:bm9p$\\\nSECRET=:SECRET="',
        "analysts: {ada: {password: [SCRAM-SHA-256$1, 'SCRAM\n    SECRET'], epsilon: 3}}",
        "spare: &dsn |\n  host=db\n\n  SECRET\ndatabase: *dsn",
        "logins:\n  auth_query:\n    query:\n      SELECT SECRET\n      FROM SECRET",
        "Password:\n  SECRET",
        "# database: host=db password = 'a SECRET'",
        "# sslpassword='a SECRET'",
    ],
)
def test_a_diff_shows_no_secret_on_several_lines(secret: str) -> None:
    for before, after in (("unit: a\n", f"unit: a\n{secret}\n"), (f"unit: a\n{secret}\n", f"unit: b\n{secret}\n")):
        shown = " ".join(line.text for line in diff_of(before, after))
        assert "SECRET" not in shown
        assert "unit: a" in shown
    (line,) = diff_of("unit: a\n", f"unit: [\n{secret}\n")
    assert "not YAML" in line.text


def test_versions_are_kept_with_who_and_what_and_a_file_edited_by_hand_too(tmp_path: Path) -> None:
    rules = tmp_path / "rules.yaml"
    rules.write_text("one")
    rules.chmod(0o640)
    history = RulesHistory(rules)
    history.replace("one", "two", "root", "table orders")
    rules.write_text("by hand")
    history.replace("by hand", "three", "eve", "table customers")

    assert [(version.number, version.operator) for version in history.versions()] == [
        (4, "eve"),
        (3, BY_HAND),
        (2, "root"),
        (1, BY_HAND),
    ]
    assert [found[1] for number in (1, 2, 3, 4) if (found := history.find(number))] == [
        "one",
        "two",
        "by hand",
        "three",
    ]
    assert rules.read_text() == "three"
    assert rules.stat().st_mode & 0o777 == 0o640
    kept = tmp_path / "rules.history"
    assert kept.stat().st_mode & 0o077 == 0
    assert all(path.stat().st_mode & 0o077 == 0 for path in kept.iterdir())
    with pytest.raises(NotWritten):
        history.replace("two", "four", "root", "late")
    assert rules.read_text() == "three"


def test_a_link_to_the_rules_stays_one(tmp_path: Path) -> None:
    real, link = tmp_path / "real.yaml", tmp_path / "rules.yaml"
    real.write_text("one")
    link.symlink_to(real)
    RulesHistory(link).replace("one", "two", "root", "x")
    assert link.is_symlink()
    assert real.read_text() == "two"


def test_what_the_proxy_did_not_take_is_taken_back_unless_it_was_changed_by_hand(tmp_path: Path) -> None:
    rules = tmp_path / "rules.yaml"
    rules.write_text("one")
    history = RulesHistory(rules)
    history.take_back(history.replace("one", "two", "root", "x"), "two", "one")
    assert rules.read_text() == "one"

    version = history.replace("one", "three", "root", "x")
    rules.write_text("by hand")
    history.take_back(version, "three", "one")

    assert rules.read_text() == "by hand"
    assert [version.operator for version in history.versions()] == [BY_HAND]
    assert {path.name for path in tmp_path.iterdir()} == {"rules.yaml", "rules.history"}


def test_what_an_end_in_the_middle_of_a_save_has_left_is_no_version(tmp_path: Path) -> None:
    rules, kept = tmp_path / "rules.yaml", tmp_path / "rules.history"
    rules.write_text("one")
    history = RulesHistory(rules)
    history.replace("one", "two", "root", "x")
    (kept / "00003.yaml").write_text("half")
    (kept / "00004.json").write_text("{")
    kept.chmod(0o777)

    assert history.replace("two", "three", "root", "y").number == 5
    assert [version.number for version in history.versions()] == [5, 2, 1]
    assert history.find(3) is history.find(4) is None
    assert kept.stat().st_mode & 0o777 == 0o700


def test_a_disk_that_is_full_leaves_nothing_behind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rules = shop_data.rules_file(tmp_path)
    before = rules.read_text()

    def full(_descriptor: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.fsync", full)
    with pytest.raises(NotWritten, match="No space left"):
        RulesHistory(rules).replace(before, f"{before}# more\n", "root", "table orders")
    monkeypatch.undo()

    assert rules.read_text() == before
    assert {path.name for path in tmp_path.rglob("*")} == {rules.name, "rules.history"}


def test_the_ends_of_lines_stay_as_they_were(tmp_path: Path) -> None:
    rules = shop_data.rules_file(tmp_path)
    rules.write_bytes(rules.read_bytes().replace(b"\n", b"\r\n"))
    history = RulesHistory(rules)
    history.replace(history.current(), f"{history.current()}# more\n", "root", "table orders")
    assert rules.read_bytes().endswith(b"# more\r\n")
    assert b"\n" not in rules.read_bytes().replace(b"\r\n", b"")


@pytest.mark.parametrize("text", ["[" * 20_000, "9" * 5000, "{" * 300])
def test_what_is_no_number_is_a_text_however_long(text: str) -> None:
    known = read_table(DEMO, "orders")
    columns = {**known.columns, "amount": ColumnEdit(lower="0", upper=text)}
    assert text in edit_table(DEMO, "orders", replace(known, columns=columns), TEXTS)
