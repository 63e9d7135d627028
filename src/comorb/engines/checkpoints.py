"""The journal: the result of every pass of a fit in a file, so that an interrupted fit can go on.

A fit follows from its passes to the last bit, and a pass has the digest of its inputs as its key.
To go on is to run the same fit again: a pass whose result the journal holds is not made again.

The file is a line of text and then entries, each written and flushed whole::

    comorb journal 2 <identity of the data>
    key (32 bytes)  length (8)  the result of the pass  SHA-256 of all that (32)
"""

from __future__ import annotations

import json
import os
import zlib
from collections.abc import Callable
from dataclasses import fields, is_dataclass
from hashlib import sha256
from importlib import import_module
from io import BytesIO
from typing import Any

import numpy as np

from comorb.errors import StorageError
from comorb.remote import Place, Remote, place_of

_TITLE = "comorb journal 2 "
_DIGEST, _LENGTH = 32, 8  # bytes
_PACKAGE = "comorb.model."  # where the classes of results are


class FileJournal:
    """The results of a fit's passes on disk; an entry that an interruption cut off is left out.

    Parameters
    ----------
    path : path, optional
        The file, made when it isn't there; None keeps nothing beyond this process. One in a store
        is written anew by every pass, as a store can't append to a file.
    data : str
        The `identity` of the rows; a journal of other rows is refused.
    tell : callable, optional
        Called at every pass, with its number.

    Attributes
    ----------
    passes : int
        Passes made over the rows, with those under way.
    recalled : int
        Passes whose results the journal held.
    """

    def __init__(
        self,
        path: str | Place | None = None,
        data: str = "",
        tell: Callable[[int], None] | None = None,
    ) -> None:
        self.passes = self.recalled = 0
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
        """Return the result of a pass, or None when it was not made yet."""
        known = self._known.get(key)
        if known is None:
            return None
        self.recalled += 1
        return decode_result(known)

    def keep(self, key: bytes, result: Any) -> None:
        """Keep the result of a pass, on disk too where there is a file."""
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
                "journal.write", path=self._path, reason=error.strerror or error
            ) from None

    def _read(self, content: bytes, title: bytes) -> int:
        """Read the whole entries, and return where they end."""
        if not content.startswith(title):
            raise StorageError("journal.other", path=self._path)
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


def encode_result(value: Any) -> bytes:
    """Return the result of a pass as bytes for a file: a line of JSON, and then its arrays.

    >>> decode_result(encode_result([1.5, (None, np.arange(2))]))
    [1.5, (None, array([0, 1]))]
    """
    arrays: list[np.ndarray[Any, Any]] = []
    plan = _encode(value, arrays)
    kinds = [[array.dtype.str, array.shape] for array in arrays]
    line = json.dumps({"plan": plan, "arrays": kinds}, separators=(",", ":"))
    return zlib.compress(b"".join([line.encode(), b"\n", *(one.tobytes() for one in arrays)]), 1)


def decode_result(content: bytes) -> Any:
    """Return the result that `encode_result` wrote; no code runs but to fill in fields."""
    try:
        line, _, rest = zlib.decompress(content).partition(b"\n")
        head = json.loads(line)
        arrays, place = [], 0
        for kind, shape in head["arrays"]:
            form = np.dtype(kind)
            if form.hasobject:
                raise TypeError(kind)
            size = int(np.prod(shape, dtype=np.int64))
            arrays.append(np.frombuffer(rest, form, size, place).reshape(shape).copy())
            place += arrays[-1].nbytes
        return _decode(head["plan"], arrays)
    except (AttributeError, ImportError, LookupError, TypeError, ValueError, zlib.error) as error:
        raise StorageError("journal.entry", error=error) from error


def _encode(value: Any, arrays: list[np.ndarray[Any, Any]]) -> Any:
    if isinstance(value, np.ndarray):
        arrays.append(np.ascontiguousarray(value).reshape(value.shape))
        return {"array": len(arrays) - 1}
    if is_dataclass(value) or hasattr(value, "_fields"):
        kind = type(value)
        held = [_encode(getattr(value, name), arrays) for name in _names(kind)]
        return {"kind": [kind.__module__, kind.__qualname__], "fields": held}
    if isinstance(value, list | tuple):
        return {type(value).__name__: [_encode(one, arrays) for one in value]}
    if isinstance(value, np.generic):
        value = value.item()
    if value is None or isinstance(value, bool | int | float | str):
        return {"value": value}
    raise TypeError(f"what a pass came to can't be noted: {type(value).__name__}")


def _decode(plan: dict[str, Any], arrays: list[np.ndarray[Any, Any]]) -> Any:
    if "array" in plan:
        return arrays[plan["array"]]
    for sequence in (list, tuple):
        if sequence.__name__ in plan:
            return sequence(_decode(one, arrays) for one in plan[sequence.__name__])
    if "kind" not in plan:
        return plan["value"]
    module, name = plan["kind"]
    kind = getattr(import_module(module), name) if module.startswith(_PACKAGE) else None
    if not isinstance(kind, type) or not (is_dataclass(kind) or hasattr(kind, "_fields")):
        raise TypeError(f"{module}.{name}")
    held = [_decode(one, arrays) for one in plan["fields"]]
    if issubclass(kind, tuple):
        return tuple.__new__(kind, held)
    made = object.__new__(kind)
    for field, one in zip(_names(kind), held, strict=True):
        object.__setattr__(made, field, one)
    return made


def _names(kind: Any) -> list[str]:
    """Return the fields of a dataclass or of a named tuple."""
    return [one.name for one in fields(kind)] if is_dataclass(kind) else list(kind._fields)
