"""Security middleware: allowed hosts, foreign forms, safe headers, and errors with their status."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path
from typing import Any
from urllib.parse import SplitResult, urlsplit

from fastapi import Request
from fastapi.responses import HTMLResponse, JSONResponse, Response
from jinja2 import Environment, FileSystemLoader
from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from comorb.errors import ComorbError
from comorb.messages import render
from comorb.views.words import explorer_texts, languages

TEMPLATES = Environment(
    loader=FileSystemLoader(Path(__file__).parents[1] / "templates"), autoescape=True
)


class RefusedError(ComorbError):
    """A request that is not granted, with its status."""

    def __init__(self, status: int, text: str, /, **values: Any) -> None:
        super().__init__(text, **values)
        self.status = status


def language_of(request: Request) -> str:
    """Return the language of a request: the one that was chosen, or that the browser prefers."""
    accepted = request.headers.get("accept-language", "").split(",")
    wanted = [request.cookies.get("comorb_lang", ""), *accepted]
    return next((part[:2] for part in wanted if part[:2] in languages()), "en")


def answer(request: Request, error: RefusedError) -> Response:
    """Return what a refused request gets, in its language: JSON under /api/, else a page."""
    language = language_of(request)
    message = render(error.message, language)
    if request.url.path.startswith("/api/"):
        return JSONResponse({"error": message}, error.status)
    page = TEMPLATES.get_template("error.html").render(
        status=error.status, message=message, lang=language, t=explorer_texts(language)
    )
    return HTMLResponse(page, error.status)


async def refuse(request: Request, error: Exception) -> Response:
    """Answer a request that met a `RefusedError`."""
    assert isinstance(error, RefusedError)  # noqa: S101 - for the type checker: it is registered so
    if error.status == 401 and not request.url.path.startswith("/api/"):
        return Response(status_code=303, headers={"location": "/login"})
    return answer(request, error)


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


class SecurityMiddleware:
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
            return RefusedError(400, "request.address")
        headers = Headers(scope=scope)
        host = headers.get("host", "")
        if (_split(f"//{host}").hostname or "").lower() not in self._hosts:
            return RefusedError(400, "request.host")
        origin = headers.get("origin")
        site = headers.get("sec-fetch-site", "same-origin")
        foreign = site not in ("same-origin", "none") or (
            origin is not None and _split(origin).netloc != host
        )
        if scope["method"] not in SAFE and foreign:
            return RefusedError(403, "request.other_site")
        return None
