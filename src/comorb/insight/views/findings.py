"""Findings: plain sentences on what stands out, each only where the intervals bear it out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from comorb.insight.profile.contents import Outcome
from comorb.insight.profile.profile import Profile
from comorb.insight.views.words import Words
from comorb.records.values import yes_no

DOUBTFUL = 0.75  # stability below which a cluster is doubtful; the page says the same
_RATES = ("died", "readmitted")
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
    burden = profile.burden
    used = () if burden is None else (burden.main or burden.columns[:3])
    wanted = starred or (*used, *_RATES)
    by_name = {outcome.name: outcome for outcome in profile.outcomes}
    told: list[Finding] = []
    for name in wanted:
        outcome = by_name.get(name)
        if outcome is None:
            continue
        if name in used and outcome.kind == "number":
            told += _use(profile, words, outcome)
        elif outcome.kind == "number" or _is_rate(outcome):
            told.append(_highest(profile, words, outcome))
    told = told[: _MOST - 1] or _largest(profile, words)
    return told + _doubtful(profile, words)


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


def _use(profile: Profile, words: Words, outcome: Outcome) -> list[Finding]:
    """Tell who uses most of an amount, and who uses most beyond its size."""
    burden = profile.burden
    assert burden is not None  # noqa: S101 - for the type checker: the amount is one of its columns
    name, shown = outcome.name, outcome.shown
    shares = burden.shares[burden.columns.index(name)]
    mean, low, high = (one[0] for one in (shown.estimate, shown.low, shown.high))
    with np.errstate(divide="ignore", invalid="ignore"):
        least, most = shares * low / mean, shares * high / mean
    places = [j for j in range(profile.k) if not np.isnan([least[j], most[j]]).any()]
    told = []
    what = amount(name, words)

    def tell(key: str, place: int) -> Finding:
        text = words(
            _key(words, key, name),
            group=group(profile, words, place),
            what=what,
            share=words.percent(shares[place]),
            records=words.percent(burden.share[place]),
        )
        return Finding(_capital(text), name, (profile.numbers[place],))

    first = max(places, key=lambda j: shares[j], default=None)
    if first is not None and all(least[first] > most[j] for j in places if j != first):
        told.append(tell("most", first))
    over = [j for j in places if low[j] > mean[-1] and shares[j] > burden.share[j]]
    beyond = max(over, key=lambda j: shares[j] - burden.share[j], default=None)
    if beyond is not None and (not told or beyond != first):
        told.append(tell("more", beyond))
    return told or [Finding(words(_key(words, "even", name), what=what), name)]


def _highest(profile: Profile, words: Words, outcome: Outcome) -> Finding:
    """Tell which group has most of an outcome, or which have more than over all."""
    name, shown = outcome.name, outcome.shown
    figure, low, high = (one[0] for one in (shown.estimate, shown.low, shown.high))
    kind = name if name in _RATES else "other"
    what = column_name(name, words)
    places = [j for j in range(profile.k) if not np.isnan([figure[j], low[j], high[j]]).any()]
    first = max(places, key=lambda j: figure[j], default=None)
    all_of = written(words, outcome, figure[-1])
    if first is not None and all(low[first] > high[j] for j in places if j != first):
        text = words(
            f"finding.{kind}.most",
            what=what,
            group=group(profile, words, first),
            x=interval(words, outcome, figure[first], low[first], high[first]),
            all=all_of,
        )
        return Finding(_capital(text), name, (profile.numbers[first],))
    above = sorted((j for j in places if low[j] > figure[-1]), key=lambda j: -figure[j])[:_NAMED]
    if above:
        named = [f"{group(profile, words, j)}: {written(words, outcome, figure[j])}" for j in above]
        text = words(f"finding.{kind}.more", what=what, groups="; ".join(named), all=all_of)
        return Finding(_capital(text), name, tuple(profile.numbers[j] for j in above))
    return Finding(_capital(words(f"finding.{kind}.even", what=what, all=all_of)), name)


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


def written(words: Words, outcome: Outcome, value: float) -> str:
    """Return a figure of an outcome as text: shares in percent, large numbers without decimals."""
    if outcome.kind == "share":
        return words.percent(value, 1)
    return words.number(value, 0 if abs(value) >= 1000 else 1)


def interval(words: Words, outcome: Outcome, value: float, low: float, high: float) -> str:
    """Return a figure with its interval, where that is told."""
    text = written(words, outcome, value)
    if np.isnan(value) or np.isnan(low):
        return text
    scale = 100 if outcome.kind == "share" else 1
    digits = 0 if abs(value) >= 1000 else 1
    ends = (words.number(scale * one, digits) for one in (low, high))
    return f"{text} ({'–'.join(ends)})"


def _is_rate(outcome: Outcome) -> bool:
    return len(outcome.values) == 1 and bool(yes_no(outcome.values[0]))


def _key(words: Words, key: str, name: str) -> str:
    """Return the key of a sentence, of a column's own where it has one."""
    own = f"finding.{key}.{name}"
    return own if words.get(own, "") else f"finding.{key}"


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]
