"""Tables: what the rules say of columns, what a bound costs, changes that are checked and saved, and their history."""

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import quote

from markupsafe import Markup
from starlette.responses import Response

from proxy.console.commands import to_its_end
from proxy.console.language import Command
from proxy.console.web.analyst import uses_of
from proxy.console.web.pages import Page, PageForm
from proxy.console.web.rules_draft import ROWS, Draft, diff_of, draft_of, noise_of, wrong_fields
from proxy.console.web.rules_edits import BadEdit, ColumnEdit, TableEdit, edit_table, listed, read_table
from proxy.console.web.rules_history import AGAIN, CHANGED, NotWritten, RulesHistory, Version, digest_of
from proxy.log import event
from rules.catalog import Catalog, Table
from rules.planner.column_facts import column_facts
from rules.policy.model import Policy, table_name
from rules.refusal import NotAllowed

_SAVING: Final = asyncio.Lock()
_TEXTS: Final = ("text", "varchar", "bpchar", "char", "name", "enum")


@dataclass(frozen=True, slots=True)
class ShownTable:
    """A table of the list."""

    name: str
    kind: str
    unit: str
    rows: str
    columns: int
    hidden: int


@dataclass(frozen=True, slots=True)
class ColumnRow:
    """A column of the form."""

    name: str
    type: str
    roles: Sequence[str]
    edit: ColumnEdit
    noise: tuple[str, Markup] | None


async def show(page: Page) -> Response:
    policy, catalog = _now(page)
    return page.render(
        "tables.html",
        tables=[_shown(name, policy, catalog) for name in policy.tables],
        others=[str(table.name) for table in catalog.tables if policy.find_table(table.name) is None],
        may_edit=page.house.settings.may_edit_rules,
        rules=page.house.rules.name,
    )


def _now(page: Page) -> tuple[Policy, Catalog]:
    console = page.house.console
    return console.policy(), console.vitals.service.rulebook.catalog


def _shown(name: str, policy: Policy, catalog: Catalog) -> ShownTable:
    rules, table = policy.tables[name], catalog.find_table(table_name(name))
    columns = () if table is None else table.columns
    kind = "public" if rules.public else "view" if rules.view else "protected"
    rows = "" if rules.rows_per_unit is None else f"{'up to ' if rules.rows_auto else ''}{rules.rows_per_unit:,}"
    return ShownTable(name, kind, rules.unit or "", rows, len(columns), sum(rules.hides(column) for column in columns))


async def edit(page: Page) -> Response:
    """One table as the file has it."""
    name = page.parameter("table")
    table, text = _find(page, name), RulesHistory(page.house.rules).current()
    table_edit = await asyncio.to_thread(read_table, text, name)
    draft = await asyncio.to_thread(draft_of, text, page.house.rules, _now(page)[1])
    return await _form(page, name, table, table_edit, draft, _state_of(table_edit))


def _state_of(table_edit: TableEdit) -> str:
    """Name the rules of one table that a form began with: it sends all of them, those that others changed since too."""
    return digest_of(repr(table_edit))


def _find(page: Page, name: str) -> Table:
    policy, catalog = _now(page)
    table = catalog.find_table(table_name(name)) if name in policy.tables else None
    if table is None:
        raise BadEdit(f'the rules have no table "{name[:80]}"', hint="Tables lists them.")
    return table


async def _form(
    page: Page, name: str, table: Table, table_edit: TableEdit, draft: Draft, opened: str, status: int = 200
) -> Response:
    catalog = _now(page)[1]
    noise = await asyncio.to_thread(noise_of, draft, catalog, name, table)
    rulebook = page.house.console.vitals.service.rulebook
    facts = await asyncio.to_thread(lambda: list(column_facts(rulebook.policy, catalog)))
    roles = {fact.column.name: uses_of(fact)[2] for fact in facts if fact.table.name == table.name}
    rows = [
        ColumnRow(
            column.name,
            column.type.sql,
            roles.get(column.name, ["hidden"]),
            table_edit.columns.get(column.name, ColumnEdit()),
            noise.get(column.name),
        )
        for column in table.columns
    ]
    return page.render(
        "table.html",
        status,
        name=name,
        opened=opened,
        edit=table_edit,
        columns=rows,
        rows_noise=noise.get(ROWS),
        remarks=draft.about(name),
        wrong=set(wrong_fields(draft.remarks, name)),
        may_edit=page.house.settings.may_edit_rules,
    )


async def check(page: Page) -> Response:
    """For the page's script: what is to be said of a form as it is now, and what its bounds cost."""
    name, table, _, draft = await _drafted(page)
    noise = await asyncio.to_thread(noise_of, draft, _now(page)[1], name, table)
    return page.part(
        "table_parts.html",
        remarks=draft.about(name),
        wrong=sorted(set(wrong_fields(draft.remarks, name))),
        noise=[(field, noise.get(field)) for field in (ROWS, *(column.name for column in table.columns))],
    )


async def _drafted(page: Page) -> tuple[str, Table, TableEdit, Draft]:
    """The form's table and fields, and the rules file as it would be with them."""
    _check_may_edit(page)
    form = await page.form()
    name = form["table"]
    table, rules = _find(page, name), page.house.rules
    edit = edit_of(form, table)
    texts = frozenset(column.name for column in table.columns if column.type.base in _TEXTS)
    before = RulesHistory(rules).current()
    if _state_of(await asyncio.to_thread(read_table, before, name)) != form["opened"]:
        raise NotWritten(CHANGED, hint=AGAIN)
    try:
        text = await asyncio.to_thread(edit_table, before, name, edit, texts)
    except BadEdit as wrong:
        draft = await asyncio.to_thread(draft_of, before, rules, _now(page)[1])
        return name, table, edit, draft.refused(f"tables.{name}", wrong)
    return name, table, edit, await asyncio.to_thread(draft_of, text, rules, _now(page)[1])


def _check_may_edit(page: Page) -> None:
    if not page.house.settings.may_edit_rules:
        raise NotAllowed("the rules cannot be edited here", hint="noisegate serve --console-edit-rules allows it.")


def edit_of(form: PageForm, table: Table) -> TableEdit:
    """The fields of the form; one value of a list on each line."""

    def column(name: str) -> ColumnEdit:
        return ColumnEdit(
            hidden=form[f"hidden:{name}"] == "on",
            lower=form[f"lower:{name}"].strip(),
            upper=form[f"upper:{name}"].strip(),
            values=listed(form[f"values:{name}"]),
            other=form[f"other:{name}"] == "on",
            nullable=form[f"full:{name}"] != "on",
        )

    shown = (column.name for column in table.columns if f"lower:{column.name}" in form)  # not those that came since
    columns = {name: column(name) for name in shown}
    because, unit, rows = (form[key].strip() for key in ("because", "unit", "rows_per_unit"))
    return TableEdit(form["public"] == "on", because, unit, rows, columns)


async def review(page: Page) -> Response:
    """Return what saving would change; with mistakes the form again."""
    name, table, edit, draft = await _drafted(page)
    if not draft.can_be_saved:
        return await _form(page, name, table, edit, draft, (await page.form())["opened"], 422)
    before = RulesHistory(page.house.rules).current()
    return page.render(
        "review.html",
        name=name,
        diff=diff_of(before, draft.text),
        base=digest_of(before),
        fields=[(key, value) for key, value in (await page.form()).items() if key != "token"],
        remarks=draft.about(name),
    )


def _whole(action: Callable[[Page], Coroutine[Any, Any, Response]]) -> Callable[[Page], Awaitable[Response]]:
    """A request that takes too long must not leave one thing in the file, and another in force."""

    async def act(page: Page) -> Response:
        return await to_its_end(action(page))

    return act


@_whole
async def save(page: Page) -> Response:
    """Write what was reviewed, and have the proxy read it; what it does not take is taken back."""
    form = await page.form()
    async with _SAVING:  # what is drafted on a text that is taken back again would bring it back
        name, table, edit, draft = await _drafted(page)
        if not draft.can_be_saved:
            return await _form(page, name, table, edit, draft, form["opened"], 422)
        await _put_in_force(page, draft.text, form["base"], f"table {name}")
    return page.go(f"/tables/edit?table={quote(name)}", "Saved, and in force.")


async def _put_in_force(page: Page, text: str, base: str, change: str) -> None:
    """Replace the rules file, whose digest has to be `base`, and reload; raises a Refusal, and then nothing changed."""
    versions = RulesHistory(page.house.rules)
    before = versions.current()
    if digest_of(before) != base:
        raise NotWritten(CHANGED, hint=AGAIN)
    if before == text:
        return
    event("console", operator=page.user, command="EDIT RULES")
    version = await asyncio.to_thread(versions.replace, before, text, page.user, change)
    try:
        await page.command(Command("RELOAD"))
    except BaseException:  # an end of the proxy too: what is not in force does not stay in the file
        versions.take_back(version, text, before)
        raise


async def history(page: Page) -> Response:
    """All versions, and what one of them would change in the file as it is."""
    versions = RulesHistory(page.house.rules)
    current = versions.current()
    number = page.parameter("version")
    chosen = _find_version(versions, number) if number else None
    return page.render(
        "history.html",
        versions=versions.versions(),
        current=digest_of(current),
        chosen=None if chosen is None else chosen[0],
        diff=[] if chosen is None else diff_of(current, chosen[1]),
        may_edit=page.house.settings.may_edit_rules,
    )


def _find_version(versions: RulesHistory, number: str) -> tuple[Version, str]:
    version = versions.find(int(number)) if number.isdecimal() and len(number) < 10 else None
    if version is None:
        raise BadEdit("there is no such version")
    return version


@_whole
async def restore(page: Page) -> Response:
    """Put a version in force again, if it still fits the database."""
    _check_may_edit(page)
    form = await page.form()
    version, text = _find_version(RulesHistory(page.house.rules), form["version"])
    draft = await asyncio.to_thread(draft_of, text, page.house.rules, _now(page)[1])
    if not draft.can_be_saved:
        wrong = next(remark.finding for remark in draft.remarks if remark.is_error)
        raise BadEdit(f"version {version.number} does not fit the database any more: {wrong}")
    async with _SAVING:
        await _put_in_force(page, text, form["base"], f"back to version {version.number}")
    return page.go("/tables/history", f"Version {version.number} is in force again.")


PAGES: Final[Mapping[str, Callable[[Page], Awaitable[Response]]]] = {
    "/tables": show,
    "/tables/edit": edit,
    "/tables/history": history,
}
ACTIONS: Final[Mapping[str, Callable[[Page], Awaitable[Response]]]] = {
    "/tables/check": check,
    "/tables/review": review,
    "/tables/save": save,
    "/tables/restore": restore,
}
