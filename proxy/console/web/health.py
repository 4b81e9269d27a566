"""Health: whether a client could be answered now, what the proxy is made of, and what an operator can do about it."""

import sys
from collections.abc import Awaitable, Callable, Mapping
from typing import Final

from starlette.responses import Response

from proxy.console.language import Command
from proxy.console.web.pages import Page
from proxy.metrics import REGISTRY

_WORDS: Final = {
    "ok": "ok",
    "is_made_again": "is made again",
    "draining": "the proxy is ending",
    "no_answer": "does not answer",
}
_PARTS: Final = {
    "database": "Real database",
    "ledger": "Ledger",
    "twin": "Twin",
    "clients": "Clients",
}


async def show(page: Page) -> Response:
    console = page.house.console
    vitals = console.vitals
    health = await vitals.health()
    engine, service, planner = vitals.engine, vitals.service, vitals.planner
    catalog = service.rulebook.catalog
    return page.render(
        "health.html",
        is_ready=all(word == "ok" for word in health.values()),
        parts=[(_PARTS[part], word == "ok", _WORDS.get(word, word.replace("_", " "))) for part, word in health.items()],
        pool=[
            ("connections in use", f"{engine.in_use} of {engine.connections}"),
            ("connections idle", str(engine.idle)),
            ("statements that wait for one", str(service.waiting)),
            ("sessions", f"{len(vitals.sessions.all())} of {vitals.listener.context.settings.max_connections}"),
            ("processes that plan", f"{planner.alive}, {planner.busy} busy, {planner.waiting} texts wait"),
        ],
        rules=await console.run(Command("SHOW", ("RULES",)), page.user),
        versions=[
            ("PostgreSQL, real database", f"{catalog.version // 10_000}.{catalog.version % 10_000}"),
            ("Python", ".".join(map(str, sys.version_info[:3]))),
        ],
        twins=list(vitals.twins.states().items()),
        closed_tables=[(str(name), reason) for name, reason in vitals.twins.closed_tables.items()],
        unseen=console.unseen(),
        is_locked=console.is_locked(),
        counted=_counted(),
        is_paused=service.gate.is_closed,
    )


def _counted() -> list[tuple[str, str]]:
    """Since the start of this process, from the registry that /metrics tells."""
    names = {
        ("noisegate_answers_total", "drawn"): "answers drawn anew",
        ("noisegate_answers_total", "served_again"): "answers served again, at no cost",
        ("noisegate_answers_total", "both"): "answers of both kinds",
        ("noisegate_faults_total", ""): "failures after a charge",
        ("noisegate_database_failures_total", ""): "statements that found the database away",
        ("noisegate_twins_made_again_total", ""): "twins made again",
        ("noisegate_logins_total", ""): "logins",
    }
    counts = dict.fromkeys(names, 0.0)
    for family in REGISTRY.collect():
        for sample in family.samples:
            key = sample.name, sample.labels.get("source", "")
            if key in counts:
                counts[key] = sample.value
    return [(names[key], f"{value:.0f}") for key, value in counts.items()]


def _action(command: Command, note: str) -> Callable[[Page], Awaitable[Response]]:
    async def act(page: Page) -> Response:
        await page.command(command)
        return page.go("/health", note)

    return act


PAGES: Final[Mapping[str, Callable[[Page], Awaitable[Response]]]] = {"/health": show}
ACTIONS: Final[Mapping[str, Callable[[Page], Awaitable[Response]]]] = {
    "/health/reload": _action(Command("RELOAD"), "The rules were read again and are in force."),
    "/health/refresh": _action(Command("REFRESH"), "The schema and the public tables were read again."),
}
