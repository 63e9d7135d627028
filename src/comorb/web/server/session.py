"""Session: the user of a request, by cookie or bearer token, and what they may see and change."""

from __future__ import annotations

import hmac
from collections.abc import AsyncIterator, Callable, Coroutine
from dataclasses import dataclass, replace
from typing import Annotated, Any

from fastapi import Depends, Request, Response
from fastapi.routing import APIRoute
from fastapi.security import APIKeyCookie, HTTPBearer
from starlette.concurrency import run_in_threadpool
from starlette.types import Message

from comorb.web.server.access import COOKIE, Access, User
from comorb.web.server.jobs import Jobs
from comorb.web.server.readers import CancelScope, cancel_on_disconnect
from comorb.web.server.rights import show_data, show_run, view_of
from comorb.web.server.security import SAFE, RefusedError, language_of
from comorb.web.server.store import Row, Store, Table
from comorb.web.server.uploads import read_json
from comorb.web.worker.requests import View

EVERYONE = "*"
# For the description of the API; `current_user` checks them.
WAYS_IN = (
    HTTPBearer(scheme_name="token", auto_error=False),
    APIKeyCookie(name=COOKIE, scheme_name="session", auto_error=False),
)


def count_wrong_try(request: Request) -> None:
    """Count a wrong token or link; too many from one address have to wait."""
    client = request.client.host if request.client else "unknown"
    if request.app.state.access.too_many(client):
        raise RefusedError(429, "session.tries")
    request.app.state.store.audit("", "fail to sign in", client)


def current_user(request: Request) -> User:
    """Return the user; a change by cookie must carry the secret of the page."""
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
    """A route whose body is read, within a limit, once the user is known.

    FastAPI would read and parse all of it first. Routes that take a file read it themselves.
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


@dataclass(frozen=True)
class Caller:
    """The user who sent a request, with the store and the jobs of the server."""

    user: User
    store: Store
    jobs: Jobs

    @classmethod
    def of(cls, request: Request) -> Caller:
        """Return who sent a request."""
        state = request.app.state
        return cls(current_user(request), state.store, state.jobs)

    def may_see(self, row: Row) -> bool:
        """Whether the user may see data, a run or a definition."""
        return row["owner"] in (self.user.name, EVERYONE) or bool(row.get("shared"))

    def visible(self, table: Table, key: str) -> Row:
        """Return data, a run or a definition that the user may see."""
        row = self.store.get(table, key)
        if row is None or not self.may_see(row):
            raise RefusedError(404, "rights.not_shared")
        return row

    def owned(self, table: Table, key: str) -> Row:
        """Return a row that the user may change; what everyone has, an exporter may."""
        row, user = self.visible(table, key), self.user
        if row["owner"] != user.name and not (row["owner"] == EVERYONE and user.may("exporter")):
            raise RefusedError(403, "rights.owner")
        return row

    def finished(self, key: str) -> Row:
        """Return a run that the user may see and that is done."""
        row = self.visible("runs", key)
        if row["state"] != "done":
            raise RefusedError(409, "run.not_done")
        return row

    def restore(self, table: Table, key: str) -> Row:
        """Restore data or a run of the user that was deleted, and return it."""
        row = self.store.put_back(table, key, self.user.name)
        if row is None:
            raise RefusedError(404, "rights.nothing_deleted")
        self.audit(f"restore {'run' if table == 'runs' else table}", key)
        return row

    def audit(self, action: str, target: str) -> None:
        """Write down what the user did to which data, run or definition."""
        self.store.audit(self.user.name, action, target)

    def least(self, view: View | None, *runs: Row) -> int:
        """Return the smallest count of runs that the user is shown; 0 where all are."""
        return self.jobs.least(view_of(self.user, view, *runs))

    def show_run(self, row: Row) -> Row:
        """Return what the user may know of a run."""
        return show_run(row, self.user, self.jobs.min_cell)

    def show_data(self, row: Row) -> Row:
        """Return what the user may know of data."""
        return show_data(row, self.user, self.jobs.min_cell)


def _with_role(role: str) -> object:
    def check(request: Request, user: Annotated[User, Depends(current_user)]) -> Caller:
        if not user.may(role):
            raise RefusedError(403, "rights.role", role=role)
        return Caller(user, request.app.state.store, request.app.state.jobs)

    return Depends(check)


async def _scope(
    request: Request, user: Annotated[User, Depends(current_user)]
) -> AsyncIterator[CancelScope]:
    async with cancel_on_disconnect(request, CancelScope(user.name, user.language)) as scope:
        yield scope


Viewer = Annotated[Caller, _with_role("viewer")]
Analyst = Annotated[Caller, _with_role("analyst")]
Exporter = Annotated[Caller, _with_role("exporter")]
# Passed to whatever has a worker do something; cancelled when the client disconnects.
TheScope = Annotated[CancelScope, Depends(_scope)]
