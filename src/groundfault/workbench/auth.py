"""Doors: who may see a workbench, and which page may write to it.

A workbench listens on this machine alone, but every page that a browser shows and every user of
the machine can reach it there. So a visitor needs the token of the printed address, once, and then
the cookie that it is exchanged for; a request has to name a host that is expected, or another
site's name could be pointed at this machine (DNS rebinding); and what changes something has to come
from a page of the workbench itself."""

from __future__ import annotations

import hmac
import secrets
from dataclasses import dataclass, field
from http.cookies import CookieError, SimpleCookie
from typing import TYPE_CHECKING
from urllib.parse import parse_qsl, urlencode, urlsplit

from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import PlainTextResponse, RedirectResponse, Response

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

LOOPBACK = frozenset({"127.0.0.1", "localhost", "::1"})
TOKEN = "token"
"""Name of the token in the printed address."""

_SAFE = frozenset({"GET", "HEAD", "OPTIONS"})
_HEADERS = {
    "content-security-policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; "
        "connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
    ),
    "x-content-type-options": "nosniff",
    # not no-referrer: forms would then name no origin, and could not be told from a stranger's
    "referrer-policy": "same-origin",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
}


@dataclass
class Doors:
    """What a visitor has to show.

    Attributes
    ----------
    hosts : frozenset of str
        Names that a request may address; a port does not matter.
    cookie : str
        Name of the cookie: those of two workbenches on one machine must differ.
    token : str or None
        What the printed address holds; None once it was used.
    secret : str
        What the cookie holds.
    """

    hosts: frozenset[str] = LOOPBACK
    cookie: str = "groundfault"
    token: str | None = field(default_factory=lambda: secrets.token_urlsafe(24))
    secret: str = field(default_factory=lambda: secrets.token_urlsafe(24), repr=False)

    def use(self, token: str) -> bool:
        """Whether this is the token, which then is so no more."""
        matches = self.token is not None and _are_same(token, self.token)
        self.token = None if matches else self.token
        return matches

    def knows(self, headers: Headers) -> bool:
        """Whether a request has the cookie."""
        try:
            cookies = SimpleCookie(headers.get("cookie", ""))
        except CookieError:
            return False
        return self.cookie in cookies and _are_same(cookies[self.cookie].value, self.secret)

    def refuse(self, method: str, headers: Headers) -> tuple[int, str] | None:
        """The status and the reason for which a request is refused before its cookie is read."""
        host = headers.get("host", "")
        if _host_name(host) not in self.hosts:
            return 400, "This workbench does not answer to that name; see --allow-host."
        if method in _SAFE:
            return None
        origin = urlsplit(headers.get("origin", "")).netloc
        if origin != host or headers.get("sec-fetch-site", "same-origin") != "same-origin":
            return 403, "What changes something has to come from a page of this workbench."
        return None


class DoorKeeper:
    """An application behind doors.

    Parameters
    ----------
    app : ASGI application
    doors : Doors
    """

    def __init__(self, app: ASGIApp, doors: Doors) -> None:
        self._app, self._doors = app, doors

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request, or refuse it; every answer has the headers of the doors."""

        async def send_with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in _HEADERS.items():
                    headers.setdefault(name, value)
                headers.setdefault("cache-control", "no-store")
            await send(message)

        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        refusal = self._check(scope)
        await (refusal or self._app)(scope, receive, send_with_headers)

    def _check(self, scope: Scope) -> Response | None:
        """What is answered in the application's place; None lets the request in."""
        headers = Headers(scope=scope)
        refusal = self._doors.refuse(scope["method"], headers)
        if refusal is not None:
            return PlainTextResponse(refusal[1], refusal[0])
        query = parse_qsl(scope["query_string"].decode("latin-1"), keep_blank_values=True)
        token = dict(query).get(TOKEN)
        if token is not None and scope["method"] == "GET" and self._doors.use(token):
            return self._welcome(scope, [pair for pair in query if pair[0] != TOKEN])
        if self._doors.knows(headers):
            return None
        return PlainTextResponse(
            "Open the address that groundfault printed: it has the token, which opens one browser "
            "once. For another browser start the workbench again.",
            403,
        )

    def _welcome(self, scope: Scope, query: list[tuple[str, str]]) -> Response:
        """The same address without the token, and the cookie."""
        # the path alone: // would lead to another host
        path = "/" + scope["path"].lstrip("/")
        answer = RedirectResponse(f"{path}?{urlencode(query)}" if query else path, 303)
        root = scope.get("root_path") or "/"
        answer.set_cookie(
            self._doors.cookie, self._doors.secret, path=root, httponly=True, samesite="strict"
        )
        return answer


def _are_same(one: str, other: str) -> bool:
    return hmac.compare_digest(one.encode(), other.encode())


def _host_name(host: str) -> str:
    """The name in a Host header, without its port."""
    try:
        return urlsplit(f"//{host}").hostname or ""
    except ValueError:
        return ""
