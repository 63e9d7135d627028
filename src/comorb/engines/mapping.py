"""Mapping: one function of many things, side by side wherever an engine runs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import Executor
from typing import TypeVar

from comorb.model.blocks import Engine

A = TypeVar("A")
T = TypeVar("T")


def each(function: Callable[[A], T], items: Sequence[A], executor: Executor | None) -> list[T]:
    """Return ``function`` of each item, in their order; both can be sent to another machine.

    A task may be done twice where a worker is lost, and counts once.

    >>> each(str.upper, ["a", "b"], None)
    ['A', 'B']
    """
    if isinstance(executor, Engine):
        return executor.each(function, items)
    return list(map(function, items) if executor is None else executor.map(function, items))
