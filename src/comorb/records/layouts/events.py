"""Events: the values of a column that mean that a patient died or was readmitted.

An event is read only where every value of its column is understood: as yes or no, as a word for
death or life, by a published list of codes, or because the layout names the values that count.
Any other column stays a category, with a note.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from importlib import resources
from typing import Any

from comorb.errors import RecordsError
from comorb.messages import Message
from comorb.records.layouts.layout import EVENT_ROLES, Layout
from comorb.records.layouts.names import (
    ROLE_NAMES,
    find_role,
    first_match,
    is_amount,
    normalise_name,
)
from comorb.records.sources.duck import OpenedSource, SourceTable, literals, quote
from comorb.records.values import MARKS, yes_no

RETURN_DAYS = 30  # days after a discharge in which a new visit is a readmission
MAX_DISPOSITIONS = 60  # the most ways in which a visit ends
_MAX_SHOWN_VALUES = 6  # the most values that a note lists
_MIN_SHOWN_ROWS = 11  # the fewest rows with a value that a note or an error shows
_MAX_SHOWN_LENGTH = 40  # the most letters of a value that is shown

_TABLES: dict[str, Any] = tomllib.loads(
    resources.files("comorb.records.layouts").joinpath("events.toml").read_text(encoding="utf-8")
)


def _expand_codes(text: str) -> frozenset[str]:
    """Return the codes of a list, spans such as 61-66 spelled out."""
    spans = (part.partition("-") for part in text.split())
    return frozenset(
        str(code) for low, _, high in spans for code in range(int(low), int(high or low) + 1)
    )


_LISTS = [one | {key: _expand_codes(one[key]) for key in ("yes", "no")} for one in _TABLES["lists"]]
# In the order of events.toml.
_DEATH_WORDS, _ALIVE_WORDS, _DISCHARGE_WORDS, _READMISSION_WORDS, _UNKNOWN_WORDS, _NEGATIONS = (
    frozenset(words.split())
    for table in ("died", "readmitted", "unknown", "negation")
    for words in _TABLES[table].values()
)
_STILLBORN = re.compile(r"still_b(orn|irth)")
_LABELLED = re.compile(r"\s*\d+\s*[-=:.)]+\s*(?P<word>\D.*)|(?P<before>.*\D)\s*[(=]\s*\d+\s*\)?\s*")
_CODE_IN_NAME = re.compile(r"(\d+)\s*[=:_]?\s*([^\W\d_]+)")
_WITHIN_DAYS = re.compile(r"(<=?|≤|within|under|in|0\s*-)\s*(\d+)\s*(d|days?|dias?|dies|tagen?)?")
_AFTER_DAYS = re.compile(r"(>=?|≥|after|over)\s*(\d+)\s*(d|days?|dias?|dies|tagen?)?")


@dataclass(frozen=True)
class Answers:
    """The texts of a column that mean yes, no, that it is unknown, or that aren't understood.

    The last are ``strange``. With ``in_words`` all are a plain yes or no and need no replacement.
    """

    yes: tuple[str, ...] = ()
    no: tuple[str, ...] = ()
    unknown: tuple[str, ...] = ()
    strange: tuple[str, ...] = ()
    in_words: bool = False

    @property
    def is_clear(self) -> bool:
        """Whether every text is understood, and some mean yes or no."""
        return not self.strange and bool(self.yes or self.no)


def read_answers(
    texts: Collection[str], event: str, column: str = "", *, ending: bool = False
) -> Answers:
    """Return what the texts of a column mean for an event, 'died' or 'readmitted'.

    ``ending`` is for a column of how visits ended, in which a bare 1 is no yes.

    >>> read_answers(["NO", ">30", "<30"], "readmitted").yes
    ('<30',)
    >>> read_answers(["1", "2"], "died").strange
    ('2',)
    >>> read_answers(["1", "2"], "died", "exitus (1=no, 2=yes)").yes
    ('2',)
    """
    present = sorted(text for text in texts if text.strip().upper() not in MARKS)
    if event == "died" and (published := _find_published(present, column)) is not None:
        return published
    labels = _labels_in_name(column, event)
    groups: dict[bool | str | None, list[str]] = {True: [], False: [], "unknown": [], None: []}
    for text in present:
        code = _normalise_code(text)
        groups[labels.get(code) if labels else _read_meaning(text, event, ending)].append(text)
    in_words = not labels and all(yes_no(text) is not None for text in present)
    yes, no, unknown, strange = map(tuple, groups.values())
    return Answers(yes, no, unknown, strange, in_words)


def _find_published(texts: Sequence[str], column: str) -> Answers | None:
    """Return the meanings by a published list of codes, None where no list has all of them."""
    codes = {text: _normalise_code(text) for text in texts}
    for known in _LISTS:
        if not codes or not re.fullmatch(known["columns"], normalise_name(column)):
            continue
        yes = tuple(text for text, code in codes.items() if code in known["yes"])
        no = tuple(text for text, code in codes.items() if code in known["no"])
        if len(yes) + len(no) == len(codes) and (yes or not known.get("needs")):
            return Answers(yes, no)
    return None


def _labels_in_name(column: str, event: str) -> dict[str, bool | str]:
    """Return the meanings of codes in the name of their column, as in 'died (1=yes, 2=no)'."""
    pairs = _CODE_IN_NAME.findall(column)
    meanings = {code: _read_meaning(word, event, False) for code, word in pairs}
    known = {code: meaning for code, meaning in meanings.items() if meaning is not None}
    return known if len(known) > 1 else {}


def _read_meaning(text: str, event: str, ending: bool) -> bool | str | None:
    """Return whether a text means yes, no or 'unknown'; None where it isn't understood."""
    if (labelled := _LABELLED.fullmatch(text)) is not None:
        text = labelled["word"] or labelled["before"]
    if not ending and (answer := yes_no(text)) is not None:
        return None if text.strip().lower() == "x" else answer
    words = normalise_name(text).split("_")
    if not ending and "_".join(words) in _UNKNOWN_WORDS:
        return "unknown"
    return _means_death(words) if event == "died" else _means_readmission(text, words)


def _means_death(words: Sequence[str]) -> bool | None:
    """Return whether words mean a death; None where they mean neither death nor life."""
    dead = not _DEATH_WORDS.isdisjoint(words) or _STILLBORN.search("_".join(words)) is not None
    alive = not _ALIVE_WORDS.isdisjoint(words)
    if dead and not _NEGATIONS.isdisjoint(words):
        return None if alive else False
    if dead or alive:
        return None if dead and alive else dead
    return None if _DISCHARGE_WORDS.isdisjoint(words) else False


def _means_readmission(text: str, words: Sequence[str]) -> bool | None:
    """Return whether a text means that a patient came back within thirty days of a discharge."""
    bare = text.strip().lower()
    if sooner := _WITHIN_DAYS.fullmatch(bare):
        return True if int(sooner[2]) <= RETURN_DAYS + (sooner[1] == "<") else None
    if later := _AFTER_DAYS.fullmatch(bare):
        return False if int(later[2]) >= RETURN_DAYS else None
    if _READMISSION_WORDS.isdisjoint(words):
        return None
    return _NEGATIONS.isdisjoint(words)


def _normalise_code(text: str) -> str:
    """Return a code without blanks, leading zeros and '.0'."""
    code = text.strip().lower().removesuffix(".0")
    return code.lstrip("0") or code[-1:]


@dataclass(frozen=True)
class Events:
    """A table with its deaths and readmissions as yes and no, as far as they are understood.

    ``unread`` are the events whose column has values that are not understood; ``flags`` are the
    SQL of the others, by event.
    """

    table: SourceTable
    layout: Layout
    notes: tuple[str, ...] = ()
    unread: frozenset[str] = frozenset()
    flags: Mapping[str, str] = field(default_factory=dict)


def read_events(source: OpenedSource, table: SourceTable, layout: Layout, given: Layout) -> Events:
    """Return a table with yes and no in its columns of deaths and readmissions.

    A column that isn't understood is refused if the ``given`` layout names it, and else stays a
    category. Without a column of deaths, they follow from how visits ended.
    """
    events = Events(table, layout)
    for event in EVENT_ROLES:
        events = _read_event(source, events, event, given)
    return events


def _read_event(source: OpenedSource, events: Events, event: str, given: Layout) -> Events:
    layout, table = events.layout, events.table
    named = getattr(layout, event)
    if named is None:  # a column that is named after the event and has no role
        taken = {*(layout.codes or ()), *layout.named, *layout.features}
        free = [name for name in table.columns if name not in taken and not is_amount(name)]
        named = first_match(free, ROLE_NAMES[event])
    if chosen := getattr(layout, f"{event}_values"):
        column = _read_chosen(source, table, event, named, chosen)
        return _replace_column(source, events, event, column)
    if named is not None:
        column = _read_column(source, table, event, named)
        if column.is_understood:
            return _replace_column(source, events, event, column)
        if getattr(given, event) == named:
            values = {"name": named, "trouble": column.problem, "event": event}
            raise RecordsError("event.refused", table=table.label, who=_VERBS[event], **values)
        if column.counts:
            events = _keep_as_category(events, event, column)
        events = replace(events, layout=_set_column(events.layout, event, None))
    if event == "died" and layout.disposition is not None:
        column = _read_column(source, table, event, layout.disposition)
        if not column.is_understood and column.counts:
            return _keep_as_category(events, event, column)
        if column.answers.yes:
            return _replace_column(source, events, event, column)
    return events


def _set_column(layout: Layout, event: str, name: str | None) -> Layout:
    died, readmitted = (name if event == one else getattr(layout, one) for one in EVENT_ROLES)
    return replace(layout, died=died, readmitted=readmitted)


def _add_category(layout: Layout, name: str) -> Layout:
    """Return the layout with a column as a category, unless it is how visits ended."""
    known = name in (*layout.category, layout.disposition)
    return layout if known else replace(layout, category=(*layout.category, name))


@dataclass(frozen=True)
class _Column:
    """A column, the number of rows with each of its texts, and the meanings of these."""

    name: str
    counts: Mapping[str, int]
    empty: int
    answers: Answers
    chosen: bool = False

    @property
    def is_understood(self) -> bool:
        """Whether all is understood; a lone yes is not, if cells are empty or it is a 1."""
        answers = self.answers
        if not answers.is_clear or answers.no or self.chosen:
            return answers.is_clear
        return not self.empty and any(_normalise_code(text) != "1" for text in answers.yes)

    @property
    def problem(self) -> str:
        """Why it isn't understood; values of few rows aren't shown."""
        strange = self.answers.strange
        if not strange:
            return Message("event.lone")
        return Message("event.strange", shown=_list_values(self.frequent(strange), strange))

    def frequent(self, texts: Sequence[str]) -> list[str]:
        """Return the texts that have enough rows to be shown."""
        return [text for text in texts if self.counts.get(text, 0) >= _MIN_SHOWN_ROWS]


_VERBS = {"died": Message("event.died"), "readmitted": Message("event.was_readmitted")}


def _read_column(source: OpenedSource, table: SourceTable, event: str, name: str) -> _Column:
    counts, empty = _count_values(source, table, name)
    if len(counts) > MAX_DISPOSITIONS:
        return _Column(name, {}, empty, Answers(strange=tuple(sorted(counts))[:1]))
    ending = find_role(name) == "disposition"
    return _Column(name, counts, empty, read_answers(counts, event, name, ending=ending))


def _read_chosen(
    source: OpenedSource, table: SourceTable, event: str, name: str | None, values: Sequence[str]
) -> _Column:
    """Return a column whose values that count are given; all others are a no."""
    if name is None:
        raise RecordsError("event.unnamed", table=table.label, event=event)
    counts, empty = _count_values(source, table, name)
    texts = sorted(counts)
    wanted = {_normalise_code(value) for value in values}
    yes = tuple(text for text in texts if _normalise_code(text) in wanted)
    rest = [text for text in texts if text not in yes]
    unknown = tuple(text for text in rest if normalise_name(text) in _UNKNOWN_WORDS)
    no = tuple(text for text in rest if text not in unknown)
    column = _Column(name, counts, empty, Answers(yes, no, unknown), chosen=True)
    if not yes:
        shown = {"values": _list_values(values, values)}
        shown["shown"] = _list_values(column.frequent(texts), texts)
        raise RecordsError("event.absent", table=table.label, name=name, who=_VERBS[event], **shown)
    return column


def _count_values(
    source: OpenedSource, table: SourceTable, name: str
) -> tuple[dict[str, int], int]:
    """Return the number of rows with each text of a column, and of those with none."""
    found: dict[str | None, int] = dict(source.count_values(table, table.text_sql(name)))
    known = {one: n for one, n in found.items() if one and one.strip().upper() not in MARKS}
    return known, sum(found.values()) - sum(known.values())


def _keep_as_category(events: Events, event: str, column: _Column) -> Events:
    """Return the table in which a column that isn't understood stays a category."""
    layout = _set_column(_add_category(events.layout, column.name), event, None)
    values = {"name": column.name, "trouble": column.problem, "event": event}
    notes = (*events.notes, Message("note.event_unread", who=_VERBS[event], **values))
    return replace(events, layout=layout, notes=notes, unread=events.unread | {event})


def _replace_column(source: OpenedSource, events: Events, event: str, column: _Column) -> Events:
    """Return the table in which an event is true or false.

    It replaces a column that is named after it; another column stays, as a category.
    """
    table, layout, name, answers = events.table, events.layout, column.name, column.answers
    text, yes, no = table.text_sql(name), literals(answers.yes), literals(answers.no)
    rest = " ELSE false" if column.chosen and not answers.no else ""
    flag = f"CASE WHEN {text} IN ({yes or 'NULL'}) THEN true "
    flag += f"WHEN {text} IN ({no or 'NULL'}) THEN false{rest} END"
    if answers.in_words and not column.chosen:
        layout = _set_column(layout, event, name)
        return replace(events, layout=layout, flags={**events.flags, event: flag})
    if find_role(name) == event:
        sql, own = f"SELECT * REPLACE ({flag} AS {quote(name)}) FROM {table.sql}", name
    else:
        own = f" {event}"
        sql = f"SELECT *, {flag} AS {quote(own)} FROM {table.sql}"
        layout = _add_category(layout, name)
    return replace(
        events,
        table=source.derive(table, sql),
        layout=_set_column(layout, event, own),
        notes=(*events.notes, _describe_origin(event, column, bool(rest))),
        flags={**events.flags, event: quote(own)},
    )


def _describe_origin(event: str, column: _Column, empty_is_no: bool) -> str:
    """Return the note on the column and the values that an event is made of."""
    answers, name = column.answers, column.name
    if not answers.yes:
        return Message("note.event_no_yes", event=event, column=name)

    def listed(texts: Sequence[str]) -> str:
        # Texts of many words and few rows may be about a person.
        frequent = column.frequent(texts)
        return _list_values([t for t in texts if t in frequent or len(t.split()) < 4], texts)

    parts = [Message("note.event_yes", event=event, column=name, values=listed(answers.yes))]
    if answers.no:
        parts.append(Message("note.event_no", values=listed(answers.no)))
    if empty_is_no:
        parts.append(Message("note.event_empty"))
    if answers.unknown:
        parts.append(Message("note.event_unknown", values=listed(answers.unknown)))
    return Message("text.parts", parts=parts)


def _list_values(shown: Sequence[str], every: Sequence[str]) -> str:
    """Return some values between commas, and that there are others."""
    short = [text for text in shown if len(text) <= _MAX_SHOWN_LENGTH][:_MAX_SHOWN_VALUES]
    others = [Message("text.other_values")] if len(short) < len(every) else []
    if not short:
        return Message("event.its_values")
    return Message("text.list", parts=[*map(repr, short), *others])
