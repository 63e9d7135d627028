"""Guard: what every request meets first: allowed hosts, foreign forms, and safe headers."""

from __future__ import annotations

from collections.abc import Collection
from urllib.parse import SplitResult, urlsplit

from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import Request
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from comorb.web.server.refusals import RefusedError, answer

SAFE = ("GET", "HEAD", "OPTIONS")
_HEADERS = {
    "content-security-policy": "default-src 'self'; frame-ancestors 'none'; form-action 'self'; "
    "base-uri 'none'",
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    "referrer-policy": "same-origin",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "cache-control": "no-cache",
}


def _split(address: str) -> SplitResult:
    """Return the parts of an address; one that is none has none."""
    try:
        return urlsplit(address)
    except ValueError:
        return urlsplit("")


class Guard:
    """Refuses hosts that are not ours and changes that other sites ask for; adds headers."""

    def __init__(self, app: ASGIApp, hosts: Collection[str]) -> None:
        self._app, self._hosts = app, frozenset(hosts)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Let a request through, or answer it here."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return

        async def with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                if scope["path"].startswith("/api/"):
                    headers["cache-control"] = "no-store"
                for name, value in _HEADERS.items():
                    headers.setdefault(name, value)
            await send(message)

        refused = self._refused(scope)
        app = self._app if refused is None else answer(Request(scope), refused)
        await app(scope, receive, with_headers)

    def _refused(self, scope: Scope) -> RefusedError | None:
        if "\0" in scope["path"]:
            return RefusedError(400, "This address can't be.")
        headers = Headers(scope=scope)
        host = headers.get("host", "")
        if (_split(f"//{host}").hostname or "").lower() not in self._hosts:
            return RefusedError(400, "This server does not answer to that address.")
        origin = headers.get("origin")
        site = headers.get("sec-fetch-site", "same-origin")
        foreign = site not in ("same-origin", "none") or (
            origin is not None and _split(origin).netloc != host
        )
        if scope["method"] not in SAFE and foreign:
            return RefusedError(403, "This request came from another site, so nothing was changed.")
        return None
