"""Pages: the frame of each, filled by its module in the browser; signing in; the API's page."""

from __future__ import annotations

import json
from typing import Any
from urllib.parse import parse_qs

from fastapi import APIRouter, Request
from fastapi.responses import HTMLResponse, JSONResponse, RedirectResponse, Response

from comorb import __version__
from comorb.fields import Bounds, Codes, Days, Flag, Number, Texts, rules_of
from comorb.records.spec import CohortSpec
from comorb.views.words import explorer_texts, languages
from comorb.web.server.access import COOKIE, LOCAL, Access
from comorb.web.server.security import TEMPLATES, RefusedError, language_of
from comorb.web.server.session import Analyst, Caller, Viewer, count_wrong_try
from comorb.web.server.store import Store

router = APIRouter(include_in_schema=False)
_LONGEST_FORM = 10_000
_FORMS = (
    *((Days, "days"), (Bounds, "bounds"), (Flag, "flag"), (Number, "number")),
    *((Codes, "codes"), (Texts, "list")),
)


@router.get("/texts.json")
def all_texts() -> JSONResponse:
    """Return every text in every language."""
    return JSONResponse({language: explorer_texts(language) for language in languages()})


@router.get("/")
def home(request: Request, caller: Viewer) -> HTMLResponse:
    """Show the data and the runs."""
    return _frame(request, caller, "home")


@router.get("/data/{key}")
def data(request: Request, key: str, caller: Analyst) -> HTMLResponse:
    """Show how data were read, and choose the cohort."""
    caller.visible("data", key)
    return _frame(request, caller, "data", key)


@router.get("/runs/{key}")
def run(request: Request, key: str, caller: Viewer) -> HTMLResponse:
    """Show a run, or its progress."""
    caller.visible("runs", key)
    return _frame(request, caller, "run", key)


@router.get("/compare/{one}/{two}")
def compare(request: Request, one: str, two: str, caller: Viewer) -> HTMLResponse:
    """Show two runs side by side."""
    for key in (one, two):
        caller.visible("runs", key)
    return _frame(request, caller, "compare", f"{one}/{two}")


@router.get("/docs")
def docs(request: Request, caller: Viewer) -> HTMLResponse:
    """Show what the API can do."""
    paths = request.app.openapi()["paths"]
    calls = [
        {"method": method.upper(), "path": path, "about": call.get("description", "")}
        for path, methods in paths.items()
        for method, call in methods.items()
    ]
    return _page(request, "docs.html", {"calls": calls, "version": __version__})


@router.get("/api/v1/openapi.json")
def openapi(request: Request, caller: Viewer) -> JSONResponse:
    """Describe the API."""
    return JSONResponse(request.app.openapi())


@router.get("/open")
def open_link(request: Request, key: str = "", data: str = "") -> Response:
    """Begin a session with the one-time link, on some data when they are named."""
    store: Store = request.app.state.store
    session = request.app.state.access.use_link(key)
    if session is None:
        count_wrong_try(request)
        raise RefusedError(403, "session.link")
    store.audit(LOCAL, "sign in", "")
    to = f"/data/{data}" if data and store.get("data", data) else "/"
    return _with_cookie(request, _page(request, "open.html", {"to": to}), session)


@router.get("/login")
def login(request: Request) -> HTMLResponse:
    """Ask for a token."""
    return _page(request, "login.html", {"wrong": False})


@router.post("/login")
async def sign_in(request: Request) -> Response:
    """Begin a session with a token."""
    access: Access = request.app.state.access
    body = b""
    async for chunk in request.stream():
        body += chunk
        if len(body) > _LONGEST_FORM:
            raise RefusedError(413, "session.token_too_long")
    fields = parse_qs(body.decode("ascii", "replace"))
    user = access.user_of_token(fields.get("token", [""])[0].strip())
    if user is None:
        count_wrong_try(request)
        page = _page(request, "login.html", {"wrong": True})
        page.status_code = 401
        return page
    request.app.state.store.audit(user.name, "sign in", "")
    return _with_cookie(request, RedirectResponse("/", 303), access.open_session(user.name))


@router.post("/api/v1/logout", status_code=204)
def sign_out(request: Request, caller: Viewer) -> Response:
    """End the session."""
    request.app.state.access.close_session(caller.user.session)
    caller.audit("sign out", "")
    response = Response(status_code=204)
    response.delete_cookie(COOKIE)
    return response


def _with_cookie(request: Request, response: Response, session: str) -> Response:
    secure = request.url.scheme == "https"
    response.set_cookie(COOKIE, session, 12 * 3600, secure=secure, httponly=True, samesite="strict")
    return response


def _frame(request: Request, caller: Caller, page: str, key: str = "") -> HTMLResponse:
    settings = request.app.state.settings
    values = {
        "page": page,
        "key": key,
        "user": caller.user,
        "min_cell": settings.min_cell,
        "limit": settings.upload_limit,
        "rules": json.dumps(_declared_rules()),
        "languages": languages(),
    }
    return _page(request, "frame.html", values)


def _declared_rules() -> list[dict[str, Any]]:
    """Return what the pages need of each declared rule of a cohort, so that they list none."""
    return [
        {
            "name": rule.name,
            "form": next((name for form, name in _FORMS if isinstance(rule.form, form)), "text"),
            "usual": rule.default,
            "coding": rule.part == "coding" and not rule.harmless,  # decides which codes there are
        }
        for rule in rules_of(CohortSpec)
        if rule.web
    ]


def _page(request: Request, template: str, values: dict[str, Any]) -> HTMLResponse:
    language = language_of(request)
    texts = explorer_texts(language)
    return HTMLResponse(TEMPLATES.get_template(template).render(lang=language, t=texts, **values))
