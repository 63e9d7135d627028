"""Codes: the normaliser of every coding system, and what reads ages, dates and numbers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from random import Random

from comorb.records import values
from comorb.records.codes.system import LEVELS, CodingSystem
from comorb.records.codes.systems import SYSTEMS
from torture.mutation import ODD_TEXTS, mutated_bytes
from torture.target import Target, expect

_LETTERS = "0123456789ABCDEFVXZabc.,-+*!#†‡ '\"_/\u200b\ufeff\t\0é"
READERS = (values.read_ages, values.read_dates, values.read_numbers, values.read_sexes)


def targets() -> list[Target]:
    """Return a target for each system, and one for the values beside the codes."""
    codes = [
        Target(
            f"codes {key}",
            lambda _, system=system: _seeds(system),
            lambda data, _, system=system: _check(system, data),
            70_000,
            _mutate,
            guided=bool(system.fit),
        )
        for key, system in SYSTEMS.items()
    ]
    return [*codes, Target("values", lambda _: _VALUES, _check_values, 60_000, guided=True)]


def _seeds(system: CodingSystem) -> list[bytes]:
    listed = sorted(system.listed())
    some = listed[:: max(len(listed) // 200, 1)]
    return [code.encode() for code in (*some, "428.0", "V5861", "E11.9", "A10BA02", "0016070")]


def _mutate(rng: Random, seeds: Sequence[bytes]) -> bytes:
    way = rng.randrange(4)
    if way == 0:
        return "".join(rng.choices(_LETTERS, k=rng.randrange(12))).encode()
    if way == 1:
        return (rng.choice(ODD_TEXTS) + rng.choice(ODD_TEXTS)).encode()
    return mutated_bytes(rng, rng.choice(seeds))


def _check(system: CodingSystem, data: bytes) -> None:
    raw = data.decode("utf-8", "replace")
    for floats in (False, True):
        code, state = system.normalise(raw, floats)
        expect(state in ("ok", "repaired", "missing", "malformed"), f"a state {state!r}")
        expect(bool(code) == (state in ("ok", "repaired")), f"{state} with the code {code!r}")
        if not code:
            continue
        if system.fit:
            again = system.normalise(code)
            expect(again.code == code, f"{code!r} is normalised to {again.code!r}")
            expect(code == code.upper() and "." not in code, f"{code!r} isn't canonical")
        for level in LEVELS:
            rolled = system.roll_up(code, level)
            expect(isinstance(rolled, str) and rolled, f"{code!r} rolls up to {rolled!r}")
            expect(isinstance(system.name(rolled), str), f"{rolled!r} has no name")
        expect(system.standing(code) in (0, 1, 2), "a standing out of 0, 1 and 2")
        expect(all(isinstance(group, str) for group in system.shared(code)), "a group is no text")
        if system.chronic:
            expect(system.chronic(code) in (True, False, None), "chronic is no answer")


_VALUES = [
    text.encode()
    for text in (
        "70",
        "3 months",
        "2010-02-03",
        "05.02.2018",
        "20090305",
        "1,5",
        "female",
        "M",
        "1e3",
    )
]


def _check_values(data: bytes, _: Path) -> None:
    text = data.decode("utf-8", "replace")
    for read in READERS:
        reader: Callable[..., values.Meanings] = read
        reader({text: 3, "70": 2}, "column")
    values.is_missing(text)
    values.yes_no(text)
