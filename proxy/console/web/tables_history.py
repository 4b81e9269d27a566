"""The history of the rules file: who changed what and when, how each version differs, and one click back to it."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from typing import Final

from starlette.responses import Response

from proxy.console.web.pages import Page
from proxy.console.web.rules_draft import diff_of, draft_of
from proxy.console.web.rules_edits import BadEdit
from proxy.console.web.rules_history import RulesHistory, Version, digest_of
from proxy.console.web.tables import put_in_force
from rules.refusal import NotAllowed


async def show(page: Page) -> Response:
    """All versions, and what one of them would change in the file as it is."""
    history = RulesHistory(page.house.rules)
    current = history.current()
    number = page.asked("version")
    chosen = _find(history, number) if number else None
    return page.render(
        "history.html",
        versions=history.versions(),
        current=digest_of(current),
        chosen=None if chosen is None else chosen[0],
        diff=[] if chosen is None else diff_of(current, chosen[1]),
        may_edit=page.house.settings.may_edit_rules,
    )


def _find(history: RulesHistory, number: str) -> tuple[Version, str]:
    version = history.find(int(number)) if number.isdecimal() and len(number) < 10 else None
    if version is None:
        raise BadEdit("there is no such version")
    return version


async def restore(page: Page) -> Response:
    """Put a version in force again, if it still fits the database."""
    if not page.house.settings.may_edit_rules:
        raise NotAllowed("the rules cannot be edited here", hint="noisegate serve --console-edit-rules allows it.")
    form = await page.form()
    version, text = _find(RulesHistory(page.house.rules), form["version"])
    catalog = page.house.console.vitals.service.rulebook.catalog
    draft = await asyncio.to_thread(draft_of, text, page.house.rules, catalog)
    if not draft.can_be_saved:
        wrong = next(remark.finding for remark in draft.remarks if remark.is_error)
        raise BadEdit(f"version {version.number} does not fit the database any more: {wrong}")
    await put_in_force(page, text, form["base"], f"back to version {version.number}")
    return page.go("/tables/history", f"Version {version.number} is in force again.")


PAGES: Final[Mapping[str, Callable[[Page], Awaitable[Response]]]] = {"/tables/history": show}
ACTIONS: Final[Mapping[str, Callable[[Page], Awaitable[Response]]]] = {"/tables/restore": restore}
