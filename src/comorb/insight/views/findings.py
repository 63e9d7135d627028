"""Findings: plain sentences on what stands out, each only where the intervals bear it out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Literal

import numpy as np

from comorb.insight.profile import codec
from comorb.insight.profile.contents import Outcome
from comorb.insight.profile.profile import Profile
from comorb.insight.views.diagnoses import translated
from comorb.insight.views.words import Words
from comorb.model.arrays import Floats
from comorb.records.values import yes_no

DOUBTFUL = 0.75  # stability below which a cluster is doubtful; the page says the same
_RATES = ("died", "readmitted", "age")
_MOST = 7  # findings, at most
_NAMED = 3  # groups in one sentence, at most


@dataclass(frozen=True)
class Finding:
    """A sentence, and what it is about: a column, and the numbers of clusters."""

    text: str
    about: str
    clusters: tuple[int, ...] = ()


def findings(profile: Profile, words: Words, starred: Sequence[str] = ()) -> list[Finding]:
    """Return what stands out: who uses most, who dies and returns most, what to take with care.

    With ``starred`` outcomes, of these alone. A group is named where its 95% interval lies apart
    from those of the others, or else from the figure over all records.
    """
    if profile.k == 1:
        return [Finding(words("finding.one"), "records")]
    burden = profile.burden
    used = () if burden is None else (burden.main or burden.columns[:3])
    told: list[list[Finding]] = []
    for name in starred or (*used, *_RATES):
        figures = _figures(profile, name)
        if figures is None:
            continue
        if name in used and figures.kind == "number":
            told.append(_use(profile, words, figures) if figures.places else [])
        else:
            told.append([_highest(profile, words, figures)])
    ranked = [(nth, finding) for of_one in told for nth, finding in enumerate(of_one)]
    first = sorted(ranked, key=lambda one: one[0])[: _MOST - 1]
    kept = [finding for nth, finding in ranked if (nth, finding) in first]
    return (kept or _largest(profile, words)) + _doubtful(profile, words)


@dataclass(frozen=True, eq=False)
class _Figures:
    """A figure of each cluster, and of all records last, with both ends of its interval."""

    name: str
    kind: Literal["number", "share"]
    estimate: Floats
    low: Floats
    high: Floats

    @property
    def places(self) -> list[int]:
        """The clusters whose figure and interval are told."""
        told = np.isfinite(self.estimate) & np.isfinite(self.low) & np.isfinite(self.high)
        return [int(place) for place in np.flatnonzero(told[:-1])]

    @property
    def apart(self) -> int | None:
        """The cluster whose interval lies above those of all others, or none."""
        first = max(self.places, key=lambda j: self.estimate[j], default=None)
        others = [j for j in self.places if j != first]
        sure = first is not None and all(self.low[first] > self.high[j] for j in others)
        return first if sure else None


def _figures(profile: Profile, name: str) -> _Figures | None:
    """Return the figures of a column, corrected where they are; those of a rate, or of a mean."""
    for one in profile.outcomes:
        if one.name == name and (one.kind == "number" or _is_rate(one)):
            shown = one.shown
            return _Figures(name, one.kind, shown.estimate[0], shown.low[0], shown.high[0])
    burden = profile.burden
    if burden is None or name not in burden.rates:
        return None
    row = burden.rates.index(name)
    return _Figures(name, "share", burden.rate[row], burden.low[row], burden.high[row])


def unit_of(profile: Profile) -> str:
    """Return what a record of the clusters is: one of patients, of visits, or of records."""
    burden = profile.burden
    if burden is None or not (burden.patients.size or "visits" in burden.columns):
        return "records"
    return "patients" if "visits" in burden.columns else "visits"


def page_json(profile: Profile, language: str = "en") -> str:
    """Return a profile as its page reads it: in a language, with its findings as sentences."""
    shown = translated(profile, language)
    told = [asdict(finding) for finding in findings(shown, Words(language))]
    return codec.encode(shown, {"findings": told})


def group(profile: Profile, words: Words, place: int) -> str:
    """Return a cluster as a sentence names it."""
    cluster = profile.clusters[place]
    return words("board.group", n=str(cluster.number), name=cluster.name)


def column_name(name: str, words: Words) -> str:
    """Return what a column is called: by its role, or by its own name made plain."""
    return words.get(f"outcome.{name}", name.replace("_", " ").capitalize())


def amount(name: str, words: Words) -> str:
    """Return what a column that is added up is called within a sentence."""
    return words.get(f"burden.{name}", name.replace("_", " "))


def _use(profile: Profile, words: Words, mean: _Figures) -> list[Finding]:
    """Tell who uses most of an amount, and who uses most beyond its size."""
    burden = profile.burden
    assert burden is not None  # noqa: S101 - for the type checker: the amount is one of its columns
    name = mean.name
    shares = burden.shares[burden.columns.index(name)]
    with np.errstate(divide="ignore", invalid="ignore"):
        ends = (shares * end / mean.estimate for end in (mean.low, mean.high))
    used = _Figures(name, "share", shares, *ends)
    what = amount(name, words)

    def tell(key: str, place: int) -> Finding:
        text = words(
            _key(words, f"finding.{key}", name),
            group=group(profile, words, place),
            what=what,
            share=words.percent(shares[place]),
            records=words.percent(burden.share[place]),
            unit=words(f"finding.unit.{unit_of(profile)}"),
        )
        return Finding(_capital(text), name, (profile.numbers[place],))

    most = used.apart
    told = [_close(profile, words, used)] if most is None else [tell("most", most)]
    above = (j for j in used.places if mean.low[j] > mean.estimate[-1])
    over = [j for j in above if shares[j] > burden.share[j]]
    beyond = max(over, key=lambda j: shares[j] - burden.share[j], default=None)
    if beyond is not None and beyond != most:
        told.append(tell("more", beyond))
    return told


def _close(profile: Profile, words: Words, used: _Figures) -> Finding:
    """Tell which groups use most of an amount, where it can't be said which of them does."""
    order = sorted(used.places, key=lambda j: -used.estimate[j])
    near = [j for j in order if used.high[j] >= used.low[order[0]]][:_NAMED]
    groups = [f"{group(profile, words, j)}: {words.percent(used.estimate[j])}" for j in near]
    key = _key(words, "finding.close", used.name)
    text = words(key, what=amount(used.name, words), groups="; ".join(groups))
    return Finding(text, used.name, tuple(profile.numbers[j] for j in near))


def _highest(profile: Profile, words: Words, figures: _Figures) -> Finding:
    """Tell which group has most of an outcome, or which have more than over all."""
    name, kind, figure = figures.name, figures.kind, figures.estimate
    of_all = written(words, kind, figure[-1])

    def tell(key: str, *places: int, **values: str) -> Finding:
        own, other = f"finding.{name}.{key}", f"finding.other.{key}"
        sentence = own if words.get(own, "") else other
        text = words(sentence, what=column_name(name, words), all=of_all, **values)
        return Finding(_capital(text), name, tuple(profile.numbers[j] for j in places))

    first = figures.apart
    if first is not None:
        x = interval(words, kind, figure[first], figures.low[first], figures.high[first])
        return tell("most", first, group=group(profile, words, first), x=x)
    above = [j for j in figures.places if figures.low[j] > figure[-1]]
    above = sorted(above, key=lambda j: -figure[j])[:_NAMED]
    if not above:
        return tell("even")
    named = [f"{group(profile, words, j)}: {written(words, kind, figure[j])}" for j in above]
    return tell("more", *above, groups="; ".join(named))


def _largest(profile: Profile, words: Words) -> list[Finding]:
    sizes = [(cluster.share or 0.0, -j) for j, cluster in enumerate(profile.clusters)]
    share, place = max(sizes)
    text = words("finding.largest", group=group(profile, words, -place), share=words.percent(share))
    return [Finding(_capital(text), "records", (profile.numbers[-place],))]


def _doubtful(profile: Profile, words: Words) -> list[Finding]:
    weak = [
        cluster.number
        for cluster in profile.clusters
        if cluster.stability is not None and cluster.stability < DOUBTFUL
    ]
    if not weak:
        return []
    key = "finding.doubt" if len(weak) > 1 else "finding.doubt.one"
    return [Finding(words(key, groups=", ".join(map(str, weak))), "stability", tuple(weak))]


def written(words: Words, kind: str, value: float) -> str:
    """Return a figure as text: shares in percent, large numbers without decimals."""
    if kind == "share":
        return words.percent(value, 1)
    return words.number(value, 0 if abs(value) >= 1000 else 1)


def interval(words: Words, kind: str, value: float, low: float, high: float) -> str:
    """Return a figure with its interval, where that is told."""
    text = written(words, kind, value)
    if np.isnan(value) or np.isnan(low):
        return text
    scale = 100 if kind == "share" else 1
    digits = 0 if abs(value) >= 1000 else 1
    ends = (words.number(scale * one, digits) for one in (low, high))
    return f"{text} ({'–'.join(ends)})"


def _is_rate(outcome: Outcome) -> bool:
    return len(outcome.values) == 1 and bool(yes_no(outcome.values[0]))


def _key(words: Words, key: str, name: str) -> str:
    """Return the key of a sentence, of a column's own where it has one."""
    own = f"{key}.{name}"
    return own if words.get(own, "") else key


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]
