"""Refusals: the right status with a sentence, as JSON for programs and as a page for people."""

from __future__ import annotations

from pathlib import Path

from fastapi import Request
from fastapi.responses import HTMLResponse, JSONResponse, Response
from jinja2 import Environment, FileSystemLoader

from comorb.errors import ComorbError
from comorb.insight.views.texts import explorer_texts, languages
from comorb.insight.views.words import Words

TEMPLATES = Environment(
    loader=FileSystemLoader(Path(__file__).parents[1] / "templates"), autoescape=True
)


class RefusedError(ComorbError):
    """A request that is not granted, with its status."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status


def language_of(request: Request) -> str:
    """Return the language of who asks: the one that was chosen, or that the browser prefers."""
    accepted = request.headers.get("accept-language", "").split(",")
    wanted = [request.cookies.get("comorb_lang", ""), *accepted]
    return next((part[:2] for part in wanted if part[:2] in languages()), "en")


def answer(request: Request, error: RefusedError) -> Response:
    """Return what a refused request gets, in its language: JSON under /api/, else a page."""
    language = language_of(request)
    message = Words(language).said(str(error))
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
