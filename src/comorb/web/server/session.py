"""Session: who asks, by cookie or bearer token, and what of the store they may see and change."""

from __future__ import annotations

import hmac
from collections.abc import AsyncIterator, Callable, Coroutine
from dataclasses import replace
from typing import Annotated, Any

from fastapi import Depends, Request, Response
from fastapi.routing import APIRoute
from fastapi.security import APIKeyCookie, HTTPBearer
from starlette.concurrency import run_in_threadpool
from starlette.types import Message

from comorb.web.server.access import COOKIE, Access, User
from comorb.web.server.jobs import Jobs
from comorb.web.server.readers import CancelScope, cancel_on_disconnect
from comorb.web.server.security import SAFE, RefusedError, language_of
from comorb.web.server.store import Row, Store, Table
from comorb.web.server.uploads import read_json

EVERYONE = "*"
# As the description of the API names them; `current_user` is who looks at them.
WAYS_IN = (
    HTTPBearer(scheme_name="token", auto_error=False),
    APIKeyCookie(name=COOKIE, scheme_name="session", auto_error=False),
)


def count_wrong_try(request: Request) -> None:
    """Count a wrong token or link; too many from one address have to wait."""
    access: Access = request.app.state.access
    client = request.client.host if request.client else "unknown"
    if access.too_many(client):
        raise RefusedError(429, "session.tries")
    _store(request).audit("", "fail to sign in", client)


def current_user(request: Request) -> User:
    """Return who asks; a change through a cookie must bring the page's secret along."""
    access: Access = request.app.state.access
    scheme, _, token = request.headers.get("authorization", "").partition(" ")
    if scheme.lower() == "bearer":
        user = access.user_of_token(token)
        if user is None:
            count_wrong_try(request)
            raise RefusedError(401, "session.token")
        return replace(user, language=language_of(request))
    user = access.user_of_session(request.cookies.get(COOKIE, ""))
    if user is None:
        raise RefusedError(401, "session.sign_in")
    secret = request.headers.get("x-csrf-token", "")
    if request.method not in SAFE and not hmac.compare_digest(secret.encode(), user.csrf.encode()):
        raise RefusedError(403, "request.not_ours")
    return replace(user, language=language_of(request))


class SignedInRoute(APIRoute):
    """A route whose body is read, within a limit, once it is known who asks.

    FastAPI would read and parse all of it first. Routes that take a file have no body to parse:
    they read it themselves.
    """

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        """Return what answers a request."""
        handle = super().get_route_handler()
        if self.body_field is None:
            return handle

        async def sign_in_first(request: Request) -> Response:
            await run_in_threadpool(current_user, request)
            body = [await read_json(request)]

            async def replay() -> Message:
                if body:
                    return {"type": "http.request", "body": body.pop(), "more_body": False}
                return await request.receive()

            return await handle(Request(request.scope, replay))

        return sign_in_first


def _with_role(role: str) -> object:
    def check(user: Annotated[User, Depends(current_user)]) -> User:
        if not user.may(role):
            raise RefusedError(403, "rights.role", role=role)
        return user

    return Depends(check)


Viewer = Annotated[User, Depends(current_user)]
Analyst = Annotated[User, _with_role("analyst")]
Exporter = Annotated[User, _with_role("exporter")]


def _store(request: Request) -> Store:
    store: Store = request.app.state.store
    return store


def _jobs(request: Request) -> Jobs:
    jobs: Jobs = request.app.state.jobs
    return jobs


async def _scope(
    request: Request, user: Annotated[User, Depends(current_user)]
) -> AsyncIterator[CancelScope]:
    async with cancel_on_disconnect(request, CancelScope(user.name, language_of(request))) as scope:
        yield scope


TheStore = Annotated[Store, Depends(_store)]
TheJobs = Annotated[Jobs, Depends(_jobs)]
# Passed to whatever has a worker do something; cancelled when the client disconnects.
TheScope = Annotated[CancelScope, Depends(_scope)]


def may_see(row: Row, user: User) -> bool:
    """Whether a user may see data or a run."""
    return row["owner"] in (user.name, EVERYONE) or bool(row.get("shared"))


def visible(store: Store, table: Table, key: str, user: User) -> Row:
    """Return data or a run that a user may see."""
    row = store.get(table, key)
    if row is None or not may_see(row, user):
        raise RefusedError(
            404,
            "rights.not_shared",
        )
    return row


def owned(store: Store, table: Table, key: str, user: User) -> Row:
    """Return data or a run that a user may change; what everyone has, an exporter may."""
    row = visible(store, table, key, user)
    if row["owner"] != user.name and not (row["owner"] == EVERYONE and user.may("exporter")):
        raise RefusedError(403, "rights.owner")
    return row


def brought_back(store: Store, table: Table, key: str, user: User) -> Row:
    """Return data or a run of a user that was deleted, and is there again."""
    row = store.put_back(table, key, user.name)
    if row is None:
        raise RefusedError(
            404,
            "rights.nothing_deleted",
        )
    store.audit(user.name, f"restore {'run' if table == 'runs' else table}", key)
    return row


def finished(store: Store, key: str, user: User) -> Row:
    """Return a run that a user may see and that is done."""
    row = visible(store, "runs", key, user)
    if row["state"] != "done":
        raise RefusedError(409, "run.not_done")
    return row
