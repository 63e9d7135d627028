"""Packing: what a pass came to as bytes, for the way here and for the journal."""

from __future__ import annotations

import json
import pickle
import zlib
from dataclasses import fields, is_dataclass
from importlib import import_module
from typing import Any

import numpy as np

from comorb.errors import StorageError

_HOME = "comorb.model."  # where the classes are that a pass comes to


def packed(value: Any) -> bytes:
    """Return a value as bytes, squeezed a little.

    >>> unpacked(packed([1, "two", {3.0}]))
    [1, 'two', {3.0}]
    """
    return zlib.compress(pickle.dumps(value, 5), 1)


def unpacked(content: bytes) -> Any:
    """Return what `packed` made bytes of, in a task of our own."""
    return pickle.loads(zlib.decompress(content))  # noqa: S301 - see above


def noted(value: Any) -> bytes:
    """Return what a pass came to as bytes for a file: a line of JSON, and then its arrays.

    >>> recalled(noted([1.5, (None, np.arange(2))]))
    [1.5, (None, array([0, 1]))]
    """
    arrays: list[np.ndarray[Any, Any]] = []
    plan = _plan(value, arrays)
    kinds = [[array.dtype.str, array.shape] for array in arrays]
    line = json.dumps({"plan": plan, "arrays": kinds}, separators=(",", ":"))
    return zlib.compress(b"".join([line.encode(), b"\n", *(one.tobytes() for one in arrays)]), 1)


def recalled(content: bytes) -> Any:
    """Return what `noted` made bytes of; no code runs but that which fills in fields."""
    try:
        line, _, rest = zlib.decompress(content).partition(b"\n")
        head = json.loads(line)
        arrays, place = [], 0
        for kind, shape in head["arrays"]:
            form = np.dtype(kind)
            if form.hasobject:
                raise TypeError(kind)
            size = int(np.prod(shape, dtype=np.int64))
            array = np.frombuffer(rest, form, size, place).reshape(shape).copy()
            arrays.append(array)
            place += array.nbytes
        return _made(head["plan"], arrays)
    except (AttributeError, ImportError, LookupError, TypeError, ValueError, zlib.error) as error:
        raise StorageError(f"something else than a result was noted here: {error}") from error


def _plan(value: Any, arrays: list[np.ndarray[Any, Any]]) -> Any:
    if isinstance(value, np.ndarray):
        arrays.append(np.ascontiguousarray(value).reshape(value.shape))
        return {"array": len(arrays) - 1}
    if is_dataclass(value) or hasattr(value, "_fields"):
        kind = type(value)
        held = [_plan(getattr(value, name), arrays) for name in _names(kind)]
        return {"kind": [kind.__module__, kind.__qualname__], "fields": held}
    if isinstance(value, list | tuple):
        return {type(value).__name__: [_plan(one, arrays) for one in value]}
    if isinstance(value, np.generic):
        value = value.item()
    if value is None or isinstance(value, bool | int | float | str):
        return {"value": value}
    raise TypeError(f"what a pass came to can't be noted: {type(value).__name__}")


def _made(plan: dict[str, Any], arrays: list[np.ndarray[Any, Any]]) -> Any:
    if "array" in plan:
        return arrays[plan["array"]]
    if "list" in plan:
        return [_made(one, arrays) for one in plan["list"]]
    if "tuple" in plan:
        return tuple(_made(one, arrays) for one in plan["tuple"])
    if "kind" not in plan:
        return plan["value"]
    module, name = plan["kind"]
    kind = getattr(import_module(module), name) if module.startswith(_HOME) else None
    if not isinstance(kind, type) or not (is_dataclass(kind) or hasattr(kind, "_fields")):
        raise TypeError(f"{module}.{name}")
    held = [_made(one, arrays) for one in plan["fields"]]
    if issubclass(kind, tuple):
        return tuple.__new__(kind, held)
    made = object.__new__(kind)
    for field, one in zip(_names(kind), held, strict=True):
        object.__setattr__(made, field, one)
    return made


def _names(kind: Any) -> list[str]:
    """Return the fields of a dataclass or of a named tuple."""
    return [one.name for one in fields(kind)] if is_dataclass(kind) else list(kind._fields)
