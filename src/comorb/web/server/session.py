"""Session: who asks, by cookie or bearer token, and what of the store they may see and change."""

from __future__ import annotations

import hmac
from collections.abc import AsyncIterator
from typing import Annotated

from fastapi import Depends, Request
from fastapi.security import APIKeyCookie, HTTPBearer

from comorb.web.server.access import COOKIE, Access, User
from comorb.web.server.guard import SAFE
from comorb.web.server.jobs import Jobs
from comorb.web.server.readers import Errand, followed
from comorb.web.server.refusals import RefusedError, language_of
from comorb.web.server.store import Row, Store, Table

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
        raise RefusedError(429, "Too many wrong tries; wait a minute.")
    _store(request).audit("", "fail to sign in", client)


def current_user(request: Request) -> User:
    """Return who asks; a change through a cookie must bring the page's secret along."""
    access: Access = request.app.state.access
    scheme, _, token = request.headers.get("authorization", "").partition(" ")
    if scheme.lower() == "bearer":
        user = access.user_of_token(token)
        if user is None:
            count_wrong_try(request)
            raise RefusedError(401, "That token is not known here.")
        return user
    user = access.user_of_session(request.cookies.get(COOKIE, ""))
    if user is None:
        raise RefusedError(401, "Sign in first.")
    secret = request.headers.get("x-csrf-token", "")
    if request.method not in SAFE and not hmac.compare_digest(secret.encode(), user.csrf.encode()):
        raise RefusedError(
            403, "This request did not come from a page of ours; reload and try again."
        )
    return user


def _with_role(role: str) -> object:
    def check(user: Annotated[User, Depends(current_user)]) -> User:
        if not user.may(role):
            raise RefusedError(403, f"This needs the role {role}; ask whoever runs this server.")
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


async def _errand(
    request: Request, user: Annotated[User, Depends(current_user)]
) -> AsyncIterator[Errand]:
    async with followed(request, Errand(user.name, language_of(request))) as errand:
        yield errand


TheStore = Annotated[Store, Depends(_store)]
TheJobs = Annotated[Jobs, Depends(_jobs)]
# What a request has a worker do; it is given up when the client leaves.
TheErrand = Annotated[Errand, Depends(_errand)]


def may_see(row: Row, user: User) -> bool:
    """Whether a user may see data or a run."""
    return row["owner"] in (user.name, EVERYONE) or bool(row.get("shared"))


def visible(store: Store, table: Table, key: str, user: User) -> Row:
    """Return data or a run that a user may see."""
    row = store.get(table, key)
    if row is None or not may_see(row, user):
        raise RefusedError(404, "There is no such page; it may have been deleted.")
    return row


def owned(store: Store, table: Table, key: str, user: User) -> Row:
    """Return data or a run that a user may change; what everyone has, an exporter may."""
    row = visible(store, table, key, user)
    if row["owner"] != user.name and not (row["owner"] == EVERYONE and user.may("exporter")):
        raise RefusedError(403, "Only its owner may change this.")
    return row


def brought_back(store: Store, table: Table, key: str, user: User) -> Row:
    """Return data or a run of a user that was deleted, and is there again."""
    row = store.put_back(table, key, user.name)
    if row is None:
        raise RefusedError(404, "It can't be brought back any more; it was deleted for good.")
    store.audit(user.name, f"restore {'run' if table == 'runs' else table}", key)
    return row


def finished(store: Store, key: str, user: User) -> Row:
    """Return a run that a user may see and that is done."""
    row = visible(store, "runs", key, user)
    if row["state"] != "done":
        raise RefusedError(409, "This run is not done yet.")
    return row
