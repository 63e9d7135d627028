"""Packing: what a pass came to as bytes, for the way here and for the journal."""

from __future__ import annotations

import io
import pickle
import zlib
from typing import Any

from comorb.errors import StorageError

_ARRAYS = {
    ("numpy", "dtype"),
    ("numpy", "ndarray"),
    ("numpy._core.multiarray", "_reconstruct"),
    ("numpy._core.multiarray", "scalar"),
    ("numpy._core.numeric", "_frombuffer"),
    ("scipy.sparse._csr", "csr_array"),
}


def packed(value: Any) -> bytes:
    """Return a value as bytes, squeezed a little.

    >>> unpacked(packed([1, "two", {3.0}]))
    [1, 'two', {3.0}]
    """
    return zlib.compress(pickle.dumps(value, 5), 1)


def unpacked(content: bytes) -> Any:
    """Return what `packed` made bytes of, in a task of our own."""
    return pickle.loads(zlib.decompress(content))  # noqa: S301 - see above


def recalled(content: bytes) -> Any:
    """Return what `packed` made bytes of, from a file: nothing in it can run code."""
    return _Unpickler(io.BytesIO(zlib.decompress(content))).load()


class _Unpickler(pickle.Unpickler):
    """Makes arrays and instances of comorb's own classes, and nothing else."""

    def find_class(self, module: str, name: str) -> Any:
        if (module, name) in _ARRAYS:
            return super().find_class(module, name)
        if module == "builtins" and name in ("set", "frozenset", "slice", "complex"):
            return super().find_class(module, name)
        if module.startswith("comorb."):
            found = super().find_class(module, name)
            if isinstance(found, type) and found.__module__ == module:
                return found
        raise StorageError(f"something else than a result was packed here: {module}.{name}")
