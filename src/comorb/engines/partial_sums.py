"""Partial sums: what a worker adds up of its blocks, how it travels as bytes, and is kept."""

from __future__ import annotations

import json
import pickle
import zlib
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import Executor
from copy import deepcopy
from dataclasses import fields, is_dataclass
from importlib import import_module
from itertools import pairwise
from typing import Any, TypeVar

import numpy as np

from comorb import __version__
from comorb.engines.base import Engine
from comorb.engines.block_files import RowGroup
from comorb.errors import StorageError
from comorb.model.blocks import Loader, Pass, Rows
from comorb.model.blocks import fold_partials as fold_partials

Item = TypeVar("Item")
Result = TypeVar("Result")


def map_items(
    function: Callable[[Item], Result], items: Sequence[Item], executor: Executor | None
) -> list[Result]:
    """Return ``function`` of each item, in their order; both can be sent to another machine.

    A task may be done twice where a worker is lost, and counts once.

    >>> map_items(str.upper, ["a", "b"], None)
    ['A', 'B']
    """
    if isinstance(executor, Engine):
        return executor.map_items(function, items)
    return list(map(function, items) if executor is None else executor.map(function, items))


_HOME = "comorb.model."  # where the classes are that a pass comes to


def pack(value: Any) -> bytes:
    """Return a value as bytes, squeezed a little.

    >>> unpack(pack([1, "two", {3.0}]))
    [1, 'two', {3.0}]
    """
    return zlib.compress(pickle.dumps(value, 5), 1)


def unpack(content: bytes) -> Any:
    """Return what `packed` made bytes of, in a task of our own."""
    return pickle.loads(zlib.decompress(content))  # noqa: S301 - see above


def encode_result(value: Any) -> bytes:
    """Return what a pass came to as bytes for a file: a line of JSON, and then its arrays.

    >>> decode_result(encode_result([1.5, (None, np.arange(2))]))
    [1.5, (None, array([0, 1]))]
    """
    arrays: list[np.ndarray[Any, Any]] = []
    plan = _encode(value, arrays)
    kinds = [[array.dtype.str, array.shape] for array in arrays]
    line = json.dumps({"plan": plan, "arrays": kinds}, separators=(",", ":"))
    return zlib.compress(b"".join([line.encode(), b"\n", *(one.tobytes() for one in arrays)]), 1)


def decode_result(content: bytes) -> Any:
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
        return _decode(head["plan"], arrays)
    except (AttributeError, ImportError, LookupError, TypeError, ValueError, zlib.error) as error:
        raise StorageError(f"something else than a result was noted here: {error}") from error


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
    if "list" in plan:
        return [_decode(one, arrays) for one in plan["list"]]
    if "tuple" in plan:
        return tuple(_decode(one, arrays) for one in plan["tuple"])
    if "kind" not in plan:
        return plan["value"]
    module, name = plan["kind"]
    kind = getattr(import_module(module), name) if module.startswith(_HOME) else None
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


A = TypeVar("A")
T = TypeVar("T")

# Tasks of a pass at least, where there are as many blocks, and partial sums that are added at once;
# ``python -m benchmarks scale`` prints the seconds of a pass on each engine.
MIN_TASKS, FAN_IN = 8, 16


def group_loaders(loaders: Sequence[Loader], most: int) -> list[tuple[Loader, ...]]:
    """Return the blocks of each task, in order: as many in each, ``most`` of them at most.

    >>> [len(group) for group in group_loaders([tuple] * 35, 4)]
    [4, 4, 4, 4, 4, 4, 4, 4, 3]
    >>> [len(group) for group in group_loaders([tuple] * 11, 4)]
    [2, 2, 2, 1, 1, 1, 1, 1]
    """
    count = min(len(loaders), max(MIN_TASKS, -(-len(loaders) // most)))
    size, larger = divmod(len(loaders), count)
    ends = [number * size + min(number, larger) for number in range(count + 1)]
    return [tuple(loaders[start:stop]) for start, stop in pairwise(ends)]


def in_file(loaders: Sequence[Loader]) -> bool:
    """Return whether blocks are in a file that workers see, not in the memory of this process."""
    return bool(loaders) and all(isinstance(load, RowGroup) for load in loaders)


def map_each(function: Callable[[Rows], T], blocks: Iterable[Rows]) -> list[T]:
    """Return a function of each block of a task."""
    return [function(rows) for rows in blocks]


def sum_blocks(job: Pass, blocks: Iterable[Rows]) -> list[Any]:
    """Return the sum over the blocks of a task, of each shard."""
    return fold_partials(map(job.function, blocks))


def add_partials(*partials: list[Any]) -> list[Any]:
    """Return the sum of what tasks came to; theirs stays as it is, should it be asked for again."""
    return fold_partials([deepcopy(partials[0]), *partials[1:]])


def finish(job: Pass, sums: list[Any]) -> list[Any]:
    """Return what each shard comes to."""
    return [job.finish(one) for one in sums]


def version_problem(found: str | None) -> str | None:
    """Return what is wrong with a worker's comorb, in one line; None where it is as here."""
    if found == __version__:
        return None
    have = "no comorb" if found is None else f"comorb {found}"
    return f"a worker has {have}; install comorb {__version__}, as here, on every worker."
