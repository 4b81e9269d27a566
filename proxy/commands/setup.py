"""`noisegate init`: the way from a database to a guarded one, with a question where only the DBA knows."""

import argparse
import json
import secrets
import shlex
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from psycopg.conninfo import make_conninfo

from proxy.called_as import called_as
from proxy.commands.basic import Names, Unreachable, look_at, run, say
from proxy.commands.rules_file import READER, check
from proxy.engines.engine import Database, EngineError
from proxy.engines.engines import real_database
from proxy.load_config import ConfigurationError, lock_of, make_ledger
from proxy.server.tls import write_certificate
from proxy.settings import Settings
from proxy.wire.scram import Verifier
from rules.catalog import Catalog
from rules.policy.finding import listed
from rules.policy.freeze import as_text, see
from rules.policy.json_schema import FILE, rules_schema
from rules.policy.load import load_policy
from rules.policy.model import table_name
from rules.policy.suggest import LOOK, suggest_rules
from rules.policy.units import Candidate, find_candidates

_PORT: Final = 6543
_ANALYST: Final = '  ada: {password: "${ADA_VERIFIER}", epsilon: 5}'


@dataclass(frozen=True, slots=True)
class Wishes:
    """The answers that the command line gives; what is None is asked."""

    database: str
    folder: Path
    role: str
    unit: str | None
    analyst: str | None
    grant: bool | None
    bi_tools: bool | None
    asks_nothing: bool

    def ask(self, question: str, proposed: str) -> str:
        """One answer; an empty one takes what is proposed."""
        if self.asks_nothing:
            return proposed
        sys.stdout.write(f"{question} [{proposed}] ")
        sys.stdout.flush()
        line = sys.stdin.readline()
        if not line:
            raise ConfigurationError("the input ended before this was answered; use --yes to accept the proposals")
        return line.strip() or proposed

    def is_so(self, answer: bool | None, question: str, *, proposed: bool) -> bool:
        if answer is not None:
            return answer
        while (said := self.ask(question, "yes" if proposed else "no").lower()) not in ("y", "yes", "n", "no"):
            say(f'"{said}" is not an answer: type yes or no')
        return said.startswith("y")


@dataclass(frozen=True, slots=True)
class Secrets:
    """Passwords that are made up: for the proxy's role, and for the first analyst."""

    role: str
    analyst: str

    @classmethod
    def new(cls) -> "Secrets":
        return cls(secrets.token_urlsafe(18), secrets.token_urlsafe(12))


def init(wishes: Wishes) -> int:
    """Write the folder, and say how to start and to connect; 1 where the rules do not fit yet."""
    folder = wishes.folder
    if folder.exists() and any(folder.iterdir()):
        raise ConfigurationError(f"{folder} is not empty: name a new folder by --folder")
    catalog = run(look_at(wishes.database)).catalog
    database = real_database(wishes.database)
    draft = _draft(wishes, catalog)
    say(draft.partition("\n")[0].removeprefix("# "))
    say(f"{catalog.database}: {len(catalog.tables)} tables and views; no row is read")
    analyst = wishes.analyst or wishes.ask("Name of the first analyst?", "ada")
    bi_tools = wishes.is_so(wishes.bi_tools, "Will BI tools connect?", proposed=True)
    made = Secrets.new()
    text = _rules(draft, analyst, bi_tools=bi_tools)
    is_granted = wishes.is_so(
        wishes.grant, f"Make the role {wishes.role} now, by the SQL of grants.sql?", proposed=True
    )
    if is_granted:
        _check_role(wishes, database)
    guarded = database.as_role(wishes.role, made.role)
    verifier = str(Verifier.of_password(made.analyst, secrets.token_bytes(16)))
    variables = {"NOISEGATE_DATABASE": guarded, "ANALYST_VERIFIER": verifier}
    policy = load_policy(text, "rules.yaml", variables)
    role_verifier = str(Verifier.of_password(made.role, secrets.token_bytes(16)))
    sql = database.role_grants(policy, catalog.database, wishes.role, role_verifier)
    _write(folder, text, sql, variables)
    rules = folder / "rules.yaml"
    write_certificate(folder)
    lock_of(rules).write_text(as_text(see(policy, catalog)), encoding="utf-8")
    make_ledger(Settings(rules, rules.with_suffix(".ledger")), catalog)
    if is_granted:
        try:
            database.run_grants(sql)
        except EngineError as error:
            place = " of the primary" if error.cause.reason == "server_is_read_only" else ""
            raise ConfigurationError(
                f"grants.sql could not be run: {str(error) or error.cause.advice}; run it as a superuser{place}"
            ) from None
    return _finish(wishes, draft, variables, analyst, made, is_granted=is_granted)


def _check_role(wishes: Wishes, database: Database) -> None:
    """A role that exists may be another proxy's, which a new password would lock out."""
    try:
        is_there = database.has_role(wishes.role)
    except EngineError as error:
        raise Unreachable(error.cause.advice) from None
    question = f'The role "{wishes.role}" already exists. Change its password?'
    if is_there and not wishes.is_so(None, question, proposed=False):
        raise ConfigurationError(
            f'the role "{wishes.role}" already exists, and grants.sql would change its password; '
            "name another role by --role, or change nothing in the database by --no-grant"
        )


def _draft(wishes: Wishes, catalog: Catalog) -> str:
    """The draft; a name that is no table is asked for again."""
    while True:
        unit = wishes.unit or _unit(wishes, find_candidates(catalog))
        try:
            return suggest_rules(catalog, table_name(unit))
        except ValueError as error:
            if wishes.unit or wishes.asks_nothing:
                raise ConfigurationError(str(error)) from None
            say(str(error))


def _unit(wishes: Wishes, candidates: Sequence[Candidate]) -> str:
    """Ask whose protection it is; without a question only if one table alone can be meant."""
    if not candidates:
        raise ConfigurationError("no table has a primary key of one column, so no rows can be units")
    likely = [each for each in candidates if each.is_likely] or candidates
    names = listed([str(each) for each in likely])
    if wishes.asks_nothing and len(likely) > 1:
        raise ConfigurationError(f"several tables may hold the individuals to protect: choose one by --unit: {names}")
    if len(likely) > 1:
        say(f"Each row of one of these may be an individual: {names}")
    return wishes.ask("Which table has one row for each individual to protect?", str(likely[0].table))


def _rules(draft: str, analyst: str, *, bi_tools: bool) -> str:
    """The draft with the analyst's name, and previews for tools that need columns of any query."""
    name = json.dumps(analyst, ensure_ascii=False)
    text = draft.replace(_ANALYST, f'  {name}: {{password: "${{ANALYST_VERIFIER}}", epsilon: 5}}')
    return text + (
        "previews: empty              # for BI tools: SELECT * … LIMIT n has columns and no rows\n" * bi_tools
    )


def _write(folder: Path, rules: str, sql: str, variables: dict[str, str]) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "rules.yaml").write_text(rules, encoding="utf-8")
    (folder / FILE).write_text(json.dumps(rules_schema(), ensure_ascii=False, indent=2), encoding="utf-8")
    for name, text in (
        ("grants.sql", sql),
        ("secrets.env", "".join(f"{key}={shlex.quote(value)}\n" for key, value in variables.items())),
    ):
        path = folder / name
        path.touch(0o600)
        path.write_text(text, encoding="utf-8")


def _finish(
    wishes: Wishes, draft: str, variables: dict[str, str], analyst: str, made: Secrets, *, is_granted: bool
) -> int:  # fmt: skip
    folder, code = wishes.folder, 0
    rules = folder / "rules.yaml"
    if is_granted:
        say("")
        code = check(rules, environment=variables)
    else:
        say(f"\nRun {folder / 'grants.sql'} in the database before you start.")
    unclear = [line.partition(":")[0].strip("# ") for line in draft.splitlines() if f": {LOOK} " in line]
    if unclear:
        say(f"\n{LOOK}: {listed(unclear)} may have rows about people; rules.yaml says why, and leaves them out.")
    name = real_database(variables["NOISEGATE_DATABASE"]).name
    place = shlex.quote(str(folder))
    tls = f"--tls-certificate {place}/server.crt --tls-key {place}/server.key"
    target = make_conninfo("", host="127.0.0.1", port=_PORT, dbname=name, user=analyst, sslmode="require")
    say(f"""
{folder} has rules.yaml (read it, it is a draft), its lock file and ledger, grants.sql, secrets.env and a certificate.
Start:    (set -a; . {place}/secrets.env; {called_as()} serve {place}/rules.yaml --port {_PORT} {tls})
Connect:  PGPASSWORD={made.analyst} psql {shlex.quote(target)}
This password is shown once.
After each change of rules.yaml: {called_as()} grants (run its SQL), noisegate check, and noisegate lock.""")
    return code


def add_to(names: "Names[argparse.ArgumentParser]") -> None:
    """Add it to the command line."""
    parser = names.add_parser(
        "init",
        help="set up a proxy for a database: a folder with all that it needs",
        description="Ask a few questions and write a folder: rules, the SQL of the proxy's role, passwords, a "
        "certificate, lock file and ledger. No row is read. A question answered by an option is not asked.",
    )
    parser.add_argument("database", metavar="DSN", help="how you reach the database, as its owner or a superuser")
    parser.add_argument("--folder", type=Path, default=Path("noisegate"), help="a new folder (default: noisegate)")
    parser.add_argument("--unit", metavar="TABLE", help="the table with one row for each individual to protect")
    parser.add_argument("--analyst", metavar="NAME", help="the first analyst")
    parser.add_argument("--role", default=READER, help=f"the proxy's role in the database (default: {READER})")
    parser.add_argument(
        "--grant", action=argparse.BooleanOptionalAction, help="make that role now, over this connection"
    )
    parser.add_argument(
        "--bi-tools",
        action=argparse.BooleanOptionalAction,
        help="BI tools will connect: previews show columns, no rows",
    )
    parser.add_argument("--yes", action="store_true", help="ask nothing, and accept the proposals")
    parser.set_defaults(
        run=lambda options: init(
            Wishes(
                options.database,
                options.folder,
                options.role,
                options.unit,
                options.analyst,
                options.grant,
                options.bi_tools,
                options.yes,
            )
        )
    )
