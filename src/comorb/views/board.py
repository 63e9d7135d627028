"""Board: the texts and figures of a profile for a hospital board, before any layout."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from math import isnan

import numpy as np

from comorb.messages import render
from comorb.model import select_k
from comorb.profiles.contents import Cluster, Outcome
from comorb.profiles.profile import Profile
from comorb.records.values import yes_no
from comorb.views.findings import Finding, column_name, findings, write_figure, write_interval
from comorb.views.words import Words, translated

MAX_DIAGNOSES = 10  # that mark a cluster out, at most
MAX_FIGURES = 10  # on the page of a cluster, at most
_DEMOGRAPHICS = ("age", "sex")
_FIRST_OUTCOMES = ("died", "readmitted", "los", "length_of_stay", "days_of_care", "cost", "visits")


@dataclass(frozen=True)
class Measure:
    """One figure of every cluster and of all records, which come last, as text.

    ``texts`` are what was counted, with its interval; ``details`` has of how many, and the figure
    that is corrected for records that may be of another cluster.
    """

    name: str
    texts: tuple[str, ...]
    details: tuple[str, ...]
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
        """How far the findings go: by intervals, of records as they are put, and protected."""
        shown = [self.words("board.care"), self.words("board.observed")]
        return " ".join([*shown, self.words("board.noise")] if self.profile.min_cell else shown)

    @cached_property
    def measures(self) -> list[Measure]:
        """The figures of starred outcomes, or of all of them when none is starred."""
        wanted = [one for one in self.profile.outcomes if one.name in self.starred]
        ranks = {name: rank for rank, name in enumerate(_FIRST_OUTCOMES)}
        every = wanted or list(self.profile.outcomes)
        return self._measure(sorted(every, key=lambda one: ranks.get(one.name, len(ranks))))

    @property
    def features(self) -> list[Measure]:
        """The figures of the features, besides codes, that the clusters were found by."""
        return self._measure([one.summary for one in self.profile.features])

    def _measure(self, outcomes: Sequence[Outcome]) -> list[Measure]:
        return [
            Measure(self._heading(one, v), self._texts(one, v), self._details(one, v), one, v)
            for one in outcomes
            for v in range(len(one.values))
            if not np.isnan(one.estimate[v]).all()
        ]

    def _heading(self, outcome: Outcome, v: int) -> str:
        name, value = column_name(outcome.name, self.words), outcome.values[v].replace("_", " ")
        value = self.words.get(f"value.{value.lower()}", value)
        if outcome.kind == "number":
            return f"{name} ({self.words(f'outcomes.{outcome.values[v]}')})"
        rate = len(outcome.values) == 1 and yes_no(outcome.values[v])
        return name if rate else f"{name}: {value}"

    def _texts(self, outcome: Outcome, v: int) -> tuple[str, ...]:
        every = zip(outcome.estimate[v], outcome.low[v], outcome.high[v], strict=True)
        return tuple(write_interval(self.words, outcome.kind, *figures) for figures in every)

    def _details(self, outcome: Outcome, v: int) -> tuple[str, ...]:
        words, better = self.words, outcome.corrected
        shown: list[str] = []
        for place, known in enumerate(outcome.known):
            parts = []
            if outcome.kind == "share" and not isnan(outcome.counts[v, place]):
                counted = words.count(outcome.counts[v, place])
                parts.append(words("outcomes.counted", n=counted, all=words.count(known)))
            corrected = outcome.values[v] != "median" and place < self.profile.k
            if better is not None and corrected:
                figure = write_figure(words, outcome.kind, better.estimate[v, place])
                parts.append(words("outcomes.better", x=figure))
            shown.append(" · ".join(parts))
        return tuple(shown)

    def measures_of(self, place: int) -> list[tuple[str, str, str, str]]:
        """Return the outcomes of a cluster: name, figure, details, and that of all records."""
        some = [
            one
            for one in self.measures
            if (self.starred or one.outcome.name not in _DEMOGRAPHICS)
            and np.nan_to_num(one.outcome.estimate[one.value, :-1]).any()  # somewhere not 0
        ]
        once = list({one.texts: one for one in some[::-1]}.values())
        shown = [one for one in some if one in once]
        means = [one for one in shown if one.outcome.kind == "share" or one.value == 0]
        shown = shown if len(shown) <= MAX_FIGURES else means
        names = dict.fromkeys(one.outcome.name for one in shown)
        kept: list[Measure] = []
        for of_one in ([one for one in shown if one.outcome.name == name] for name in names):
            if len(kept) + len(of_one) <= MAX_FIGURES:  # no outcome is cut in the middle
                kept += of_one
        return [
            (one.name, one.texts[place], one.details[place], self._plain(one, self.profile.k))
            for one in kept or shown[:MAX_FIGURES]
        ]

    def _plain(self, measure: Measure, place: int) -> str:
        outcome = measure.outcome
        return write_figure(self.words, outcome.kind, outcome.estimate[measure.value, place])

    def describe_people(self, place: int) -> list[str]:
        """Return how many a cluster has, and their ages and sexes."""
        cluster, words = self.profile.clusters[place], self.words
        if cluster.size is None:
            return [words("board.few")]
        share = words.percent(cluster.share, 1)
        size = words("board.size", n=words.count(cluster.size), share=share)
        known = self._measure([one for one in self.profile.outcomes if one.name in _DEMOGRAPHICS])
        shown = [one for one in known if one.outcome.kind == "share" or one.value == 0][:3]
        return [size, *(f"{one.name}: {self._plain(one, place)}" for one in shown)]

    def certainty(self, cluster: Cluster) -> list[str]:
        """Return how sure a cluster is, in sentences."""
        words, shown = self.words, []
        if cluster.top is not None:
            shown.append(words("board.confidence", x=words.percent(cluster.top)))
        if cluster.stability is not None:
            stable = cluster.stability >= select_k.CONFIG.reliable
            key = "board.stable" if stable else "board.unstable"
            shown.append(words(key, x=words.number(cluster.stability, 2)))
        return shown

    def note(self, cluster: Cluster) -> list[str]:
        """Return the note on a cluster, with its owner and pathway."""
        words, shown = self.words, [cluster.note] if cluster.note else []
        named = [key for key in ("owner", "pathway") if getattr(cluster, key)]
        return [*shown, *(words(f"board.{key}", x=getattr(cluster, key)) for key in named)]

    def marking_codes(self, place: int) -> list[int]:
        """Return the diagnoses that mark a cluster out, as places in ``codes``."""
        return [int(code) for code in self.profile.top(place, n=MAX_DIAGNOSES)]

    @property
    def ledger(self) -> tuple[tuple[str, ...], list[tuple[str, ...]]]:
        """The heads and lines of the ledger."""
        words = self.words
        columns = ("unit", "rule", "before", "removed", "after")
        heads = tuple(words(f"ledger.{key}") for key in columns)
        lines: list[tuple[str, ...]] = [
            (
                words(f"ledger.{line.unit}"),
                render(line.rule, words.language),
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
            words("board.number"): [render(source.reason, words.language)] if source.reason else [],
            words("board.counts"): [counts],
            words("ledger.short"): [render(note, words.language) for note in source.notes],
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
        shown = f"{words('board.influence')}: {', '.join(parts)}."
        return [shown] if self.profile.features else []

    def _unexplained(self) -> list[str]:
        """Return how far the length of records is explained, and the codes that come together."""
        caveats, labels, words = self.profile.caveats, self.profile.labels, self.words
        shown = [
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
            shown.insert(0, words("trust.lengths", share=share))
        return shown
