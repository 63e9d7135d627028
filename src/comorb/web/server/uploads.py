"""Uploads: the body of a request, read within its limit, as JSON or to a file."""

from __future__ import annotations

import asyncio
import secrets
from collections import Counter
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from pathlib import Path

from starlette.requests import Request

from comorb.messages import Message
from comorb.records.sources.files import ENDINGS, ending_of
from comorb.web.server.security import RefusedError

MAX_JSON = 1_000_000  # bytes of a body that is no file
_AT_ONCE = 4  # that a user may send
_SECONDS = 60.0  # that a client may be silent


class Uploads:
    """How many files each user is sending."""

    def __init__(self) -> None:
        self._sending: Counter[str] = Counter()

    @contextmanager
    def one_more(self, user: str) -> Iterator[None]:
        """Count a file within the block; too many at once are refused."""
        if self._sending[user] >= _AT_ONCE:
            raise RefusedError(429, "upload.several")
        self._sending[user] += 1
        try:
            yield
        finally:
            self._sending[user] -= 1


def known_ending(name: str) -> str:
    """Return how the name of a file of records ends; others are refused."""
    ending = ending_of(name)
    if not ending:
        endings = ", ".join(f".{end}" for end in ENDINGS)
        raise RefusedError(415, "upload.ending", endings=endings)
    return ending


async def receive(request: Request, user: str, path: Path) -> None:
    """Write the body of a request to a file, up to the limit, which has its name once it is whole.

    Until then it is a draft, of which a killed server leaves no more than the next one removes.
    """
    limit = request.app.state.settings.upload_limit
    draft = path.with_name(f".{path.name}.{secrets.token_hex(4)}")
    try:
        with request.app.state.uploads.one_more(user), draft.open("xb") as file:
            message = Message("upload.too_large", mb=limit / 1e6)
            async for chunk in _chunks(request, limit, message):
                file.write(chunk)
            if not file.tell():
                raise RefusedError(422, "upload.empty")
        draft.rename(path)
    finally:
        draft.unlink(missing_ok=True)


async def read_json(request: Request) -> bytes:
    """Return the body of a request that is no upload, up to a limit."""
    message = Message("request.too_large", mb=MAX_JSON / 1e6)
    return b"".join([chunk async for chunk in _chunks(request, MAX_JSON, message)])


async def _chunks(request: Request, limit: int, message: str) -> AsyncIterator[bytes]:
    """Yield the body of a request; one over the limit, or a silent client, is refused."""
    announced = request.headers.get("content-length", "0")
    if not announced.isdecimal():
        raise RefusedError(400, "upload.length")
    if int(announced) > limit:
        raise RefusedError(413, message)
    received, chunks = 0, request.stream()
    while True:
        try:
            chunk = await asyncio.wait_for(anext(chunks, None), _SECONDS)
        except TimeoutError:
            raise RefusedError(408, "upload.silent", seconds=_SECONDS) from None
        if chunk is None:
            return
        received += len(chunk)
        if received > limit:
            raise RefusedError(413, message)
        yield chunk
