"""Mutation: bytes, values of JSON and cells of tables, changed at random from a seed."""

from __future__ import annotations

import json
from collections.abc import Sequence
from random import Random
from typing import Any

ODD_TEXTS = (
    *("", " ", "\0", "0", "-1", "1e999", "NaN", "null", "=1+1", "'", '"', '""', ";", ",", "\t"),
    *("428.0", "V58.61", "E11.9", "I50", "250.00;428.0", "2010-02-30", "05.02.2018", "99999999999"),
    *("\ufeff", "\u200b", "é", "ключ", "\U0001f600", "\u202e", "a" * 5000, "[", "{", "<a>", "%s"),
    *("dx1", "visit_id", "json", "code", "age", "1;" * 300, "\r\n", "\\", "../x", "NA", "-", "†"),
)
ODD_NUMBERS = (0, -1, 1, 2, 255, 2**31, 2**63, 2**64, -(2**63), 10**400, 0.5, 1e308, 5e-324)
ODD_VALUES = (None, True, False, [], {}, [[]], {"": None}, [None], *ODD_NUMBERS, *ODD_TEXTS)
ODD_BYTES = (b"\0", b"\xff", b"\xff\xfe", b"\xef\xbb\xbf", b"\n", b"\r", b'"', b"\x80", b"\x1f\x8b")


def mutated_bytes(rng: Random, data: bytes) -> bytes:
    """Cut, flip, blank, repeat, insert, swap or splice some bytes, once or a few times."""
    for _ in range(rng.choice((1, 1, 1, 2, 4))):
        at = rng.randrange(len(data) + 1)
        length = rng.choice((1, 1, 1, 2, 4, 8, 64))
        way = rng.randrange(8)
        piece = data[at : at + length]
        if way == 0:
            data = data[:at]
            continue
        if way == 1:
            piece = bytes(byte ^ (1 << rng.randrange(8)) for byte in piece)
        elif way == 2:
            piece = bytes(len(piece))
        elif way == 3:
            piece = piece * 2
        elif way == 4:
            piece = rng.randbytes(length) + piece
        elif way == 5:
            piece = rng.choice(ODD_BYTES) + piece
        elif way == 6:
            other = rng.randrange(len(data) + 1)
            piece = data[other : other + length]
        else:
            piece = b""
        data = data[:at] + piece + data[at + length :]
    return data


def mutated_json(rng: Random, plain: Any) -> Any:
    """Change some places of a JSON value: another value, another name, gone, twice or nested."""
    for _ in range(rng.choice((1, 1, 2, 5))):
        plain = _changed(rng, plain, rng.randrange(1, 7))
    return plain


def _changed(rng: Random, plain: Any, depth: int) -> Any:
    if depth > 0 and isinstance(plain, dict) and plain and rng.random() < 0.95:
        key = rng.choice(list(plain))
        rest = {name: value for name, value in plain.items() if name != key}
        way = rng.randrange(12)
        if way == 0:
            return rest
        if way == 1:
            return rest | {rng.choice(ODD_TEXTS): plain[key]}
        if way == 2:
            return plain | {key: plain[rng.choice(list(plain))]}
        return plain | {key: _changed(rng, plain[key], depth - 1)}
    if depth > 0 and isinstance(plain, list) and plain and rng.random() < 0.95:
        at = rng.randrange(len(plain))
        way = rng.randrange(12)
        if way == 0:
            return plain[:at] + plain[at + 1 :]
        if way == 1:
            return [*plain, plain[at]]
        if way == 2:
            return plain[::-1]
        return [*plain[:at], _changed(rng, plain[at], depth - 1), *plain[at + 1 :]]
    return odd_value(rng, plain)


def odd_value(rng: Random, plain: Any = None) -> Any:
    """Return a value that is out of place, sometimes made of the one that was there."""
    way = rng.randrange(12)
    if way == 0:
        return [plain]
    if way == 1:
        return str(plain)
    if way == 2 and isinstance(plain, str) and plain:
        return mutated_bytes(rng, plain.encode()).decode("utf-8", "replace")
    if way == 3:
        deep: Any = plain
        for _ in range(rng.choice((3, 50, 400))):
            deep = [deep]
        return deep
    if way == 4 and isinstance(plain, int | float):
        return -plain
    return rng.choice(ODD_VALUES)


def json_text(plain: Any) -> bytes:
    """Return JSON, also of what JSON has no number for."""
    return json.dumps(plain, ensure_ascii=False).encode("utf-8", "surrogatepass")


Rows = list[list[str]]


def mutated_rows(rng: Random, rows: Sequence[Sequence[str]]) -> Rows:
    """Change cells, names of columns, rows and columns of a table."""
    table = [list(row) for row in rows]
    for _ in range(rng.choice((1, 1, 2, 3, 8))):
        at, width = rng.randrange(len(table)), len(table[0])
        column = rng.randrange(width) if width else 0
        way = rng.randrange(10)
        if way == 0:
            table[at] = table[at][: rng.randrange(width + 1)]
        elif way == 1:
            table[at] = [*table[at], rng.choice(ODD_TEXTS)]
        elif way == 2:
            table.insert(at, list(rng.choice(table)))
        elif way == 3 and len(table) > 2:
            del table[at]
        elif way == 4 and width > 1:
            table = [row[:column] + row[column + 1 :] for row in table]
        elif way == 5:
            odd = rng.choice(ODD_TEXTS)
            table = [*table[:1], *([*row[:column], odd, *row[column + 1 :]] for row in table[1:])]
        elif way == 6 and width:
            table[0][column] = rng.choice((*ODD_TEXTS, *table[0]))
        elif column < len(table[at]):
            table[at][column] = rng.choice(ODD_TEXTS)
    return table


def as_text(rng: Random, rows: Rows) -> bytes:
    """Write a table as text, mostly as it should be and sometimes oddly."""
    between = rng.choice((",", ",", ",", ";", "\t", "|"))
    quote = rng.random() < 0.8
    end = rng.choice(("\n", "\n", "\r\n", "\r"))

    def cell(text: str) -> str:
        if quote and any(mark in text for mark in (between, '"', "\n", "\r")):
            return '"' + text.replace('"', '""') + '"'
        return text

    text = "".join(between.join(map(cell, row)) + end for row in rows)
    return text.encode(rng.choice(("utf-8", "utf-8", "utf-8", "utf-16", "utf-8-sig")), "replace")
