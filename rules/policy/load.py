"""From the text of a rules file to a policy, or to everything that is wrong with it, line by line."""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from difflib import get_close_matches

from pydantic import ValidationError
from pydantic_core import ErrorDetails

from rules.policy.logins import AuthQuery, Logins
from rules.policy.model import (
    Analyst,
    Budget,
    ColumnRules,
    Defaults,
    MistakeAt,
    Operator,
    Policy,
    Role,
    TableRules,
)
from rules.policy.rules_yaml import Path, Problem, RulesError, Source, Tree, dotted
from rules.policy.synopses import CubeRules, SynopsisRules

AUTO = re.compile(r"auto(?:\s+up\s+to\s+(?P<ceiling>[0-9]+))?")  # rows_per_unit: auto up to 200
AUTO_CEILING = 1_000_000  # where "auto" stands alone

# Where pydantic says which alternative of a union it tried, which stands in no file.
_ALTERNATIVES = frozenset(("int", "decimal", "date", "datetime", "bool", "str", "rows in a schema", "a cube"))
GONE = {
    "max_faults": "a failure that a row can have caused now stops an analyst until noisegate ledger forgive: "
    "take the line out",
}
_BARE = re.compile(r"Decimal\('(.*)'\)")  # as pydantic shows a limit
_KEYS = 'keys with their values, as "key: value", each on a line of its own'
WORDS = {
    "missing": "this key is required",
    "extra_forbidden": "unknown key",
    "string_type": "must be a text",
    "string_too_short": "is too short",
    "dict_type": f"must be {_KEYS}",
    "model_type": f"must be {_KEYS}",
    "tuple_type": "must be a list, as [a, b, c]",
    "too_short": "must have {min_length} or more items",
    "too_long": "must have at most {max_length} items",
    "greater_than": "must be above {gt}",
    "greater_than_equal": "must be at least {ge}",
    "less_than": "must be below {lt}",
    "less_than_equal": "must be at most {le}",
    "int_type": "must be a whole number",
    "int_parsing": "must be a whole number",
    "int_from_float": "must be a whole number",
    "decimal_parsing": "must be a number",
    "decimal_type": "must be a number",
    "bool_type": "must be true or false",
    "bool_parsing": "must be true or false",
    "datetime_type": "must be a date or a time, as 2027-01-31 or 2027-01-31 18:00+01:00",
    "datetime_from_date_parsing": "must be a date or a time, as 2027-01-31 or 2027-01-31 18:00+01:00",
}


def load_policy(text: str, file: str, environment: Mapping[str, str], *, needs_verifiers: bool = True) -> Policy:
    """Read a rules file; raises RulesError with every problem found.

    Only logins need verifiers: without them an account whose verifier is in a variable that is not set has none.

    Example:
        >>> load_policy("unit: customers.id", "rules.yaml", {})
        Traceback (most recent call last):
        ...
        rules.policy.rules_yaml.RulesError: rules.yaml:1: analysts: this key is required
        rules.yaml:1: budget: this key is required
        rules.yaml:1: database: this key is required
        rules.yaml:1: tables: this key is required
    """
    source = Source(text, file, environment)
    if not isinstance(source.tree, dict):
        raise RulesError(file, (Problem(1, "", "a rules file has keys: database, unit, tables, budget, analysts"),))
    tree, lacking = (source.tree, ()) if needs_verifiers else _without_unset(source.tree, source)
    problems = {problem.path: {problem} for problem in source.problems if not problem.path.startswith(lacking)}
    try:
        policy = Policy.model_validate(_spelled_out(tree))
    except ValidationError as error:
        known = frozenset(problems)  # what cannot be read is not judged too
        for problem in (_problem(details, source) for details in error.errors(include_url=False)):
            if not any(path == problem.path or path.startswith(f"{problem.path}.") for path in known):
                problems.setdefault(problem.path, set()).add(problem)
    else:
        missing = (problem for problem in _without_password(policy, source) if problem.path not in lacking)
        problems |= {problem.path: {problem} for problem in missing}
    if problems:
        listed = (problem for path in problems.values() for problem in path)
        raise RulesError(file, tuple(sorted(listed, key=lambda problem: (problem.line, problem.path, problem.message))))
    return policy


def _without_unset(tree: dict[str, Tree], source: Source) -> tuple[dict[str, Tree], tuple[str, ...]]:
    """The tree without passwords that name a variable which is not set, and where they stand."""
    paths = {path[:3] for path in source.unset if path[0] in ("analysts", "operators") and path[2:3] == ("password",)}
    for group, name, key in paths:
        accounts = tree[str(group)]
        account = accounts[str(name)] if isinstance(accounts, dict) else None
        assert isinstance(accounts, dict) and isinstance(account, dict), "a path leads there"
        kept = {field: value for field, value in account.items() if field != key}
        tree = tree | {str(group): accounts | {str(name): kept}}
    return tree, tuple(map(dotted, paths))


def _without_password(policy: Policy, source: Source) -> Iterator[Problem]:
    """Passwords may stand elsewhere, if the file says where."""
    for group, accounts in (("analysts", policy.analysts), ("operators", policy.operators)):
        for name, account in accounts.items():
            if policy.logins is None and account.needs_password and account.password is None:
                path = (group, name, "password")
                yield Problem(source.line(path), dotted(path), WORDS["missing"])


def _spelled_out(tree: dict[str, Tree]) -> dict[str, Tree]:
    """`products: public`, `paid: view`, `email: hidden`, `public: {because: …}` and `rows_per_unit: auto up to 200`."""
    tables = tree.get("tables")
    if not isinstance(tables, dict):
        return tree
    return tree | {"tables": {name: _table(rules) for name, rules in tables.items()}}


def _table(rules: Tree) -> Tree:
    if rules in ("public", "view"):
        return {str(rules): True}
    if not isinstance(rules, dict):
        return rules
    columns, rows, public = rules.get("columns"), rules.get("rows_per_unit"), rules.get("public")
    if isinstance(public, dict) and public.keys() == {"because"} and "because" not in rules:
        rules = rules | {"public": True, "because": public["because"]}
    if isinstance(columns, dict):
        rules = rules | {"columns": {name: _column(column) for name, column in columns.items()}}
    if isinstance(rows, str) and (match := AUTO.fullmatch(rows.strip())):
        rules = rules | {"rows_per_unit": match["ceiling"] or AUTO_CEILING, "rows_auto": True}
    return rules


def _column(rules: Tree) -> Tree:
    return {"hidden": True} if rules == "hidden" else rules


def _problem(details: ErrorDetails, source: Source) -> Problem:
    kind, context = details["type"], details.get("ctx", {})
    cause = context.get("error")
    limits = {name: _BARE.sub(r"\1", str(limit)) for name, limit in context.items()}
    said = WORDS.get(kind, "").format_map(limits)
    path = _in_file((*details["loc"], *(cause.path if isinstance(cause, MistakeAt) else ())), source)
    if path[-1:] == ("rows_per_unit",) and kind in WORDS:
        return Problem(source.line(path), dotted(path), f'{said}, or "auto up to 200"')
    if path[-2:-1] == ("values",) and path != details["loc"]:
        return Problem(source.line(path), dotted(path), "must be a text, a number, a date or true or false")
    if path[-1:] in (("lower",), ("upper",)) and path != details["loc"]:  # each alternative complains
        return Problem(source.line(path), dotted(path), "must be a number, or a date or a time, as 2027-01-31")
    if kind == "model_type" and (bare := _bare_words(path)):
        must = f"must be {' or '.join(bare)}, or {_KEYS}"
        close = get_close_matches(str(details["input"]), bare, n=1)
        return Problem(source.line(path), dotted(path), must, f'did you mean "{close[0]}"?' if close else "")
    message = said or str(cause or "") or details["msg"].replace("Input should", "must")
    hint = ""
    if kind == "extra_forbidden":
        hint = GONE.get(dotted(path)) or _suggestion(str(path[-1]), _keys_at(path[:-1]))
    return Problem(source.line(path), dotted(path), message, hint)


def _bare_words(path: Path) -> Sequence[str]:
    """Return the words that may stand in the place of keys."""
    match path:
        case ("tables", _):
            return ("public", "view")
        case ("tables", _, "columns", _):
            return ("hidden",)
        case _:
            return ()


def _in_file(location: tuple[int | str, ...], source: Source) -> Path:
    """Find where pydantic's location stands in the file: without the names of the alternatives of a union."""
    path: Path = ()
    for number, step in enumerate(location):
        if (*path, step) in source.lines or (number == len(location) - 1 and str(step) not in _ALTERNATIVES):
            path = (*path, step)
    return path


def _keys_at(path: Path) -> Iterable[str]:
    match path:
        case ():
            return Policy.model_fields
        case ("budget",):
            return Budget.model_fields
        case ("defaults",):
            return Defaults.model_fields
        case ("analysts", _):
            return Analyst.model_fields
        case ("roles", _):
            return Role.model_fields
        case ("operators", _):
            return Operator.model_fields
        case ("logins",):
            return Logins.model_fields
        case ("logins", "auth_query"):
            return AuthQuery.model_fields
        case ("tables", _):
            return TableRules.model_fields
        case ("synopses", _):
            return {**SynopsisRules.model_fields, **CubeRules.model_fields}
        case _:
            return ColumnRules.model_fields


def _suggestion(word: str, known: Iterable[str]) -> str:
    names = sorted(known)
    close = get_close_matches(word, names, n=1)
    return f'did you mean "{close[0]}"?' if close else f"known here: {', '.join(names)}"
