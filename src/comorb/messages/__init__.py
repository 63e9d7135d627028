"""Texts for people, as a key and its values, rendered in the reader's language.

Each language has one catalogue, ``messages/<language>.json``, with a text for every key. In a text
stand the values of the message: ``{n}`` (a number as the language writes it, a list joined by
commas, a message in the same language, a name as it is), ``{n:.1f}`` or ``{n:.0%}`` (in that
format), ``{port:d}`` (without separators), ``{name!r}`` (in quotes), ``{names:and}`` and
``{names:or}`` (a list as a sentence has it), ``{names:;}`` (a list by semicolons),
``{names:.}`` (sentences), and ``{n|record|records}`` (the word that goes with the number).
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import lru_cache
from importlib import resources
from typing import Any, Self

ENGLISH = "en"
_PLACE = re.compile(r"\{(\w+)(!r)?(?::([^{}|]+))?(?:\|([^|{}]*)\|([^{}]*))?\}")


class Message(str):
    """The English text of a key with its values, which can be rendered in other languages.

    It is a string, so that it can stand wherever a text is expected; it can be pickled. For JSON
    see `pack`, as a string that is put there by itself becomes its English text.

    >>> few = Message("count.few", n=1100)
    >>> few, render(few, "es")
    ('fewer than 1,100', 'menos de 1.100')
    """

    __slots__ = ("key", "values")
    key: str
    values: Mapping[str, Any]

    def __new__(cls, key: str, /, **values: Any) -> Self:
        """Return the message of a key of the catalogues."""
        plain = {name: _plain_value(value) for name, value in values.items()}
        self = super().__new__(cls, fill(catalogue(ENGLISH)[key], plain, ENGLISH))
        object.__setattr__(self, "key", key)
        object.__setattr__(self, "values", plain)
        return self

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(f"a message is not changed; make another than {self.key}")

    def __reduce__(self) -> tuple[Any, ...]:
        return _message, (self.key, self.values)


def _message(key: str, values: Mapping[str, Any]) -> str:
    return Message(key, **values)


def as_message(text: str, /, **values: Any) -> str:
    """Return the message of a key; any other text is returned as it is."""
    if isinstance(text, Message):
        return text
    return Message(text, **values) if values or text in catalogue(ENGLISH) else text


def render(text: str, language: str) -> str:
    """Return a message in a language; any other text is returned as it is."""
    if not isinstance(text, Message) or language == ENGLISH:
        return str(text)
    return fill(catalogue(language)[text.key], text.values, language)


def render_all(value: Any, language: str) -> Any:
    """Return dictionaries and lists in which each message is rendered in a language."""
    if isinstance(value, Message):
        return render(value, language)
    return _map_values(value, lambda one: render_all(one, language))


def change_values(text: str, change: Callable[[str, Any], Any]) -> str:
    """Return a message with each of its values, by name, changed; another text has no name."""

    def changed(name: str, value: Any) -> Any:
        if isinstance(value, Message):
            return change_values(value, change)
        if isinstance(value, list):
            return [changed(name, one) for one in value]
        return change(name, value)

    if isinstance(text, Message):
        values = {name: changed(name, value) for name, value in text.values.items()}
        return Message(text.key, **values)
    return str(change("", text))


def replace_text(text: str, old: str, new: str) -> str:
    """Return a message in whose values, or a text in which, a text is replaced by another."""
    return change_values(
        text, lambda _, value: value.replace(old, new) if isinstance(value, str) else value
    )


def pack(value: Any) -> Any:
    """Return plain values for JSON in which a message is ``{"key": …, "values": …}``."""
    if isinstance(value, Message):
        return {"key": value.key, "values": pack(value.values)}
    return _map_values(value, pack)


def unpack(value: Any) -> Any:
    """Return what `pack` made plain; a message that isn't known here is the name of its key."""
    if isinstance(value, dict) and value.keys() == {"key", "values"}:
        known = value["key"] in catalogue(ENGLISH)
        return Message(value["key"], **unpack(value["values"])) if known else value["key"]
    return _map_values(value, unpack)


def _map_values(value: Any, change: Any) -> Any:
    if isinstance(value, dict):
        return {name: change(one) for name, one in value.items()}
    if isinstance(value, list | tuple):
        return [change(one) for one in value]
    return value


@lru_cache
def catalogue(language: str) -> dict[str, str]:
    """Return the texts of a language by their keys."""
    file = resources.files(__name__).joinpath(f"{language}.json")
    texts: dict[str, str] = json.loads(file.read_text(encoding="utf-8"))
    return texts


def fill(text: str, values: Mapping[str, Any], language: str) -> str:
    """Return a text with its values in place; a place without a value stays.

    A word that goes with a number that isn't given is the one for several: a heading.
    """

    def placed(mark: re.Match[str]) -> str:
        name, quoted, form, one, more = mark.groups()
        if name not in values:
            return mark[0] if more is None else more
        value = values[name]
        if more is not None:  # the plural of English, Spanish and Catalan: one for 1 alone
            return one if value in (1, "1") else more
        if quoted:
            return repr(render(value, language) if isinstance(value, str) else value)
        return _format_value(value, form or "", language)

    return _PLACE.sub(placed, text)


def _format_value(value: Any, form: str, language: str) -> str:
    if isinstance(value, Sequence) and not isinstance(value, str):
        return join([_format_value(one, "", language) for one in value], language, form)
    if isinstance(value, int | float) and not isinstance(value, bool):
        return localise(format(value, form or ("," if isinstance(value, int) else "")), language)
    return render(value, language) if isinstance(value, str) else str(value)


def join(names: Sequence[str], language: str, word: str = "") -> str:
    """Return names as a list: by commas, or as a sentence has them, with ``and`` or ``or``.

    >>> join(["1", "2", "3"], "ca", "or")
    '1, 2 o 3'
    """
    if word not in ("and", "or") or len(names) < 2:
        return f"{word.strip('.') if word else ','} ".join(names)
    *most, last = names
    return fill(catalogue(language)[f"format.{word}"], {"a": ", ".join(most), "b": last}, language)


def localise(english: str, language: str) -> str:
    """Return a number that is written as in English as a language writes it.

    >>> localise("1,234.5", "es")
    '1.234,5'
    """
    if language == ENGLISH:
        return english
    texts, plain = catalogue(language), english.removesuffix("%")
    marks = {",": texts["format.thousands"], ".": texts["format.decimal"]}
    text = "".join(marks.get(one, one) for one in plain)
    return text if plain == english else texts["format.percent"].replace("{x}", text)


def _plain_value(value: Any) -> Any:
    """Return a value as a message keeps it: a text, a number, a list of them, a message."""
    if value is None or isinstance(value, str | bool | int | float):
        return value
    if isinstance(value, BaseException):
        return value.args[0] if value.args and isinstance(value.args[0], Message) else str(value)
    if hasattr(value, "item") and getattr(value, "ndim", 1) == 0:  # a number of NumPy
        return value.item()
    if isinstance(value, Iterable) and not hasattr(value, "__fspath__"):
        return [_plain_value(one) for one in value]
    return str(value)
