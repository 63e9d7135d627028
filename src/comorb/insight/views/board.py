"""Board: what a board is shown of a profile, page by page, before it is drawn on any paper."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from math import isnan

import numpy as np

from comorb.insight.profile.contents import Cluster, Outcome
from comorb.insight.profile.profile import Profile
from comorb.insight.views.diagnoses import translated
from comorb.insight.views.findings import (
    DOUBTFUL,
    Finding,
    column_name,
    findings,
    interval,
    written,
)
from comorb.insight.views.words import Words
from comorb.records.values import yes_no

DIAGNOSES = 10  # that mark a cluster out, at most
FIGURES = 10  # on the page of a cluster, at most
_WHO = ("age", "sex")
_FIRST = ("died", "readmitted", "los", "length_of_stay", "days_of_care", "cost", "visits")


@dataclass(frozen=True)
class Measure:
    """One figure of every cluster and of all records, which come last, as text."""

    name: str
    texts: tuple[str, ...]
    outcome: Outcome
    value: int


@dataclass(frozen=True, eq=False)
class Board:
    """A profile for a board: in a language, with a site, a day and starred outcomes.

    The day is given as 2026-01-31, and is not the clock's, so that the same gives the same bytes.
    """

    given: Profile
    words: Words = field(default_factory=Words)
    site: str = ""
    date: str = ""
    starred: tuple[str, ...] = ()

    @cached_property
    def profile(self) -> Profile:
        """The profile with its diagnoses in the language."""
        return translated(self.given, self.words.language)

    @property
    def title(self) -> str:
        """What the data are, in the user's words."""
        return self.given.source.title

    @property
    def place_and_day(self) -> str:
        """The site and the day, as far as they are known."""
        day = self.words.date(self.date) if self.date else ""
        return " · ".join(part for part in (self.site, day) if part)

    @property
    def facts(self) -> str:
        """How much was looked at, in one line."""
        source, words = self.given.source, self.words
        facts = [f"{words.count(source.records)} {words('records')}"]
        if source.weight is not None:
            facts.append(words("board.weight", n=words.count(source.weight)))
        facts.append(words("board.groups", n=words.count(self.given.k)))
        return " · ".join(facts)

    @cached_property
    def findings(self) -> list[Finding]:
        """What stands out."""
        return findings(self.profile, self.words, self.starred)

    @property
    def care(self) -> str:
        """How far the findings go: by intervals, corrected or not, and protected."""
        words, told = self.words, [self.words("board.care")]
        about = {finding.about for finding in self.findings}
        if self.profile.burden is not None:
            about -= set(self.profile.burden.columns)  # totals, which are of the records as put
        named = [one for one in self.profile.outcomes if one.name in about]
        for key, better in (("board.corrected", True), ("board.uncorrected", False)):
            names = [
                column_name(one.name, words)
                for one in named
                if (one.corrected is not None) == better
            ]
            told += [words(key, names=", ".join(names))] if names else []
        return " ".join([*told, words("board.noise")] if self.profile.min_cell else told)

    @cached_property
    def measures(self) -> list[Measure]:
        """The figures of starred outcomes, or of all of them when none is starred."""
        wanted = [one for one in self.profile.outcomes if one.name in self.starred]
        ranks = {name: rank for rank, name in enumerate(_FIRST)}
        every = wanted or list(self.profile.outcomes)
        return self._measured(sorted(every, key=lambda one: ranks.get(one.name, len(ranks))))

    @property
    def features(self) -> list[Measure]:
        """The figures of what the clusters were found by beside the codes."""
        return self._measured([one.summary for one in self.profile.features])

    def _measured(self, outcomes: Sequence[Outcome]) -> list[Measure]:
        return [
            Measure(self._heading(one, v), self._texts(one, v), one, v)
            for one in outcomes
            for v, estimates in enumerate(one.estimate)
            if not all(isnan(estimate) for estimate in estimates)
        ]

    def _heading(self, outcome: Outcome, v: int) -> str:
        name, value = column_name(outcome.name, self.words), outcome.values[v].replace("_", " ")
        value = self.words.get(f"value.{value.lower()}", value)
        if outcome.kind == "number":
            return f"{name} ({self.words(f'outcomes.{outcome.values[v]}')})"
        return (
            name if len(outcome.values) == 1 and yes_no(outcome.values[v]) else f"{name}: {value}"
        )

    def _texts(self, outcome: Outcome, v: int) -> tuple[str, ...]:
        shown = outcome.shown
        every = zip(shown.estimate[v], shown.low[v], shown.high[v], strict=True)
        return tuple(interval(self.words, outcome.kind, *figures) for figures in every)

    def measures_of(self, place: int) -> list[tuple[str, str, str]]:
        """Return what becomes of a cluster: name, its own figure, and that of all records."""
        mine = [one for one in self.measures if self.starred or one.outcome.name not in _WHO]
        once = list({one.texts: one for one in mine[::-1] if self._says(one)}.values())
        told = [one for one in mine if one in once]
        means = [one for one in told if one.outcome.kind == "share" or one.value == 0]
        shown = told if len(told) <= FIGURES else means
        names = dict.fromkeys(one.outcome.name for one in shown)
        kept: list[Measure] = []
        for of_one in ([one for one in shown if one.outcome.name == name] for name in names):
            if len(kept) + len(of_one) <= FIGURES:  # no outcome is cut in the middle
                kept += of_one
        return [
            (one.name, one.texts[place], self._plain(one, self.profile.k))
            for one in kept or shown[:FIGURES]
        ]

    def _says(self, measure: Measure) -> bool:
        """Tell whether a figure is told and not 0 in some cluster."""
        return bool(np.nan_to_num(measure.outcome.shown.estimate[measure.value, :-1]).any())

    def _plain(self, measure: Measure, place: int) -> str:
        outcome = measure.outcome
        return written(self.words, outcome.kind, outcome.shown.estimate[measure.value, place])

    def who(self, place: int) -> list[str]:
        """Return how many a cluster has, and their ages and sexes."""
        cluster, words = self.profile.clusters[place], self.words
        if cluster.size is None:
            return [words("board.few")]
        size = words(
            "board.size", n=words.count(cluster.size), share=words.percent(cluster.share, 1)
        )
        known = self._measured([one for one in self.profile.outcomes if one.name in _WHO])
        told = [one for one in known if one.outcome.kind == "share" or one.value == 0][:3]
        return [size, *(f"{one.name}: {self._plain(one, place)}" for one in told)]

    def certainty(self, cluster: Cluster) -> list[str]:
        """Return how sure a cluster is, in sentences."""
        words, told = self.words, []
        if cluster.top is not None:
            told.append(words("board.confidence", x=words.percent(cluster.top)))
        if cluster.stability is not None:
            key = "board.unstable" if cluster.stability < DOUBTFUL else "board.stable"
            told.append(words(key, x=words.number(cluster.stability, 2)))
        return told

    def note(self, cluster: Cluster) -> list[str]:
        """Return the note on a cluster, with its owner and pathway."""
        words, told = self.words, [cluster.note] if cluster.note else []
        named = [key for key in ("owner", "pathway") if getattr(cluster, key)]
        return [*told, *(words(f"board.{key}", x=getattr(cluster, key)) for key in named)]

    def marks(self, place: int) -> list[int]:
        """Return the diagnoses that mark a cluster out, as places in ``codes``."""
        return [int(code) for code in self.profile.top(place, n=DIAGNOSES)]

    @property
    def ledger(self) -> tuple[tuple[str, ...], list[tuple[str, ...]]]:
        """The heads and lines of the ledger."""
        words = self.words
        heads = tuple(words(f"ledger.{key}") for key in _LEDGER)
        lines: list[tuple[str, ...]] = [
            (
                words(f"ledger.{line.unit}"),
                words.said(line.rule),
                words.count(line.before),
                words.count(line.removed) if line.removed else "–",
                words.count(line.after),
            )
            for line in self.given.source.lines
        ]
        return heads, lines

    def method(self) -> dict[str, list[str]]:
        """Return how the clusters were found, and how to do it again, as blocks of sentences."""
        words, profile, source = self.words, self.profile, self.given.source
        names = ", ".join(column_name(one.name, words) for one in profile.features)
        how = words("board.method.features", names=names) if names else ""
        few = str(profile.min_cell - 1)
        counts = words("board.protected", few=few) if profile.min_cell else words("board.full")
        made = [part for part in (source.command, f"comorb {source.version}") if part]
        made += [words("board.digest", x=source.digest)] if source.digest else []
        return {
            words("board.method.how"): [how or words("board.method.codes"), *self._influence()],
            words("board.number"): [words.said(source.reason)] if source.reason else [],
            words("board.counts"): [counts],
            words("ledger.short"): [words.said(note) for note in source.notes],
            words("board.unexplained"): self._unexplained(),
            words("again.title"): made,
        }

    def _influence(self) -> list[str]:
        """Return the share of codes and features in what sets the clusters apart, as one line."""
        words = self.words
        parts = [
            words("board.codes", share=words.percent(share))
            if name == "codes"
            else f"{column_name(name, words)} {words.percent(share)}"
            for name, share in self.profile.influence.items()
            if name != "codes" or self.profile.n_codes
        ]
        told = f"{words('board.influence')}: {', '.join(parts)}."
        return [told] if self.profile.features else []

    def _unexplained(self) -> list[str]:
        """Return how far the length of records is explained, and the codes that come together."""
        caveats, labels, words = self.profile.caveats, self.profile.labels, self.words
        told = [
            words(
                "board.pair",
                a=labels[pair.first],
                b=labels[pair.second],
                observed=words.count(pair.observed),
                expected=words.count(pair.expected),
            )
            for pair in caveats.pairs
        ]
        if caveats.explained_by_length is not None:
            share = words.percent(caveats.explained_by_length)
            told.insert(0, words("trust.lengths", share=share))
        return told


_LEDGER = ("unit", "rule", "before", "removed", "after")
