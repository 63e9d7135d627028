"""The journal: every pass of a fit in a file, so that an interrupted fit can go on.

A fit follows from its passes to the last bit, and a pass is named by the digest of what is added
up. To go on is to run the same fit again: what the journal holds is not made again.

The file is a line of text and then entries, each written and flushed whole::

    comorb journal 2 <identity of the data>
    key (32 bytes)  length (8)  what the pass came to, noted  SHA-256 of all that (32)
"""

from __future__ import annotations

import os
from collections.abc import Callable
from hashlib import sha256
from io import BytesIO
from typing import Any

from comorb.engines.partial_sums import decode_result, encode_result
from comorb.errors import StorageError
from comorb.remote import Place, Remote, place_of

_TITLE = "comorb journal 2 "
_DIGEST = 32
_LENGTH = 8


class FileJournal:
    """The passes of a fit on disk; an entry that an interruption cut off is left out.

    Parameters
    ----------
    path : path, optional
        The file, which is made when it isn't there; None keeps nothing beyond this process. One
        in a store is written anew by every pass, as a store adds nothing to a file.
    data : str
        The `identity` of the rows; a journal of other rows is refused.
    tell : callable, optional
        Is told of every pass, with its number.

    Attributes
    ----------
    passes : int
        Passes over the rows that were really made, with those under way.
    recalled : int
        Passes that need not be made, as what they came to was known.
    """

    def __init__(
        self,
        path: str | Place | None = None,
        data: str = "",
        tell: Callable[[int], None] | None = None,
    ) -> None:
        self.passes = 0
        self.recalled = 0
        self._tell = tell
        self._known: dict[bytes, bytes] = {}
        self._path = None if path is None else place_of(path)
        if self._path is None:
            return
        title = f"{_TITLE}{data}\n".encode()
        if isinstance(self._path, Remote):
            content = self._path.read_bytes() if self._path.is_file() else title
            self._content = content[: self._read(content, title)]
            return
        if not self._path.exists() or not self._path.stat().st_size:
            self._path.write_bytes(title)
        os.truncate(self._path, self._read(self._path.read_bytes(), title))

    def begin(self) -> None:
        """Count a pass over the rows."""
        self.passes += 1
        if self._tell is not None:
            self._tell(self.passes + self.recalled)

    def recall(self, key: bytes) -> Any:
        """Return what a pass came to, or None when it was not made yet."""
        known = self._known.get(key)
        if known is None:
            return None
        self.recalled += 1
        return decode_result(known)

    def keep(self, key: bytes, result: Any) -> None:
        """Keep what a pass came to, on the disk too where there is a file."""
        content = self._known[key] = encode_result(result)
        if self._path is None:
            return
        entry = key + len(content).to_bytes(_LENGTH, "little") + content
        entry += sha256(entry).digest()
        if isinstance(self._path, Remote):
            self._content += entry
            self._path.send(BytesIO(self._content))
            return
        try:
            with self._path.open("ab") as file:
                file.write(entry)
                file.flush()
                os.fsync(file.fileno())
        except OSError as error:
            raise StorageError(
                f"{self._path} can't be written: {error.strerror or error}. Make room and run the "
                "same command again: it goes on from the last whole pass."
            ) from None

    def _read(self, content: bytes, title: bytes) -> int:
        """Read the whole entries, and return where they end."""
        if not content.startswith(title):
            raise StorageError(
                f"{self._path} is no journal of these records; name another file, or remove it to "
                "begin anew."
            )
        place = len(title)
        while True:
            start = place + _DIGEST + _LENGTH
            length = int.from_bytes(content[place + _DIGEST : start], "little")
            end = start + length + _DIGEST
            seal = sha256(content[place : end - _DIGEST]).digest()
            if end > len(content) or seal != content[end - _DIGEST : end]:
                return place
            self._known[content[place : place + _DIGEST]] = content[start : end - _DIGEST]
            place = end
