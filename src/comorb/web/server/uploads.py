"""Uploads: the body of a request becomes a file, within what one user may send at once."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncGenerator, Iterator
from contextlib import contextmanager
from pathlib import Path

from starlette.requests import Request

from comorb.records.sources.endings import ENDINGS, ending_of
from comorb.web.server.refusals import RefusedError

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
            raise RefusedError(429, "You are sending several files already; wait for one of them.")
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
        raise RefusedError(415, f"Expected a file that ends with one of {endings}.")
    return ending


async def receive(request: Request, user: str, path: Path) -> None:
    """Write the body of a request to a file, up to the limit in bytes that really come."""
    limit = request.app.state.settings.upload_limit
    announced = request.headers.get("content-length", "0")
    if not announced.isdecimal():
        raise RefusedError(400, "The length of the file is not a number.")
    if int(announced) > limit:
        raise RefusedError(413, _too_large(limit))
    received = 0
    with request.app.state.uploads.one_more(user), path.open("xb") as file:
        chunks = request.stream()
        while (chunk := await _next(chunks)) is not None:
            received += len(chunk)
            if received > limit:
                raise RefusedError(413, _too_large(limit))
            file.write(chunk)
    if not received:
        raise RefusedError(422, "The file is empty; choose another.")


async def _next(chunks: AsyncGenerator[bytes, None]) -> bytes | None:
    """Return what comes next; None at the end, and a client that is silent for long is refused."""
    try:
        return await asyncio.wait_for(anext(chunks, None), _SECONDS)
    except TimeoutError:
        raise RefusedError(
            408, f"Nothing came for {_SECONDS:.0f} seconds, so nothing was kept; send it again."
        ) from None


def _too_large(limit: int) -> str:
    return f"The file is larger than {limit / 1e6:,.0f} MB; ask for it to be mounted instead."
