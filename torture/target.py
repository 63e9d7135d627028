"""Target: something that takes bytes of others, and what a right ending is."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any

from comorb.errors import ComorbError
from torture.mutation import mutated_bytes

Seeds = list[bytes]


class WrongAnswer(Exception):  # noqa: N818
    """An answer that isn't what it should be, in a sentence."""


@dataclass(frozen=True)
class Target:
    """What is attacked.

    ``seeds`` makes whole inputs in a folder, ``check`` takes one input: it returns, or raises an
    error of comorb, or something is found. ``mutate`` makes inputs of the seeds. ``weight`` is
    about the number of executions in a full run, ``seconds`` the time of the processor that one
    may take; where the reader runs in a process of its own, ``apart``, it may end that process.
    ``guided`` targets are also attacked with the coverage as a guide.
    """

    name: str
    seeds: Callable[[Path], Seeds]
    check: Callable[[bytes, Path], None]
    weight: int
    mutate: Callable[[Random, Sequence[bytes]], bytes] = lambda rng, seeds: mutated_bytes(
        rng, rng.choice(seeds)
    )
    seconds: float = 20
    apart: bool = False
    guided: bool = False


def expect(true: Any, said: str) -> None:
    """Raise `WrongAnswer` where something isn't true."""
    if not true:
        raise WrongAnswer(said)


def ends_well(target: Target, data: bytes, folder: Path) -> bool:
    """Attack once: True where it was taken, False where it was refused in a line of ours."""
    try:
        target.check(data, folder)
    except ComorbError as error:
        expect("\n" not in str(error).strip(), f"an error of several lines: {str(error)[:200]!r}")
        return False
    return True
