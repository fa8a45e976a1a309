"""Access: who may see a workbench, and which page may ask it.

A workbench listens on this machine alone, but every user of the machine can reach it there, and so
can every page that a browser shows. Browsers send a cookie to all ports of a host, also to the one
where another user serves a page. So the secret is no cookie: it goes in a header, which only a
script of this very origin can set, and stays in the storage of the browser's tab. The tab gets it
for the token of the printed address, once. The token stands behind a #, which no browser sends.

A request has to name a host that is expected, or another site's name could be pointed at this
machine (DNS rebinding), and has to come from a page of the workbench itself. The page that loads
all others contains no data, so everybody may have it."""

from __future__ import annotations

import hmac
import secrets
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import PlainTextResponse, Response

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

LOOPBACK = frozenset({"127.0.0.1", "localhost", "::1"})
TOKEN = "token"
"""Name of the token in the printed address."""
SECRET = "x-groundfault-secret"
"""Header of a request's secret, or of the token that is exchanged for it."""
ENTRY = "/enter"
"""Where the token is exchanged."""
MAX_BODY = 65_536
"""Bytes of a request's body: the longest form, a note of 4,000 characters, has a third of it."""

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
_CLOSED = (
    "Open the address that groundfault printed: it has the token, which opens one tab once. For "
    "another browser start the workbench again."
)

_FOREIGN = (
    "A request has to come from a page of this workbench: paste the address that groundfault "
    "printed into the address bar."
)


@dataclass
class Access:
    """The secret that a visitor has to show.

    Attributes
    ----------
    hosts : frozenset of str
        Names that a request may address; a port does not matter.
    token : str or None
        Part of the printed address; None once it was used.
    secret : str
        Sent with every request by the tab that has used the token.
    """

    hosts: frozenset[str] = LOOPBACK
    token: str | None = field(default_factory=lambda: secrets.token_urlsafe(24))
    secret: str = field(default_factory=lambda: secrets.token_urlsafe(24), repr=False)

    def use(self, token: str) -> bool:
        """Return whether this is the token, which then is so no more."""
        matches = self.token is not None and _are_same(token, self.token)
        self.token = None if matches else self.token
        return matches

    def knows(self, headers: Headers) -> bool:
        """Return whether a request has the secret."""
        return _are_same(headers.get(SECRET, ""), self.secret)

    def refuse(self, method: str, headers: Headers) -> tuple[int, str] | None:
        """Return status and reason if a request is refused even with the right secret."""
        host = headers.get("host", "")
        if _host_name(host) not in self.hosts:
            return 400, "This workbench does not answer to that name; see --allow-host."
        # a browser that says nothing of the site is an old one, or talks plain HTTP to another host
        site = headers.get("sec-fetch-site", "same-origin")
        sites = ("same-origin", "none") if method in _SAFE else ("same-origin",)
        origin = headers.get("origin")
        is_named = method in _SAFE and origin is None
        if site not in sites or not (is_named or urlsplit(origin or "").netloc == host):
            return 403, _FOREIGN
        length = headers.get("content-length", "0")
        if not length.isdecimal() or int(length) > MAX_BODY:
            return 413, f"A request has at most {MAX_BODY:,} bytes."
        return None


class AccessControl:
    """An application for those alone who have its secret.

    Parameters
    ----------
    app : ASGI application
    access : Access
    make_shell : callable
        Takes the scope of a request; returns the page that asks for all others.
    """

    def __init__(
        self, app: ASGIApp, access: Access, make_shell: Callable[[Scope], Response]
    ) -> None:
        self._app, self._access, self._make_shell = app, access, make_shell

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request, or refuse it; every answer has the headers of the policy."""

        async def send_with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in _HEADERS.items():
                    headers.setdefault(name, value)
                headers.setdefault("cache-control", "no-store")
            await send(message)

        answer = self._answer(scope) if scope["type"] == "http" else None
        await (answer or self._app)(scope, receive, send_with_headers)

    def _answer(self, scope: Scope) -> Response | None:
        """Return the answer in the application's place; None lets the request in."""
        headers, method = Headers(scope=scope), scope["method"]
        path = scope["path"].removeprefix(scope.get("root_path", ""))
        refusal = self._access.refuse(method, headers)
        if refusal is not None:
            return PlainTextResponse(refusal[1], refusal[0])
        if method == "POST" and path == ENTRY and self._access.use(headers.get(SECRET, "")):
            return PlainTextResponse(self._access.secret)
        if self._access.knows(headers) or (method in _SAFE and path.startswith("/static/")):
            return None
        accepts = "text/html" in headers.get("accept", "")
        if method == "GET" and headers.get("sec-fetch-mode", "navigate") == "navigate" and accepts:
            return self._make_shell(scope)
        return PlainTextResponse(_CLOSED, 403)


def _are_same(one: str, other: str) -> bool:
    return hmac.compare_digest(one.encode(), other.encode())


def _host_name(host: str) -> str:
    """Return the name in a Host header, without the port."""
    try:
        return urlsplit(f"//{host}").hostname or ""
    except ValueError:
        return ""
