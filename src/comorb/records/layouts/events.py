"""Events: which values of a column say that a patient died or was readmitted.

An event is read only where every value of its column is understood: as yes or no, as a word for
death or life, by a published list of codes, or because the reader of the file says which values
count. Any other column stays a category, and a note says so.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
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
from comorb.records.sources.duck import (
    OpenedSource,
    SourceTable,
    add_by_first,
    literal,
    quote,
    text_sql,
)
from comorb.records.values import MARKS, yes_no

RETURN_DAYS = 30  # days after a discharge in which a new visit is a readmission
MAX_DISPOSITIONS = 60  # in which a visit ends, at most
_MAX_SHOWN_VALUES = 6  # values that a note lists, at most
_MIN_SHOWN_ROWS = 11  # rows with a value that a note or an error shows, at least
_MAX_SHOWN_LENGTH = 40  # letters of a value that is shown, at most

_TABLES: dict[str, Any] = tomllib.loads(
    resources.files("comorb.records.layouts").joinpath("events.toml").read_text(encoding="utf-8")
)


def _read_words(table: str, key: str) -> frozenset[str]:
    return frozenset(_TABLES[table][key].split())


def _expand_codes(text: str) -> frozenset[str]:
    """Return the codes of a list, spans such as 61-66 spelled out."""
    spans = (part.partition("-") for part in text.split())
    return frozenset(
        str(code) for low, _, high in spans for code in range(int(low), int(high or low) + 1)
    )


@dataclass(frozen=True)
class _PublishedList:
    columns: re.Pattern[str]
    needs: bool
    yes: frozenset[str]
    no: frozenset[str]


_LISTS = tuple(
    _PublishedList(
        re.compile(one["columns"]),
        one.get("needs", False),
        _expand_codes(one["yes"]),
        _expand_codes(one["no"]),
    )
    for one in _TABLES["lists"]
)
_DEATH_WORDS, _ALIVE_WORDS, _DISCHARGE_WORDS = (
    _read_words("died", key) for key in ("yes", "alive", "ways")
)
_READMISSION_WORDS = _read_words("readmitted", "yes")
_UNKNOWN_WORDS, _NEGATIONS = _read_words("unknown", "words"), _read_words("negation", "words")
_STILLBORN = re.compile(r"still_b(orn|irth)")
_LABELLED = re.compile(r"\s*\d+\s*[-=:.)]+\s*(?P<word>\D.*)|(?P<before>.*\D)\s*[(=]\s*\d+\s*\)?\s*")
_CODE_IN_NAME = re.compile(r"(\d+)\s*[=:_]?\s*([^\W\d_]+)")
_WITHIN_DAYS = re.compile(r"(<=?|≤|within|under|in|0\s*-)\s*(\d+)\s*(d|days?|dias?|dies|tagen?)?")
_AFTER_DAYS = re.compile(r"(>=?|≥|after|over)\s*(\d+)\s*(d|days?|dias?|dies|tagen?)?")


@dataclass(frozen=True)
class Answers:
    """The texts of a column that say yes, those that say no, and those that say neither.

    ``unknown`` ones are understood as not known; ``strange`` ones are not understood. ``in_words``
    is whether all are a plain yes or no, so that there is nothing to replace.
    """

    yes: tuple[str, ...] = ()
    no: tuple[str, ...] = ()
    unknown: tuple[str, ...] = ()
    strange: tuple[str, ...] = ()
    in_words: bool = False

    @property
    def is_clear(self) -> bool:
        """Whether every text is understood, and some say yes or no."""
        return not self.strange and bool(self.yes or self.no)


def read_answers(
    texts: Collection[str], event: str, column: str = "", *, ending: bool = False
) -> Answers:
    """Return what the texts of a column say of an event, 'died' or 'readmitted'.

    ``ending`` says that the column tells how a visit ended, so that a bare 1 is no yes.

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
    found: dict[str, bool | str | None] = {
        text: labels.get(_normalise_code(text)) if labels else _read_meaning(text, event, ending)
        for text in present
    }
    return Answers(
        yes=tuple(text for text, said in found.items() if said is True),
        no=tuple(text for text, said in found.items() if said is False),
        unknown=tuple(text for text, said in found.items() if said == "unknown"),
        strange=tuple(text for text, said in found.items() if said is None),
        in_words=not labels and all(yes_no(text) is not None for text in present),
    )


def _find_published(texts: Sequence[str], column: str) -> Answers | None:
    """Return what a published list of codes says, None where no list knows all of them."""
    codes = {text: _normalise_code(text) for text in texts}
    for known in _LISTS:
        if not codes or not known.columns.fullmatch(normalise_name(column)):
            continue
        yes = tuple(text for text, code in codes.items() if code in known.yes)
        no = tuple(text for text, code in codes.items() if code in known.no)
        if len(yes) + len(no) == len(codes) and (yes or not known.needs):
            return Answers(yes, no)
    return None


def _labels_in_name(column: str, event: str) -> dict[str, bool | str]:
    """Return what the name of a column says of its codes, as in 'died (1=yes, 2=no)'."""
    pairs = {
        code: _read_meaning(word, event, False) for code, word in _CODE_IN_NAME.findall(column)
    }
    said = {code: meaning for code, meaning in pairs.items() if meaning is not None}
    return said if len(said) > 1 else {}


def _read_meaning(text: str, event: str, ending: bool) -> bool | str | None:
    """Return whether a text says yes, no or 'unknown'; None where it isn't understood."""
    if (labelled := _LABELLED.fullmatch(text)) is not None:
        text = labelled["word"] or labelled["before"]
    if not ending and (answer := yes_no(text)) is not None:
        return None if text.strip().lower() == "x" else answer
    words = normalise_name(text).split("_")
    if not ending and "_".join(words) in _UNKNOWN_WORDS:
        return "unknown"
    return _means_death(words) if event == "died" else _means_readmission(text, words)


def _means_death(words: Sequence[str]) -> bool | None:
    """Return whether words speak of a death; None where they speak of neither death nor life."""
    dead = not _DEATH_WORDS.isdisjoint(words) or _STILLBORN.search("_".join(words)) is not None
    alive = not _ALIVE_WORDS.isdisjoint(words)
    if dead and not _NEGATIONS.isdisjoint(words):
        return None if alive else False
    if dead or alive:
        return None if dead and alive else dead
    return None if _DISCHARGE_WORDS.isdisjoint(words) else False


def _means_readmission(text: str, words: Sequence[str]) -> bool | None:
    """Return whether a text says that a patient came back within thirty days of a discharge."""
    bare = text.strip().lower()
    if sooner := _WITHIN_DAYS.fullmatch(bare):
        return True if int(sooner[2]) <= RETURN_DAYS + (sooner[1] == "<") else None
    if later := _AFTER_DAYS.fullmatch(bare):
        return False if int(later[2]) >= RETURN_DAYS else None
    if _READMISSION_WORDS.isdisjoint(words):
        return None
    return _NEGATIONS.isdisjoint(words)


def _normalise_code(text: str) -> str:
    """Return a code without what writing it in another way adds: blanks, zeros before, '.0'."""
    code = text.strip().lower().removesuffix(".0")
    return code.lstrip("0") or code[-1:]


@dataclass(frozen=True)
class Events:
    """A table with its deaths and readmissions as yes and no, as far as they are understood.

    ``unread`` are the events that a column is named after whose values are not understood.
    """

    table: SourceTable
    layout: Layout
    notes: tuple[str, ...] = ()
    unread: frozenset[str] = frozenset()


def read_events(source: OpenedSource, table: SourceTable, layout: Layout, given: Layout) -> Events:
    """Return a table whose columns of deaths and readmissions say yes or no, and what to know.

    A column that has the role in the ``given`` layout and isn't understood is refused; one that
    was recognised stays a category. Deaths follow from how visits ended where no column has them.
    """
    events = Events(table, layout)
    for event in EVENT_ROLES:
        events = _read_event(source, events, event, given)
    return events


def _read_event(source: OpenedSource, events: Events, event: str, given: Layout) -> Events:
    layout = events.layout
    named = getattr(layout, event) or _find_named_after(events, event)
    if chosen := getattr(layout, f"{event}_values"):
        return _replace_column(
            source, events, event, _read_chosen(source, events.table, event, named, chosen)
        )
    if named is not None:
        column = _read_column(source, events.table, event, named)
        if column.is_understood:
            return _replace_column(source, events, event, column)
        if getattr(given, event) == named:
            raise RecordsError(
                "event.refused",
                table=events.table.label,
                name=named,
                who=_VERBS[event],
                trouble=column.problem,
                event=event,
            )
        if column.counts:
            events = _keep_as_category(events, event, column)
        events = replace(events, layout=_set_column(events.layout, event, None))
    if event == "died" and layout.disposition is not None:
        column = _read_column(source, events.table, event, layout.disposition)
        if not column.is_understood and column.counts:
            return _keep_as_category(events, event, column)
        if column.answers.yes:
            return _replace_column(source, events, event, column)
    return events


def _set_column(layout: Layout, event: str, name: str | None) -> Layout:
    died, readmitted = (name if event == one else getattr(layout, one) for one in EVENT_ROLES)
    return replace(layout, died=died, readmitted=readmitted)


def _find_named_after(events: Events, event: str) -> str | None:
    """Return the column that is named after an event, of those that nothing is said of."""
    layout = events.layout
    taken = {*(layout.codes or ()), *layout.named, *layout.features}
    free = [name for name in events.table.columns if name not in taken and not is_amount(name)]
    return first_match(free, ROLE_NAMES[event])


@dataclass(frozen=True)
class _Column:
    """A column, how many rows have each of its texts, and what these say of an event."""

    name: str
    counts: Mapping[str, int]
    empty: int
    answers: Answers
    chosen: bool = False

    @property
    def is_understood(self) -> bool:
        """Whether all is understood; a lone yes beside empty cells, or a lone 1, may mean all."""
        answers = self.answers
        if not answers.is_clear or answers.no or self.chosen:
            return answers.is_clear
        lone = self.empty > 0 or all(_normalise_code(text) == "1" for text in answers.yes)
        return not lone

    @property
    def problem(self) -> str:
        """Why it isn't understood; values of few rows aren't shown."""
        strange = self.answers.strange
        shown = [text for text in strange if self.counts.get(text, 0) >= _MIN_SHOWN_ROWS]
        if not strange:
            return Message("event.lone")
        return Message("event.strange", shown=_listed(shown, strange))


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
    """Return a column of which it is said which values count; all others are a no."""
    if name is None:
        raise RecordsError("event.unnamed", table=table.label, event=event)
    counts, empty = _count_values(source, table, name)
    wanted = {_normalise_code(value) for value in values}
    yes = tuple(text for text in sorted(counts) if _normalise_code(text) in wanted)
    if not yes:
        shown = [text for text in sorted(counts) if counts[text] >= _MIN_SHOWN_ROWS]
        raise RecordsError(
            "event.absent",
            table=table.label,
            values=_listed(values, values),
            name=name,
            who=_VERBS[event],
            shown=_listed(shown, tuple(counts)),
        )
    rest = [text for text in sorted(counts) if text not in yes]
    unknown = tuple(text for text in rest if normalise_name(text) in _UNKNOWN_WORDS)
    no = tuple(text for text in rest if text not in unknown)
    return _Column(name, counts, empty, Answers(yes, no, unknown), chosen=True)


def _count_values(
    source: OpenedSource, table: SourceTable, name: str
) -> tuple[dict[str, int], int]:
    """Return how many rows have each text of a column, and how many have none."""
    text = text_sql(name, table.columns[name])
    sql = f"SELECT {text}, count(*) FROM {table.sql} GROUP BY 1"
    found: dict[str | None, int] = dict(source.query_whole(table, sql, add_by_first))
    known = {one: n for one, n in found.items() if one and one.strip().upper() not in MARKS}
    return known, sum(found.values()) - sum(known.values())


def _keep_as_category(events: Events, event: str, column: _Column) -> Events:
    """Return the table in which a column that isn't understood stays a category."""
    layout, name = events.layout, column.name
    if name not in (*layout.category, layout.disposition):
        layout = replace(layout, category=(*layout.category, name))
    note = Message(
        "note.event_unread", name=name, who=_VERBS[event], trouble=column.problem, event=event
    )
    return replace(
        events,
        layout=_set_column(layout, event, None),
        notes=(*events.notes, note),
        unread=events.unread | {event},
    )


def _replace_column(source: OpenedSource, events: Events, event: str, column: _Column) -> Events:
    """Return the table in which an event is true or false.

    It takes the place of a column that is named after it; another column stays, as a category.
    """
    table, layout, name, answers = events.table, events.layout, column.name, column.answers
    if answers.in_words and not column.chosen:
        return replace(events, layout=_set_column(layout, event, name))
    text = text_sql(name, table.columns[name])
    yes, no = (", ".join(map(literal, texts)) or "NULL" for texts in (answers.yes, answers.no))
    rest = " ELSE false" if column.chosen and not answers.no else ""
    told = f"CASE WHEN {text} IN ({yes}) THEN true WHEN {text} IN ({no}) THEN false{rest} END"
    if find_role(name) == event:
        sql, own = f"SELECT * REPLACE ({told} AS {quote(name)}) FROM {table.sql}", name
    else:
        own = f" {event}"
        sql = f"SELECT *, {told} AS {quote(own)} FROM {table.sql}"
        if name not in (*layout.category, layout.disposition):
            layout = replace(layout, category=(*layout.category, name))
    return replace(
        events,
        table=source.view(table.label, sql, table.text),
        layout=_set_column(layout, event, own),
        notes=(*events.notes, _describe_origin(event, column, bool(rest))),
    )


def _describe_origin(event: str, column: _Column, empty_is_no: bool) -> str:
    """Return the note that says which column and which of its values an event is made of."""
    answers = column.answers
    if not answers.yes:
        return Message("note.event_no_yes", event=event, column=column.name)
    parts = [
        Message(
            "note.event_yes",
            event=event,
            column=column.name,
            values=_list_understood(column, answers.yes),
        )
    ]
    if answers.no:
        parts.append(Message("note.event_no", values=_list_understood(column, answers.no)))
    if empty_is_no:
        parts.append(Message("note.event_empty"))
    if answers.unknown:
        parts.append(
            Message("note.event_unknown", values=_list_understood(column, answers.unknown))
        )
    return Message("text.parts", parts=parts)


def _list_understood(column: _Column, texts: Sequence[str]) -> str:
    """List texts that are understood; those of many words and few rows may be of a person."""
    plainly = [
        one for one in texts if column.counts[one] >= _MIN_SHOWN_ROWS or len(one.split()) < 4
    ]
    return _listed(plainly, texts)


def _listed(shown: Sequence[str], every: Sequence[str]) -> str:
    """Return some values between commas, and that there are others."""
    short = [text for text in shown if len(text) <= _MAX_SHOWN_LENGTH][:_MAX_SHOWN_VALUES]
    others = [Message("text.other_values")] if len(short) < len(every) else []
    if not short:
        return Message("event.its_values")
    return Message("text.list", parts=[*map(repr, short), *others])
