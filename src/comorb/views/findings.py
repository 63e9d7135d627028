"""Findings: plain sentences on what stands out, each only where chance does not explain it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any, Literal

import numpy as np

from comorb.model import diagnostics, select_k
from comorb.model.arrays import Floats, Mask
from comorb.profiles import codec
from comorb.profiles.assignment import REVIEW_BELOW
from comorb.profiles.burden import MAIN_COLUMNS
from comorb.profiles.intervals import (
    mean_above_p,
    reject_by_holm,
    round_nine_digits,
    share_above_p,
)
from comorb.profiles.labels import DEFAULT_LAMBDA, TINY
from comorb.profiles.noise import noise_odds
from comorb.profiles.profile import Profile
from comorb.records.values import yes_no
from comorb.views.words import Words, rendered, translated

_RATES = ("died", "readmitted", "age")
_MAX_FINDINGS = 7  # findings, at most
_MAX_GROUPS = 3  # groups in one sentence, at most
_COMMON = 40  # the most rows that the page's chart of frequencies can have


@dataclass(frozen=True)
class Finding:
    """A sentence, and what it is about: a column, and the numbers of clusters."""

    text: str
    about: str
    clusters: tuple[int, ...] = ()


def findings(profile: Profile, words: Words, starred: Sequence[str] = ()) -> list[Finding]:
    """Return what stands out: who uses most, who dies and returns most, what to take with care.

    With ``starred`` outcomes, of these alone. A group is named where its figure is above that of
    all records by Holm's tests of all groups and outcomes of the run: of 20 runs without any
    differences one has a sentence at most. It has the most where its 95% interval also lies above
    those of all others.
    """
    if profile.k == 1:
        return [Finding(words("finding.one"), "records")]
    used = [name for name, _ in profile.uses]
    found: list[list[Finding]] = []
    every = _all_figures(profile)
    for name in starred or (*used, *_RATES):
        figures = every.get(name)
        if figures is not None and name in used and figures.kind == "number":
            found.append(_find_use(profile, words, figures) if figures.places else [])
        elif figures is not None:
            found.append([_find_highest(profile, words, figures)])
    ranked = [(nth, finding) for of_one in found for nth, finding in enumerate(of_one)]
    first = sorted(ranked, key=lambda one: one[0])[: _MAX_FINDINGS - 1]
    kept = [finding for nth, finding in ranked if (nth, finding) in first]
    return (kept or _find_largest(profile, words)) + _find_doubtful(profile, words)


@dataclass(frozen=True, eq=False)
class _Figures:
    """A figure of each cluster, and of all records last, with both ends of its interval."""

    name: str
    kind: Literal["number", "share"]
    estimate: Floats
    low: Floats
    high: Floats
    n: Floats  # effective numbers of records with a value
    above: Mask = field(
        default_factory=lambda: np.zeros(0, dtype=bool)
    )  # (k,): the clusters that are above all records beyond chance

    @property
    def places(self) -> list[int]:
        """The clusters whose figure and interval are found."""
        found = np.isfinite(self.estimate) & np.isfinite(self.low) & np.isfinite(self.high)
        return [int(place) for place in np.flatnonzero(found[:-1])]

    @property
    def apart(self) -> int | None:
        """The cluster whose interval lies above those of all others, or none.

        The highest of several is named rightly where it differs from each of the others at the
        two-sided level (Hung and Fithian, 2019); intervals that lie apart ask for more.
        """
        first = max(self.places, key=lambda j: self.estimate[j], default=None)
        others = [j for j in self.places if j != first]
        sure = first is not None and all(self.low[first] > self.high[j] for j in others)
        return first if sure else None

    def p(self, protected: bool) -> Floats:
        """Return the p of each cluster's figure above that of all records."""
        if self.kind == "share":
            return share_above_p(self.estimate, self.n, noise_odds() if protected else None)
        return mean_above_p(self.estimate, (self.high - self.low) / 2, self.n)


def _all_figures(profile: Profile) -> dict[str, _Figures]:
    """Return the figures of rates and means as counted, by column, tested together."""
    burden = profile.burden
    pairs = [(one.effective, one.size) for one in profile.clusters]
    pairs.append((profile.source.effective, profile.source.records))
    design = np.array([some / n if some and n else np.nan for some, n in pairs])
    every: dict[str, _Figures] = {}
    if burden is not None:
        rates = zip(burden.rate, burden.low, burden.high, burden.rate_known, strict=False)
        for name, figures in zip(burden.rates, rates, strict=False):
            every[name] = _Figures(name, "share", *figures)
    for one in profile.outcomes:
        rate = len(one.values) == 1 and yes_no(one.values[0])
        if one.name not in every and (one.kind == "number" or rate):
            own = one.estimate[0], one.low[0], one.high[0], one.known
            every[one.name] = _Figures(one.name, one.kind, *own)
    every = {name: replace(one, n=one.n * design) for name, one in every.items()}
    protected = profile.min_cell > 0
    p = np.array([one.p(protected) for one in every.values()])
    above = zip(every.items(), reject_by_holm(p), strict=True)
    return {name: replace(one, above=row) for (name, one), row in above}


def unit_of(profile: Profile) -> str:
    """Return what a record of the clusters is: one of patients, of visits, or of records."""
    burden = profile.burden
    if burden is None or not (burden.patients.size or "visits" in burden.columns):
        return "records"
    return "patients" if "visits" in burden.columns else "visits"


def page_json(profile: Profile, language: str = "en") -> str:
    """Return a profile as its page reads it: in a language, with its findings as sentences.

    What the page shows of a profile beyond its fields comes with it, made here.
    """
    shown = rendered(translated(profile, language), language)
    found = [asdict(finding) for finding in findings(shown, Words(language))]
    return codec.encode(shown, {"findings": found, "page": _page_figures(shown)})


def _page_figures(profile: Profile) -> dict[str, Any]:
    """Return rankings, as places in ``codes``, intervals over all records, and constants."""
    used = () if profile.burden is None else profile.burden.columns
    return {
        "n_codes": profile.n_codes,
        "universal": profile.universal,
        "common": profile.common(_COMMON).tolist(),
        "relevant": [profile.top(j, n=len(profile.codes)).tolist() for j in range(profile.k)],
        "overall": [
            [None if np.isnan(x) else x for x in round_nine_digits(end).tolist()]
            for end in profile.overall_intervals()
        ],
        "unit": unit_of(profile),
        "main_uses": [name for name in MAIN_COLUMNS if name in used] or used[:2],
        "lambda": DEFAULT_LAMBDA,
        "tiny": TINY,
        "reliable": select_k.CONFIG.reliable,
        "by_length": diagnostics.CONFIG.mostly_length,
        "sure": REVIEW_BELOW,
    }


def group_name(profile: Profile, words: Words, place: int) -> str:
    """Return a cluster as a sentence names it."""
    cluster = profile.clusters[place]
    return words("board.group", n=str(cluster.number), name=cluster.name)


def column_name(name: str, words: Words) -> str:
    """Return what a column is called: by its role, or by its own name made plain."""
    return words.get(f"outcome.{name}", name.replace("_", " ").capitalize())


def amount_name(name: str, words: Words) -> str:
    """Return what a column that is added up is called within a sentence."""
    return words.get(f"burden.{name}", name.replace("_", " "))


def _find_use(profile: Profile, words: Words, mean: _Figures) -> list[Finding]:
    """Say who uses most of an amount, and who uses most beyond its size."""
    burden = profile.burden
    assert burden is not None  # noqa: S101 - for the type checker: the amount is one of its columns
    name, what = mean.name, amount_name(mean.name, words)
    shares = burden.shares[burden.columns.index(name)]
    with np.errstate(divide="ignore", invalid="ignore"):
        low, high = (shares * end / mean.estimate for end in (mean.low, mean.high))
    used = _Figures(name, "share", shares, low, high, mean.n)

    def finding(key: str, place: int) -> Finding:
        text = words(
            _key(words, f"finding.{key}", name),
            group=group_name(profile, words, place),
            what=what,
            share=words.percent(shares[place]),
            records=words.percent(burden.share[place]),
            unit=words(f"finding.unit.{unit_of(profile)}"),
        )
        return _finding(profile, text, name, place)

    most = used.apart
    if most is None:  # intervals overlap: several groups may use most
        order = sorted(used.places, key=lambda j: -used.estimate[j])
        near = [j for j in order if used.high[j] >= used.low[order[0]]][:_MAX_GROUPS]
        groups = [f"{group_name(profile, words, j)}: {words.percent(shares[j])}" for j in near]
        text = words(_key(words, "finding.close", name), what=what, groups="; ".join(groups))
        found = [Finding(text, name, tuple(profile.numbers[j] for j in near))]
    else:
        found = [finding("most", most)]
    over = [j for j in used.places if mean.above[j] and shares[j] > burden.share[j]]
    beyond = max(over, key=lambda j: shares[j] - burden.share[j], default=None)
    if beyond is not None and beyond != most:
        found.append(finding("more", beyond))
    return found


def _finding(profile: Profile, text: str, about: str, *places: int) -> Finding:
    numbers = tuple(profile.numbers[place] for place in places)
    return Finding(text[:1].upper() + text[1:], about, numbers)


def _find_highest(profile: Profile, words: Words, figures: _Figures) -> Finding:
    """Say which group has most of an outcome, or which have more than over all."""
    name, kind, figure = figures.name, figures.kind, figures.estimate
    of_all = write_figure(words, kind, figure[-1])

    def finding(key: str, *places: int, **values: str) -> Finding:
        own, other = f"finding.{name}.{key}", f"finding.other.{key}"
        sentence = own if words.get(own, "") else other
        text = words(sentence, what=column_name(name, words), all=of_all, **values)
        return _finding(profile, text, name, *places)

    first = figures.apart
    if first is not None and figures.above[first]:
        x = write_interval(words, kind, figure[first], figures.low[first], figures.high[first])
        return finding("most", first, group=group_name(profile, words, first), x=x)
    above = [j for j in figures.places if figures.above[j]]
    above = sorted(above, key=lambda j: -figure[j])[:_MAX_GROUPS]
    if not above:
        return finding("even")
    named = [
        f"{group_name(profile, words, j)}: {write_figure(words, kind, figure[j])}" for j in above
    ]
    return finding("more", *above, groups="; ".join(named))


def _find_largest(profile: Profile, words: Words) -> list[Finding]:
    shares = [cluster.share or 0.0 for cluster in profile.clusters]
    place, share = shares.index(max(shares)), words.percent(max(shares))
    text = words("finding.largest", group=group_name(profile, words, place), share=share)
    return [_finding(profile, text, "records", place)]


def _find_doubtful(profile: Profile, words: Words) -> list[Finding]:
    least = select_k.CONFIG.reliable
    every = [(one.number, one.stability) for one in profile.clusters]
    weak = [number for number, stability in every if stability is not None and stability < least]
    key = "finding.doubt" if len(weak) > 1 else "finding.doubt.one"
    text = words(key, groups=", ".join(map(str, weak))) if weak else ""
    return [Finding(text, "stability", tuple(weak))] if weak else []


def write_figure(words: Words, kind: str, value: float) -> str:
    """Return a figure as text: shares in percent, large numbers without decimals."""
    if kind == "share":
        return words.percent(value, 1)
    return words.number(value, 0 if abs(value) >= 1000 else 1)


def write_interval(words: Words, kind: str, value: float, low: float, high: float) -> str:
    """Return a figure with its interval, where that is found."""
    text = write_figure(words, kind, value)
    if np.isnan(value) or np.isnan(low):
        return text
    scale = 100 if kind == "share" else 1
    digits = 0 if abs(value) >= 1000 else 1
    ends = (words.number(scale * one, digits) for one in (low, high))
    return f"{text} ({'–'.join(ends)})"


def _key(words: Words, key: str, name: str) -> str:
    """Return the key of a sentence, of a column's own where it has one."""
    own = f"{key}.{name}"
    return own if words.get(own, "") else key
