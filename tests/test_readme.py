"""The pages say what there is: links, files, tests, commands, keys of the rules file, settings."""

import argparse
import re
import shlex
from collections.abc import Iterator
from pathlib import Path

import pytest
from pydantic import BaseModel

from proxy import __version__
from proxy.cli import make_parser
from rules.policy.logins import AuthQuery, Logins
from rules.policy.model import Analyst, Budget, ColumnRules, Defaults, Operator, Policy, Role, TableRules
from rules.policy.rule_values import ALLOWED, Randomized
from rules.policy.synopses import CubeRules, SynopsisRules
from rules.refusal import Refusal
from rules.sql.session_settings import SETTINGS
from rules.sql.system_views import VIRTUAL
from tests.support.markdown import PAGES, README, ROOT, Fence, anchors, fences, links, section, spans, text_of

LEAKS = re.findall(r"\| `(\S+)::(\w+)` \|", text_of(ROOT / "tests" / "README.md"))
PATH = re.compile(r"(?:rules|proxy|tests|docs|docker)/[\w./-]+")
COMMAND = re.compile(r"(?<![\w/.-])(?:\.venv/bin/)?noisegate((?: [^\s|>&;)#]+)+)")
RULES_PAGE = ROOT / "docs" / "rules-file.md"
MODELS: dict[str, type[BaseModel]] = {
    "The file": Policy,
    "A table": TableRules,
    "A column": ColumnRules,
    "A randomized column": Randomized,
    "The budget": Budget,
    "Defaults": Defaults,
    "An analyst": Analyst,
    "A role": Role,
    "An operator": Operator,
    "Logins": Logins,
    "A query for verifiers": AuthQuery,
    "A synopsis": SynopsisRules,
    "A cube": CubeRules,
}


@pytest.mark.parametrize(("file", "name"), LEAKS)
def test_a_leak_has_the_test_that_would_see_it(file: str, name: str) -> None:
    assert re.search(rf"^(async )?def {name}\(", text_of(ROOT / "tests" / file), re.MULTILINE)


def test_none_of_them_is_missing() -> None:
    assert len(set(LEAKS)) == 37


def test_the_readme_is_short_and_has_its_two_commands() -> None:
    text = text_of(README)
    commands = re.findall(r"^    python3 -m venv .*$", text, re.MULTILINE)

    assert len(text.encode()) <= 8192
    assert [command.split()[-1] for command in commands] == ["demo", "auto"]
    assert ".venv/bin/pytest" in commands[1]


def test_a_release_of_the_changelog_has_at_most_25_lines_and_upgrades_first() -> None:
    _, *releases = re.split(r"^## ", text_of(ROOT / "CHANGELOG.md"), flags=re.MULTILINE)
    lengths = {text.split()[0]: len([line for line in text.splitlines() if line.strip()]) for text in releases}
    late = [
        text.split()[0] for text in releases if "### Upgrading" in text.partition("\n### ")[2].partition("\n### ")[2]
    ]

    assert {release: length for release, length in lengths.items() if length > 25 and release != "[Unreleased]"} == {}
    assert late == []


def test_the_version_to_cite_is_this_one() -> None:
    assert f"\nversion: {__version__}\n" in text_of(ROOT / "CITATION.cff")


BY_NAME = re.compile(r"""\b(?:pip3? install|pipx|uv|uvx) [^\n`]*?(?<![\w/.-])noisegate(?:[-_]proxy)?(?![\w/.-])""")
EXTRA_BY_NAME = re.compile(r"\bnoisegate(?:[-_]proxy)?\[")


def test_nothing_advises_to_install_us_by_a_name_that_others_own_or_could_take() -> None:
    """The index has a stranger's project called `noisegate`, and `noisegate-proxy` is not registered yet."""
    tops = ("rules", "proxy", "docs", "docker", ".ci")
    files = [*PAGES, ROOT / "Makefile", *(path for top in tops for path in (ROOT / top).rglob("*") if path.is_file())]
    texts = {path: path.read_text(encoding="utf-8", errors="ignore") for path in files if path.suffix != ".pyc"}
    advised = {
        f"{path.relative_to(ROOT)}: {found[0]}"
        for path, text in texts.items()
        for pattern in (BY_NAME, EXTRA_BY_NAME)
        for found in pattern.finditer(re.sub(r"""["']\s*\n\s*f?["']|\\\n""", "", text))
    }

    assert advised == set()


@pytest.mark.parametrize(
    ("text", "by_name"),
    [
        ("pip install 'noisegate[notebook]'", True),
        ("pip install -U noisegate-proxy==0.2.0", True),
        ("uvx noisegate demo", True),
        ("pip install -q -c constraints.txt . && .venv/bin/noisegate demo", False),
        ("pip install './dist/noisegate_proxy-0.2.0-py3-none-any.whl[notebook]'", False),
    ],
)
def test_an_advice_to_install_us_by_name_is_seen(text: str, by_name: bool) -> None:
    assert (BY_NAME.search(text) is not None) is by_name


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_relative_links_resolve(page: Path) -> None:
    for file, anchor in links(page):
        target = (page.parent / file).resolve() if file else page
        assert target.exists(), f"{page}: {file}"
        assert not anchor or anchor in anchors(target), f"{page}: {file}#{anchor}"


def test_every_page_of_docs_is_linked_from_the_readme() -> None:
    linked = {(README.parent / file).resolve() for file, _ in links(README)}
    assert set((ROOT / "docs").glob("*.md")) <= linked


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_files_that_a_page_names_are_there(page: Path) -> None:
    named = {found[0] for span in spans(page) if (found := PATH.fullmatch(span.partition("::")[0]))}
    missing = [name for name in named if not (ROOT / name).exists()]
    modules = {found[0] for span in spans(page) if (found := re.fullmatch(r"\w+\.py", span))}
    lost = [name for name in modules if not any(any((ROOT / top).rglob(name)) for top in ("rules", "proxy", "tests"))]

    assert (missing, lost) == ([], [])


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_programs_and_targets_that_a_page_names_are_there(page: Path) -> None:
    programs = {name.replace(".", "/") for name in re.findall(r"python -m (tests[\w.]*\w)", text_of(page))}
    found = {name for name in programs if any((ROOT / f"{name}{end}").exists() for end in (".py", "/__main__.py"))}
    targets = set(re.findall(r"^(\w+):", text_of(ROOT / "Makefile"), re.MULTILINE))
    unknown = {span.split()[1] for span in spans(page) if re.fullmatch(r"make \w+", span)} - targets

    assert (programs - found, unknown) == (set(), set())


def test_modules_that_the_proofs_name_are_there() -> None:
    named = set(filter(re.compile(r"[a-z_]+/[a-z_]*").fullmatch, spans(ROOT / "rules" / "README.md"))) - {"rules/"}
    missing = [name for name in named if not any((ROOT / "rules" / f"{name}{end}").exists() for end in (".py", ""))]

    assert missing == []


def commands() -> Iterator[tuple[str, list[str], bool]]:
    """Each use of our command line in the pages: where, its arguments, and whether it is whole."""
    for fence in fences(*PAGES):
        for line in fence.text.replace("\\\n", " ").splitlines() if fence.info[:1] == ("sh",) else ():
            yield from ((str(fence), _arguments(found), True) for found in COMMAND.findall(line.partition(" #")[0]))
    for page in PAGES:
        for span in spans(page):
            if found := COMMAND.fullmatch(span):
                yield page.name, _arguments(found[1]), False


def _arguments(text: str) -> list[str]:
    words = shlex.split(text)
    return words[1:] if words[:1] == ["noisegate"] else words  # docker compose exec noisegate noisegate …


def _action(arguments: list[str]) -> argparse.ArgumentParser:
    """The parser of the command that the first words name."""
    parser = make_parser()
    for word in arguments:
        choices = next(
            (action.choices for action in parser._actions if isinstance(action, argparse._SubParsersAction)), None
        )
        if choices is None:
            return parser
        assert word in choices, word
        parser = choices[word]
    return parser


@pytest.mark.parametrize(("where", "arguments", "whole"), list(commands()), ids=lambda value: str(value)[:60])
def test_a_command_exists_with_its_options(where: str, arguments: list[str], whole: bool) -> None:
    if whole and "--version" not in arguments:
        make_parser().parse_args(arguments)
    elif not arguments[0].startswith("-"):
        known = _action(arguments)._option_string_actions
        assert [word for word in arguments if word.startswith("-") and word not in known] == []


def test_every_command_and_every_option_is_described_in_operations() -> None:
    text = text_of(ROOT / "docs" / "operations.md")
    serve = _action(["serve"])._option_string_actions
    actions = ("init", "show", "backup", "restore", "move", "compact", "forgive")
    names = [
        "demo",
        "serve",
        "check",
        "suggest",
        "init",
        "lock",
        "grants",
        "schema",
        "password",
        "certificate",
        *(f"ledger {action}" for action in actions),
        *(f"synopsis {each}" for each in ("make", "report", "export")),
    ]

    assert [name for name in names if f"noisegate {name}" not in text] == []
    assert [option for option in serve if option.startswith("--") and option != "--help" and option not in text] == []


def test_every_event_of_the_log_is_described_in_operations() -> None:
    calls = re.compile(r"\b(?:event|warn|alarm)\(\s*\"(\w+)\"")
    events = {name for file in (ROOT / "proxy").rglob("*.py") for name in calls.findall(text_of(file))}
    described = set(re.findall(r"`(\w+)`", section(ROOT / "docs" / "operations.md", "Logs")))

    assert len(events) > 20
    assert events - described == set()


@pytest.mark.parametrize("heading", MODELS)
def test_the_keys_of_the_rules_file_are_those_of_the_model(heading: str) -> None:
    described = re.findall(r"^\| `(\w+)` \|", section(RULES_PAGE, heading), re.MULTILINE)

    assert sorted(described) == sorted(MODELS[heading].model_fields)


def test_every_setting_of_a_session_is_described() -> None:
    described = re.findall(r"^\| `(noisegate\.\w+)` \|", text_of(ROOT / "docs" / "sql.md"), re.MULTILINE)
    settings = [name for name in described if name.removeprefix("noisegate.") not in VIRTUAL]

    assert sorted(settings) == sorted(SETTINGS)


def test_every_code_of_a_refusal_is_described() -> None:
    described = set(re.findall(r"^\| (\w{5}) \|", text_of(ROOT / "docs" / "errors.md"), re.MULTILINE))
    codes = {kind.sqlstate for kind in Refusal.__subclasses__()} - {"08P01"}  # PostgreSQL's own words, at any place

    assert codes == described


def test_every_sql_example_says_what_becomes_of_it() -> None:
    known = {"answered", "refused", "session", "owner", "setup", "survey", "survey-refused"}
    unsaid = [str(fence) for fence in fences(*PAGES) if fence.info[:1] == ("sql",) and not known & set(fence.info[1:])]

    assert unsaid == []


def _is_sh(fence: Fence) -> bool:
    return fence.info[:1] == ("sh",)


def test_the_pages_are_found() -> None:
    assert len(PAGES) >= 18
    assert sum(map(_is_sh, fences(*PAGES))) >= 5


def test_every_engine_setting_that_is_allowed_is_described() -> None:
    described = re.findall(r"`([a-z_.]+)`", section(RULES_PAGE, "Engine settings"))

    assert sorted(described) == sorted(ALLOWED)
