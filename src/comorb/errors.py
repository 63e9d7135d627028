"""The exceptions of comorb, as one tree.

::

    ComorbError
    ├── InputError      (ValueError)  a matrix, a weight or a parameter that can't be used
    ├── EngineError     (RuntimeError) a cluster that is lost, missing or unknown
    ├── RecordsError    (ValueError)  a file, table or database that can't be read as records
    │   ├── EmptyCohortError          rules that leave no record
    │   └── TooLargeError             records that memory doesn't suffice for
    └── StorageError    (ValueError)  a model, cohort or run file that is damaged or too new
    ComorbWarning       (UserWarning) the answer stands, but is weaker than requested

A message says what was expected, what came and what to do. It may name a file, a column,
a row number, a code or a count; it never holds a record id or a record's list of codes.
"""

from __future__ import annotations

import errno
import re
from typing import Any

from comorb.messages import Message, as_message

_OF_MEMORY = re.compile(
    r"Out of Memory Error|start new thread|launch worker thread|Resource temporarily unavailable"
)


class ComorbError(Exception):
    """Any error that comorb raises on purpose: a message by its key and values, or a text."""

    def __init__(self, text: str = "", /, **values: Any) -> None:
        super().__init__(as_message(text, **values))

    @property
    def message(self) -> str:
        """What went wrong, as a message where it has a key."""
        text: str = self.args[0]
        return text


class InputError(ComorbError, ValueError):
    """A matrix, a weight or a parameter that can't be used."""


class EngineError(ComorbError, RuntimeError):
    """A cluster that is lost, missing or unknown."""


class RecordsError(ComorbError, ValueError):
    """A file, table or database that can't be read as records."""


class EmptyCohortError(RecordsError):
    """Rules that leave no record."""


class TooLargeError(RecordsError):
    """Records that memory doesn't suffice for."""


class StorageError(ComorbError, ValueError):
    """A model, cohort or run file that is damaged or too new."""


class ComorbWarning(UserWarning):
    """The answer stands, but is weaker than requested."""

    def __init__(self, text: str = "", /, **values: Any) -> None:
        super().__init__(as_message(text, **values))


def lacks_memory(error: BaseException) -> bool:
    """Return whether an error is that there is not enough memory.

    A thread that can't be started is one, and so is DuckDB's error where Arrow reads rows from it.

    >>> lacks_memory(OSError("Out of Memory Error: failed to allocate 2 bytes"))
    True
    """
    if isinstance(error, MemoryError | TooLargeError):
        return True
    refused = getattr(error, "errno", None) in (errno.ENOMEM, errno.EAGAIN)
    return refused or _OF_MEMORY.search(str(error)) is not None


def not_installed(what: str, extra: str) -> str:
    """Return the message that an extra of comorb is missing: what it is, and how to get it."""
    return Message("install.extra", what=what, extra=extra)
