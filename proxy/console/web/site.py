"""The web console as an application: routes, who may see which, and what every answer carries."""

import asyncio
import traceback
from collections.abc import Awaitable, Callable, Mapping, Sequence
from pathlib import Path
from typing import Final

from starlette.applications import Starlette
from starlette.datastructures import MutableHeaders
from starlette.requests import Request
from starlette.responses import HTMLResponse, PlainTextResponse, RedirectResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from proxy.console.web import analyst, budgets, health, statements, tables, try_it
from proxy.console.web.login import Door, Role, Visit, Visits
from proxy.console.web.pages import MOST_STRANGERS_BYTES, Page, ProxyParts, TooLarge, plain, read_form, rendered
from proxy.log import warn
from proxy.wire.startup import LoginRefused
from rules.refusal import Refusal

Handler = Callable[[Page], Awaitable[Response]]

_HERE: Final = Path(__file__).parent
_STATIC: Final = {
    name: ((_HERE / "static" / name).read_bytes(), type_)
    for name, type_ in (("console.css", "text/css"), ("console.js", "text/javascript"), ("mark.svg", "image/svg+xml"))
}
_ANSWER_SECONDS: Final = 60
_HOME: Final[Mapping[Role, str]] = {"operator": "/health", "analyst": "/me"}
_PAGES: Final[Sequence[tuple[Role, Mapping[str, Handler], Mapping[str, Handler]]]] = (
    (
        "operator",
        {**health.PAGES, **budgets.PAGES, **statements.PAGES, **tables.PAGES, **try_it.PAGES},
        {**health.ACTIONS, **budgets.ACTIONS, **tables.ACTIONS, **try_it.ACTIONS},
    ),
    ("analyst", analyst.PAGES, {}),
)
_HEADERS: Final = {
    "Content-Security-Policy": "default-src 'none'; style-src 'self'; script-src 'self'; img-src 'self'; "
    "connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'",
    "Cache-Control": "no-store",
    "Referrer-Policy": "same-origin",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
}


class Site:
    """Everything that the port answers."""

    def __init__(self, door: Door, find_house: Callable[[], ProxyParts | None], *, has_tls: bool) -> None:
        self._door, self._find_house, self._has_tls = door, find_house, has_tls
        self._visits = Visits()
        self._cookie = "__Host-noisegate" if has_tls else "noisegate"
        self._login_cookie = f"{self._cookie}-login"  # of its own: who follows a link to us comes without the other one
        routes = [
            Route("/", self._home),
            Route("/static/{name}", _static),
            Route("/login", self._login, methods=["GET"]),
            Route("/login", self._log_in, methods=["POST"]),
            Route("/logout", self._log_out, methods=["POST"]),
        ]
        for role, pages, actions in _PAGES:
            routes += [Route(path, self._page(handler, role), methods=["GET"]) for path, handler in pages.items()]
            routes += [Route(path, self._page(handler, role), methods=["POST"]) for path, handler in actions.items()]
        handlers = {404: _not_found, 405: _not_found, 500: _failed, TooLarge: _too_large}
        application = Starlette(routes=routes, exception_handlers=handlers)
        application.router.redirect_slashes = False  # it would lead to wherever the request says that we are
        self.app: ASGIApp = _Guard(application)

    async def _home(self, request: Request) -> Response:
        _, visit = await self._visitor(request)
        return RedirectResponse("/login" if visit is None else _HOME[visit.role], 303)

    async def _login(self, request: Request) -> Response:
        _, visit = await self._visitor(request)
        if visit is not None:
            return RedirectResponse(_HOME[visit.role], 303)
        number = self._login_number(request)
        cookie = "" if number else self._visits.new_cookie()
        return self._login_page(number or cookie.partition(".")[0], cookie)

    def _login_number(self, request: Request) -> str | None:
        return self._visits.number_of(request.cookies.get(self._login_cookie, ""))

    def _login_page(self, number: str, cookie: str = "", error: str = "", status: int = 200) -> Response:
        values = plain({"token": self._visits.token(number), "error": error})
        response = HTMLResponse(rendered("login.html", **values), status)
        if cookie:
            self._set_cookie(response, self._login_cookie, cookie)
        return response

    async def _log_in(self, request: Request) -> Response:
        old_number, number = (await self._visitor(request))[0], self._login_number(request)
        form = await read_form(request, MOST_STRANGERS_BYTES)
        if number is None or not self._is_ours(request, number, form["token"]):
            cookie = self._visits.new_cookie()
            return self._login_page(
                cookie.partition(".")[0], cookie, "The login page was open for too long. Try again.", 403
            )
        try:
            visit = await self._door.log_in(form["user"], form["password"], _peer(request))
        except LoginRefused as refused:
            hint = f" {refused.hint}" if refused.hint else ""
            return self._login_page(
                number, error=f"{refused.message[:1].upper()}{refused.message[1:]}.{hint}", status=403
            )
        if old_number is not None:
            self._visits.end(old_number)
        response = RedirectResponse(_HOME[visit.role], 303)
        self._set_cookie(response, self._cookie, self._visits.begin(visit))
        return response

    async def _log_out(self, request: Request) -> Response:
        number, visit = await self._visitor(request)
        form = await read_form(request, MOST_STRANGERS_BYTES)
        response = RedirectResponse("/login", 303)
        if number is not None and visit is not None and self._is_ours(request, number, form["token"]):
            self._visits.end(number)
            self._set_cookie(response, self._cookie, self._visits.new_cookie())
        return response

    def _page(self, handler: Handler, role: Role) -> Callable[[Request], Awaitable[Response]]:
        """A page for this role alone."""

        async def answer(request: Request) -> Response:
            number, visit = await self._visitor(request)
            if visit is None or number is None:
                return RedirectResponse("/login", 303)
            if visit.role != role:
                return _message(404, "There is no such page", f"You are logged in as the {visit.role} {visit.user}.")
            house = self._find_house()
            if house is None:
                return _message(503, "The proxy is starting up", "The database or the twin is not ready. Try again.")
            page = Page(request, house, self._visits, number, visit)
            if request.method == "POST" and not self._is_ours(request, number, (await page.form())["token"]):
                return _message(403, "This form is not one of this session", "Open the page again and repeat it.")
            try:
                return await handler(page)
            except Refusal as refusal:
                return page.render("refused.html", 409, refusal=refusal.without_frames())

        return answer

    async def _visitor(self, request: Request) -> tuple[str | None, Visit | None]:
        """The number of the browser's cookie, and who is logged in with it.

        Users of a gateway have no cookie of ours, which a browser would keep back when another site leads to us, as
        the gateway's own login may: the tokens of their forms are made of their names.
        """
        header = self._door.settings.trusted_header
        trusted = self._door.find_trusted(request.headers.getlist(header) if header else (), _peer(request))
        if trusted is not None:
            return f"of the gateway: {trusted.user}", trusted
        number = self._visits.number_of(request.cookies.get(self._cookie, ""))
        visit = None if number is None else self._visits.find(number, asyncio.get_running_loop().time())
        if visit is not None and not await self._door.is_current(visit, _peer(request)):
            self._visits.end(str(number))
            visit = None
        return number, visit

    def _is_ours(self, request: Request, number: str, token: str) -> bool:
        """Return whether a form came from a page of ours: by its token, and by what the browser says of its origin."""
        origin, host = request.headers.get("origin"), request.headers.get("host", "")
        of_ours = origin is None or origin.partition("://")[2] == host or self._door.trusts(_peer(request))
        same_site = request.headers.get("sec-fetch-site", "same-origin") == "same-origin"
        return of_ours and same_site and self._visits.is_token(number, token)

    def _set_cookie(self, response: Response, name: str, cookie: str) -> None:
        response.set_cookie(name, cookie, path="/", secure=self._has_tls, httponly=True, samesite="strict")


class _Guard:
    """Around the application: headers of every answer, a deadline, and no word of what went wrong inside."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        async def send_with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in _HEADERS.items():
                    headers.setdefault(name, value)
            await send(message)

        try:
            async with asyncio.timeout(_ANSWER_SECONDS):
                await self._app(scope, receive, send_with_headers)
        except Exception as error:  # noqa: BLE001 - whatever it is: its message may quote a statement
            frames = traceback.extract_tb(error.__traceback__)
            place = f"{Path(frames[-1].filename).name}:{frames[-1].lineno}" if frames else "unknown"
            warn("console_failed", kind=type(error).__name__, place=place)


def _message(status: int, title: str, text: str) -> Response:
    return HTMLResponse(rendered("message.html", **plain({"title": title, "text": text})), status)


async def _not_found(_request: Request, _error: Exception) -> Response:
    return _message(404, "There is no such page", "")


async def _too_large(_request: Request, _error: Exception) -> Response:
    return _message(413, "The form is too large, or cannot be read", "")


async def _failed(_request: Request, _error: Exception) -> Response:
    return _message(500, "This page failed", "The log of the proxy says where.")


async def _static(request: Request) -> Response:
    file = _STATIC.get(request.path_params["name"])
    if file is None:
        return PlainTextResponse("not found", 404)
    return Response(file[0], media_type=file[1], headers={"Cache-Control": "no-cache"})


def _peer(request: Request) -> str:
    return "" if request.client is None else request.client.host
