"""A request as a page sees it, and how pages are rendered: templates with everything escaped, no script inside."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final
from urllib.parse import parse_qsl

from jinja2 import Environment, PackageLoader, StrictUndefined
from starlette.requests import Request
from starlette.responses import HTMLResponse, RedirectResponse, Response

from proxy import __version__
from proxy.console.commands import Console, Rows
from proxy.console.language import Command
from proxy.console.web.login import Visit, Visits
from proxy.execute.shown_answers import RecentAnswers
from proxy.log import event
from proxy.session.recent_refusals import RecentRefusals
from proxy.settings import WebSettings

MOST_BODY_BYTES: Final = 512 * 1024
MOST_STRANGERS_BYTES: Final = 32 * 1024  # the login has two short fields; reading fields takes longer than sending them
_MOST_FIELDS: Final = 10_000

_TEMPLATES: Final = Environment(
    loader=PackageLoader("proxy.console.web"), autoescape=True, undefined=StrictUndefined, trim_blocks=True,
    lstrip_blocks=True,
)  # fmt: skip


@dataclass(frozen=True)
class ProxyParts:
    """The parts of the proxy that pages may see."""

    console: Console
    rules: Path
    settings: WebSettings
    answers: RecentAnswers
    refusals: RecentRefusals


@dataclass(frozen=True)
class Page:
    """One request of somebody who is logged in."""

    request: Request
    house: ProxyParts
    visits: Visits
    number: str  # of the cookie, or a word for who comes by a gateway
    visit: Visit

    @property
    def user(self) -> str:
        return self.visit.user

    def render(self, template: str, status: int = 200, /, **values: object) -> Response:
        """The page of this template, with what all pages have."""
        common = {
            "user": self.user,
            "role": self.visit.role,
            "token": self.visits.token(self.number),
            "note": self.visits.take_note(self.number),
            "path": self.request.url.path,
            "by_gateway": self.visit.by_gateway,
        }
        return HTMLResponse(rendered(template, **common, **values), status)

    def part(self, template: str, /, **values: object) -> Response:
        """A part of a page, for the page's own script."""
        return HTMLResponse(rendered(template, **values))

    def go(self, where: str, note: str = "") -> Response:
        """To another page, where a line says what came of it."""
        if note:
            self.visits.note(self.number, note)
        return RedirectResponse(where, 303)

    async def command(self, command: Command) -> Rows:
        """Do what a command of the console does, with its event in the log; raises a Refusal."""
        event("console", operator=self.user, command=" ".join((command.verb, *command.arguments)))
        return await self.house.console.run(command, self.user)

    def parameter(self, name: str) -> str:
        """A parameter of the address."""
        return self.request.query_params.get(name, "").strip()

    async def form(self) -> "PageForm":
        return await read_form(self.request)


class PageForm(dict[str, str]):
    """The fields of a form; one that is missing is empty."""

    def __missing__(self, name: str) -> str:
        return ""


class TooLarge(Exception):
    """A body that no form of ours has: too long, not UTF-8, or with a zero byte, which PostgreSQL has in no text."""


async def read_form(request: Request, most_bytes: int = MOST_BODY_BYTES) -> PageForm:
    """The form that was sent; it is read once."""
    known = request.scope.get("noisegate.form")
    if isinstance(known, PageForm):
        return known
    body = bytearray()
    async for piece in request.stream():
        body += piece
        if len(body) > most_bytes:
            raise TooLarge
    try:
        pairs = parse_qsl(body.decode(), keep_blank_values=True, max_num_fields=_MOST_FIELDS, errors="strict")
    except ValueError:
        raise TooLarge from None
    form = PageForm(pairs)
    if any("\0" in text for text in form.values()):  # a ledger there would fail, with all who charge at that moment
        raise TooLarge
    request.scope["noisegate.form"] = form
    return form


def rendered(template: str, /, **values: object) -> str:
    return _TEMPLATES.get_template(template).render(version=__version__, **values)


def plain(values: Mapping[str, object] | None = None) -> dict[str, object]:
    """Return what a page has that is for nobody yet: the login, and errors before it."""
    empty = {"user": "", "role": "", "note": "", "path": "", "by_gateway": False, "token": ""}
    return {**empty, **(values or {})}
