"""Declarations of the fields of a specification, and all that is derived from them.

A field is declared once, by `declare`. Options of the command line, the words of a command that
repeats a run, JSON, fingerprints and the questions that the explorer counts are derived from that.
"""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from datetime import date
from functools import wraps
from hashlib import sha256
from inspect import Parameter, signature
from types import GenericAlias
from typing import Any, Self, TypeVar, cast

Given = Mapping[str, Any]
F = TypeVar("F", bound=Callable[..., Any])


class OptionError(ValueError):
    """An option that isn't understood: which, and what was expected."""

    def __init__(self, flag: str, message: str) -> None:
        super().__init__(message)
        self.flag = flag


@dataclass(frozen=True)
class Option:
    """An option of the command line; ``flags`` are its spellings, the first of them its name."""

    flags: tuple[str, ...]
    metavar: str
    help: str
    type: Any = str | None
    default: Any = None
    part: str = ""
    first: bool = False
    limits: tuple[int | None, int | None] = (None, None)


@dataclass(frozen=True)
class Rule:
    """What is declared of a field besides its type.

    Attributes
    ----------
    form : Form
        How its values are written.
    help, option : str
        The help of its option; its flags and metavar, such as '--drop-rare N', '' for none.
    type, doc : str
        The type and the documentation of its Python keyword; by default the help.
    part : str
        The part of its specification that it belongs to; commands and functions may take some.
    harmless : bool
        Whether it chooses no records, so that it is no part of a privacy question.
    saved, again, web, first : bool
        Whether a saved cohort has it, whether the command that repeats a run has it, whether a
        request to the explorer may have it, whether its option is listed before all others.
    bounds : mapping
        The limits of a request: 'longest' and 'pattern' of a text, and what pydantic's Field takes.
    limits : tuple
        The smallest and the largest number that its option takes.
    """

    form: Form
    help: str = ""
    option: str = ""
    type: str = ""
    doc: str = ""
    part: str = "rules"
    harmless: bool = False
    saved: bool = True
    again: bool = True
    web: bool = True
    bounds: Given = field(default_factory=dict)
    limits: tuple[int | None, int | None] = (None, None)
    first: bool = False
    name: str = ""
    default: Any = None

    @property
    def flags(self) -> tuple[str, ...]:
        """The spellings of its option."""
        return tuple(word for word in self.option.split() if word.startswith("-"))

    @property
    def flag(self) -> str:
        """The name of its option; '' where it has none."""
        return (*self.flags, "")[0]

    @property
    def metavar(self) -> str:
        """What stands for its value in the help."""
        return self.option[self.option.rfind(self.flags[-1]) + len(self.flags[-1]) :].strip()


def declare(default: Any, form: Form, help: str = "", option: str = "", **more: Any) -> Any:
    """Declare a field of a specification, with its default and as in `Rule`."""
    return field(default=default, metadata={"rule": Rule(form, help, option, **more)})


def rules_of(spec: type[Spec]) -> tuple[Rule, ...]:
    """Return what a specification declares of its fields, in their order."""
    own: Any = spec
    return tuple(
        replace(one.metadata["rule"], name=one.name, default=one.default)
        for one in fields(own)
        if "rule" in one.metadata
    )


class Spec:
    """A dataclass whose fields are declared: they become JSON, and come back from it."""

    def to_dict(self) -> dict[str, Any]:
        """Return what differs from the default, as plain lists and dictionaries, for JSON."""
        rules = rules_of(type(self))
        plain = [(rule, rule.form.plain(getattr(self, rule.name))) for rule in rules]
        changed = [(rule, value) for rule, value in plain if value != rule.form.plain(rule.default)]
        return {rule.name: value for rule, value in changed}

    @classmethod
    def from_dict(cls, plain: Given) -> Self:
        """Return the specification that ``to_dict`` made plain."""
        forms = {rule.name: rule.form for rule in rules_of(cls)}
        known = {name: forms[name].restore(plain[name]) for name in plain if name in forms}
        return cls(**{**plain, **known})

    @classmethod
    def of(cls, **given: Any) -> Self:
        """Return the specification that Python values ask for, a single text for several too."""
        forms = {rule.name: rule.form for rule in rules_of(cls)}
        return cls(**{name: forms[name].accept(value) for name, value in given.items()})

    def fingerprint(self) -> str:
        """Return a hash of all that differs from the default."""
        return sha256(json.dumps(self.to_dict(), sort_keys=True).encode()).hexdigest()


def words_of(spec: Spec, *parts: str) -> list[str]:
    """Return the words that ask the command line for a specification, in the order of its parts.

    Those of parts that aren't named come after them, and flags last.
    """
    order = {part: place for place, part in enumerate(parts)}
    rules = [rule for rule in rules_of(type(spec)) if rule.again]
    rules.sort(key=lambda one: (isinstance(one.form, Flag), order.get(one.part, len(parts))))
    values = [(rule, getattr(spec, rule.name)) for rule in rules]
    needed = [one for one in values if one[0].form.always or one[1] != one[0].default]
    return [word for rule, value in needed for word in rule.form.words(rule, value)]


def options_of(spec: type[Spec], *parts: str) -> list[Option]:
    """Return the options of a specification, or those of some of its parts, in their order."""
    found: dict[tuple[str, ...], list[Option]] = {}
    for rule in rules_of(spec):
        for option in rule.form.options(rule):
            found.setdefault(option.flags, []).append(option)
    merged = []
    for first, *others in found.values():  # fields that share an option say how each is written
        *most, last = (one.help for one in (first, *others))
        shared = replace(first, help=f"{', '.join(most)} or {last}. Repeatable.")
        merged.append(shared if most else first)
    chosen = [one for part in parts for one in merged if one.part == part]
    return chosen if parts else merged


def from_options(base: Spec, given: Given) -> Any:
    """Return a specification with what options ask for, by their flags, in place of its own."""
    _check_keys(type(base), given)
    rules = [rule for rule in rules_of(type(base)) if rule.flag]
    parsed = [(rule, rule.form.parse(rule, given)) for rule in rules]
    own: Any = base
    return replace(own, **{rule.name: value for rule, value in parsed if value != rule.default})


def _check_keys(spec: type[Spec], given: Given) -> None:
    """Refuse a value of a shared option that no field reads."""
    keyed = [rule for rule in rules_of(spec) if isinstance(rule.form, Keyed)]
    for flag in {rule.flag for rule in keyed}:
        own = {rule.name: rule for rule in keyed if rule.flag == flag}
        *most, last = (rule.metavar for rule in own.values())
        for text in given.get(flag) or ():
            name, _, value = text.partition("=")
            try:
                own[name].form.read(value)
            except (KeyError, ValueError):
                expected = f"{', '.join(most)} or {last}" if most else last
                raise OptionError(flag, f"expected {expected}, got {text!r}") from None


def question_of(spec: type[Spec], plain: Given) -> dict[str, Any]:
    """Return what of plain values is a question of privacy: all that isn't declared harmless.

    Of texts, neither their order nor how often they are given matters.
    """
    harmless = {rule.name for rule in rules_of(spec) if rule.harmless}
    return {name: value for name, value in as_sets(spec, plain).items() if name not in harmless}


def as_sets(spec: type[Spec], plain: Given) -> dict[str, Any]:
    """Return plain values with their lists of texts in order, each text once."""
    listed = [rule.name for rule in rules_of(spec) if rule.form.is_set]
    return {**plain, **{name: sorted(set(plain[name])) for name in listed if plain.get(name)}}


def take_options(spec: type[Spec], *parts: str, but: Sequence[str] = ()) -> Callable[[F], F]:
    """Let a function take parts of a specification as keywords, with their documentation.

    The function has ``**options``; in its docstring they stand where ``{options}`` does.
    """
    typed = [rule for rule in rules_of(spec) if rule.type and rule.name not in but]
    rules = [rule for part in parts for rule in typed if rule.part == part]
    keywords = [
        Parameter(rule.name, Parameter.KEYWORD_ONLY, default=rule.default, annotation=rule.type)
        for rule in rules
    ]
    lines = [f"{rule.name} : {rule.type}\n        {rule.doc or rule.help}" for rule in rules]

    def derived(function: F) -> F:
        own = signature(function)
        kept = [one for one in own.parameters.values() if one.kind is not Parameter.VAR_KEYWORD]
        ordered = sorted([*kept, *keywords], key=lambda one: one.kind)
        allowed = own.replace(parameters=ordered)

        @wraps(function)
        def called(*args: Any, **given: Any) -> Any:
            allowed.bind(*args, **given)  # a keyword that isn't known is a TypeError
            return function(*args, **given)

        shown: Any = called
        shown.__signature__ = allowed
        shown.__doc__ = (function.__doc__ or "").replace("{options}", "\n    ".join(lines))
        return cast("F", called)

    return derived


class Form:
    """How values are written, in words and in JSON: this one is for a text or none.

    ``json`` returns the type of the JSON, whose texts are of the type that it is given.
    """

    argument: Any = str | None  # what the command line takes
    is_set = False  # whether the order of what it lists doesn't matter
    always = False  # whether a command has it even when it is the default
    json: Callable[[Any], Any] = staticmethod(lambda text: text | None)

    def __init__(self, json: Callable[[Any], Any] | None = None) -> None:
        if json is not None:
            self.json = json

    def options(self, rule: Rule) -> list[Option]:
        """Return the options of a field."""
        if not rule.flags:
            return []
        more = (self.argument, self.shown(rule.default), rule.part, rule.first, rule.limits)
        return [Option(rule.flags, rule.metavar, rule.help, *more)]

    def shown(self, default: Any) -> Any:
        """Return what the command line has for a default."""
        return default

    def parse(self, rule: Rule, given: Given) -> Any:
        """Return the value that options ask for, by their flags; the default where none does."""
        value = given.get(rule.flag)
        unset = value in (None, []) or value == self.shown(rule.default)
        return rule.default if unset else self.read(value)

    def read(self, text: Any) -> Any:
        """Return the value of what one option was given."""
        return text

    def words(self, rule: Rule, value: Any) -> list[str]:
        """Return the words that ask for a value; none for one without an option."""
        return [rule.flag, str(value)] if rule.flag and value not in (None, "") else []

    def accept(self, value: Any) -> Any:
        """Return the value that Python was given."""
        return value

    def plain(self, value: Any) -> Any:
        """Return a value for JSON."""
        return value

    def restore(self, plain: Any) -> Any:
        """Return the value that was plain."""
        return tuple(plain) if isinstance(plain, list) else plain

    def schema(self, text: Any) -> Any:
        """Return the type of the JSON, whose texts are of the type ``text``."""
        return self.json(text)


class Number(Form):
    """A whole number, or none."""

    def __init__(self, *, optional: bool = False) -> None:
        self.argument = int | None if optional else int
        super().__init__(lambda _: self.argument)


class Flag(Form):
    """Yes or no."""

    argument = bool
    json = staticmethod(lambda _: bool)

    def words(self, rule: Rule, value: Any) -> list[str]:
        """Return the flag."""
        return [rule.flag] if rule.flag else []


class Texts(Form):
    """Several texts, each after an option of its own."""

    argument: Any = list[str] | None
    is_set = True
    json = staticmethod(lambda text: GenericAlias(list, (text,)))

    def shown(self, default: Any) -> Any:
        """Return what the command line has for a default."""
        return list(default) if default else None

    def read(self, text: Any) -> Any:
        """Return the texts."""
        return tuple(text)

    def words(self, rule: Rule, value: Any) -> list[str]:
        """Return the option before each text."""
        return [word for one in value or () for word in (rule.flag, one) if rule.flag]

    def accept(self, value: Any) -> Any:
        """Return one text as several are."""
        return (value,) if isinstance(value, str) else tuple(value)


class Codes(Texts):
    """Codes, patterns, and '@FILE' for the set of codes in a file."""


class Joined(Texts):
    """Several texts in one word, with commas between."""

    argument = str | None

    def read(self, text: Any) -> Any:
        """Return the texts."""
        return tuple(one.strip() for one in text.split(",") if one.strip())

    def words(self, rule: Rule, value: Any) -> list[str]:
        """Return the option and one word."""
        return [rule.flag, ",".join(value)] if value else []


class Keyed(Form):
    """A value that shares its option with others, written as NAME=VALUE."""

    argument = list[str] | None

    def options(self, rule: Rule) -> list[Option]:
        """Return the option that is shared."""
        return [Option(rule.flags, "RULE", rule.help, self.argument, None, rule.part)]

    def parse(self, rule: Rule, given: Given) -> Any:
        """Return the value that was given last."""
        texts = [text.partition("=") for text in given.get(rule.flag) or ()]
        values = [value for name, _, value in texts if name == rule.name]
        return self.read(values[-1]) if values else rule.default

    def words(self, rule: Rule, value: Any) -> list[str]:
        """Return the option, and the value with its name."""
        return [rule.flag, f"{rule.name}={self.write(value)}"]

    def write(self, value: Any) -> str:
        """Return the text of a value."""
        return str(value)


class Bounds(Keyed):
    """Two ends, both included, either of which may be open: numbers, as LOW:HIGH."""

    json: Any = staticmethod(lambda _: tuple[float | None, float | None] | None)

    def read(self, text: Any) -> Any:
        """Return the two ends."""
        low, colon, high = text.partition(":")
        if not colon:
            raise ValueError(text)
        return tuple(self._read_end(one) if one else None for one in (low, high))

    def write(self, value: Any) -> str:
        """Return the two ends."""
        return ":".join("" if end is None else self._write_end(end) for end in value)

    def _read_end(self, text: str) -> Any:
        return float(text)

    def _write_end(self, end: Any) -> str:
        return f"{end:g}" if float(f"{end:g}") == end else repr(float(end))


class Days(Bounds):
    """Two days, as FIRST:LAST in ISO's form."""

    json = staticmethod(lambda text: GenericAlias(tuple, (text | None, text | None)) | None)

    def _read_end(self, text: str) -> Any:
        return date.fromisoformat(text).isoformat()

    def _write_end(self, end: Any) -> str:
        return str(end)

    def plain(self, value: Any) -> Any:
        """Return the days as texts."""
        return value and [end and str(end) for end in value]


class Names(Keyed, Texts):
    """Several texts in one word, in quotes where they hold a comma."""

    argument = list[str] | None

    def read(self, text: Any) -> Any:
        """Return the texts."""
        if not text:
            raise ValueError(text)
        return tuple(next(csv.reader([text])))

    def write(self, value: Any) -> str:
        """Return the texts with commas between."""
        return listed(value)


def listed(names: Sequence[str]) -> str:
    """Return names between commas, in quotes where they hold one."""
    line = io.StringIO()
    csv.writer(line, lineterminator="").writerow(names)
    return line.getvalue()
