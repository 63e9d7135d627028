"""The report in print: a PDF of a few pages, drawn by Matplotlib without a browser."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import isnan
from pathlib import Path
from textwrap import wrap
from typing import TYPE_CHECKING, BinaryIO

from comorb.insight.profile.contents import Cluster, Outcome
from comorb.insight.profile.profile import Profile
from comorb.insight.profile.relevance import LAMBDA
from comorb.insight.views import charts
from comorb.insight.views.drawing import named
from comorb.insight.views.palette import colours, palette
from comorb.insight.views.pdf_usage import rule_pages, slice_pages
from comorb.insight.views.texts import page_texts
from comorb.records.ledger import Line
from comorb.records.values import yes_no

if TYPE_CHECKING:
    from matplotlib.figure import Figure

WIDE, TALL = 11.69, 8.27
_PER_PAGE, _FIGURES = 8, 6
_LEFT = 0.06
_NO_CODE = "without a usable code"
_FULL = (
    "Full: these are the exact counts, for those who may see the records. Share a protected one."
)
_PROTECTED = (
    "Protected: counts have a small noise, so sums differ a little, and those from 1 to {} are not "
    "told."
)
_SURE = (
    "Confidence: the mean probability that a record belongs where it was put, tempered where codes "
    "come in bundles."
)
_STABLE = (
    "Stability: how much of the cluster comes back when others of the same records are clustered; "
    "1 is all."
)


def report_pdf(profile: Profile, path: str | Path | BinaryIO) -> None:
    """Write a profile as a PDF: a summary, the charts and the table of relevance.

    Protect the profile first where counts of few must not be seen. The same gives the same bytes.
    """
    from matplotlib.backends.backend_pdf import PdfPages

    metadata = {"Title": profile.source.title, "Creator": f"comorb {profile.source.version}"}
    with PdfPages(path, metadata={**metadata, "CreationDate": None}) as pages:
        for printed in (_summary, _charts, _tables, _features, _outcomes, _usage, _closing):
            for figure in printed(profile):
                pages.savefig(figure)


def _page(title: str = "") -> Figure:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(WIDE, TALL), facecolor="white")
    if title:
        figure.text(_LEFT, 0.94, title, fontsize=13, fontweight="bold")
    return figure


def _charts(profile: Profile) -> list[Figure]:
    """Return a page for each chart but the first, which is in the summary.

    Where nothing can be added up, there is none of burden.
    """
    used = profile.burden is not None and bool(profile.burden.columns)
    return [_chart(profile, name) for name in charts.CHARTS[1:] if name != "burden" or used]


def _chart(profile: Profile, name: str) -> Figure:
    figure = _page()
    figure.set_layout_engine("constrained", rect=(0.02, 0.02, 0.96, 0.96))
    charts.draw(name, profile, figure.add_subplot())
    return figure


def _summary(profile: Profile) -> list[Figure]:
    """Return what was clustered, with the first chart below it or, without room, on a page."""
    source, figure = profile.source, _page()
    title = wrap(source.title, 54, max_lines=2, placeholder="…")
    height = 0.92 - 0.045 * (len(title) - 1)
    figure.text(_LEFT, height, "\n".join(title), fontsize=20, fontweight="bold")
    facts = [f"{source.records:,} records", f"{source.features:,} codes", f"{profile.k} clusters"]
    if profile.features:
        facts.insert(2, f"{len(profile.features)} features")
    if source.weight is not None:
        facts.append(f"standing for {source.weight:,.0f} patients")
    figure.text(_LEFT, height - 0.045, "   ·   ".join(facts), fontsize=12)
    blocks = {
        "Number of clusters": [source.reason],
        "Data": _ledger(source.lines),
        "Notes": source.notes,
        "What sets the clusters apart": influences(profile),
        "Counts": [_PROTECTED.format(profile.min_cell - 1) if profile.min_cell else _FULL],
    }
    height = _write(figure, blocks, height - 0.1)
    room = min(0.1 + 0.045 * profile.k, height - 0.09)
    if room < 0.1 + 0.034 * profile.k:
        return [figure, _chart(profile, charts.CHARTS[0])]
    charts.draw(charts.CHARTS[0], profile, figure.add_axes((0.36, 0.06, 0.58, room)))
    return [figure]


def _usage(profile: Profile) -> list[Figure]:
    return [*slice_pages(profile, _page), *rule_pages(profile, _page)]


def _closing(profile: Profile) -> list[Figure]:
    source, figure = profile.source, _page()
    made = [source.command, f"comorb {source.version}"]
    made += [f"SHA-256 of the data: {source.digest}"] if source.digest else []
    blocks = {"What the clusters leave unexplained": _unexplained(profile)}
    _write(figure, blocks | {"How to do it again": made}, 0.92)
    return [figure]


def _unexplained(profile: Profile) -> list[str]:
    """Return how far the length of records is explained, and the codes that come together."""
    caveats, labels = profile.caveats, profile.labels
    told = [
        f"Often together beyond what the clusters explain: {labels[pair.first]} and "
        f"{labels[pair.second]}, in {pair.observed:,} records; {pair.expected:,.0f} are expected."
        for pair in caveats.pairs
    ]
    if caveats.explained_by_length is not None:
        share = f"{caveats.explained_by_length:.0%}"
        told.insert(0, f"The cluster of a record explains {share} of how many codes it has.")
    return told


def _write(figure: Figure, blocks: Mapping[str, Sequence[str]], height: float) -> float:
    """Write blocks of text one below the other, from a height on; return where they end."""
    for title, lines in blocks.items():
        texts = [part for line in lines for part in wrap(line, 135)]
        if not texts:
            continue
        figure.text(_LEFT, height, title, fontsize=11, fontweight="bold")
        for text in texts[:12]:
            height -= 0.026
            figure.text(_LEFT, height, text, fontsize=9, color=palette()["ink"])
        height -= 0.05
    return height


def _ledger(lines: Sequence[Line]) -> list[str]:
    """Return each line in words.

    A rule about records names those that are kept, unless they had no usable code; any other
    rule names what is left out.
    """
    sentences, begun = [], set()
    for line in lines:
        left, out = _units(line.after, line.unit), _units(line.removed, line.unit)
        if line.unit not in begun and not line.removed:
            sentences.append(f"{left} {line.rule}")
        elif line.unit == "records" and line.rule != _NO_CODE:
            sentences.append(f"{line.rule}: {left} kept, {line.removed:,} left out")
        else:
            sentences.append(f"{line.rule}: {out} left out, {line.after:,} remain")
        begun.add(line.unit)
    return sentences


def _units(count: int, unit: str) -> str:
    return f"{count:,} {unit.removesuffix('s') if count == 1 else unit}"


def _tables(profile: Profile) -> list[Figure]:
    """Return the table of relevance, eight clusters to a page in two rows of four."""
    stable = any(cluster.stability is not None for cluster in profile.clusters)
    figures = []
    for first in range(0, profile.k, _PER_PAGE):
        figure = _page(f"Most relevant diagnoses of each cluster (λ = {LAMBDA:g})")
        for place, cluster in enumerate(range(first, min(first + _PER_PAGE, profile.k))):
            left, top = _LEFT + 0.23 * (place % 4), 0.88 - 0.44 * (place // 4)
            _column(profile, cluster, figure, left, top)
        terms = f"{_SURE} {_STABLE}" if stable else _SURE
        figure.text(_LEFT, 0.03, terms, fontsize=8, color=palette()["muted"])
        figures.append(figure)
    return figures


def _column(profile: Profile, cluster: int, figure: Figure, left: float, top: float) -> None:
    from matplotlib.lines import Line2D

    shown = profile.clusters[cluster]
    colour = colours([shown.number])[0]
    ends = [left, left + 0.2]
    figure.add_artist(Line2D(ends, [top + 0.02] * 2, color=colour, lw=4, solid_capstyle="butt"))
    names = named(shown, 34, 3)
    for row, text in enumerate(names):
        figure.text(left, top - 0.008 - 0.021 * row, text, fontsize=8.5, fontweight="bold")
    height = top - 0.013 - 0.021 * max(len(names), 2)
    measures = _measures(shown)
    for row, text in enumerate(measures):
        figure.text(left, height - 0.021 * row, text, fontsize=8, color=palette()["muted"])
    height -= 0.008 + 0.021 * max(len(measures), 2)
    diagnoses = [
        (text, "" if row else f"{profile.prevalence[cluster, code]:.0%}")
        for code in profile.top(cluster)
        for row, text in enumerate(
            wrap(profile.labels[code], 34, max_lines=2, placeholder="…", subsequent_indent="   ")
        )
    ]
    step = min(0.026, (height - top + 0.4) / max(len(diagnoses), 1))
    for row, (text, share) in enumerate(diagnoses):
        figure.text(left, height - step * row, text, fontsize=8)
        figure.text(left + 0.2, height - step * row, share, fontsize=8, ha="right")


def _measures(cluster: Cluster) -> list[str]:
    """Return the size of a cluster and how sure it is."""
    if cluster.size is None:
        return ["too few records to show"]
    sure = [] if cluster.top is None else [f"confidence {cluster.top:.0%}"]
    stable = [] if cluster.stability is None else [f"stability {cluster.stability:.2f}"]
    said = [text for text in (cluster.pathway, cluster.owner, cluster.note) if text]
    noted = wrap("; ".join(said), 42, max_lines=2, placeholder=" …")
    return [f"{cluster.size:,} records, {cluster.share:.1%}", ", ".join([*sure, *stable]), *noted]


def _features(profile: Profile) -> list[Figure]:
    """Return the means and shares of the features that the clusters were found by."""
    summaries = [one.summary for one in profile.features]
    return _figures(profile, summaries, "Other features (with 95% intervals)")


def influences(profile: Profile) -> list[str]:
    """Return the share of codes and features in what sets the clusters apart, as one line."""
    parts = [
        f"{name.replace('_', ' ')} {share:.0%}"
        for name, share in profile.influence.items()
        if name != "codes" or profile.n_codes
    ]
    return [", ".join(parts)] if profile.features else []


def _outcomes(profile: Profile) -> list[Figure]:
    """Return the outcomes of each cluster with their intervals."""
    return _figures(profile, profile.outcomes, "Outcomes and patients (with 95% intervals)")


def _figures(profile: Profile, outcomes: Sequence[Outcome], title: str) -> list[Figure]:
    """Return estimates of each cluster with their intervals, six to a page."""
    every = [
        (outcome, v)
        for outcome in outcomes
        for v, estimates in enumerate(outcome.estimate)
        if not all(isnan(estimate) for estimate in estimates)
    ]
    figures = []
    for first in range(0, len(every), _FIGURES):
        figure = _page(title)
        if any(outcome.corrected for outcome in outcomes):
            figure.text(_LEFT, 0.05, page_texts("en")["outcomes.corrected"], fontsize=7.5)
        step = min(0.05, 0.8 / (profile.k + 1))
        rows = 2 if step > 0.035 else 1
        names = [*(named(cluster, 46, rows) for cluster in profile.clusters), ["All"]]
        for row, lines in enumerate(names):
            for place, text in enumerate(lines):
                figure.text(_LEFT, 0.84 - step * row - 0.017 * place, text, fontsize=8)
        for place, (outcome, v) in enumerate(every[first : first + _FIGURES]):
            left = 0.4 + 0.1 * place
            head = wrap(_heading(outcome, v), 15)
            for row, text in enumerate(reversed(head[:2])):
                at = 0.875 + 0.022 * row
                figure.text(left, at, text, fontsize=8, fontweight="bold", ha="right")
            for row in range(profile.k + 1):
                text = _estimate(outcome, v, row)
                figure.text(left, 0.84 - step * row, text, fontsize=7.5, ha="right")
        figures.append(figure)
    return figures


def _heading(outcome: Outcome, v: int) -> str:
    plain = outcome.name.replace("_", " ").capitalize()
    name = page_texts("en").get(f"outcome.{outcome.name}", plain)
    value = outcome.values[v].replace("_", " ")
    only = len(outcome.values) == 1 and bool(yes_no(value))
    return name if only else f"{name}: {value}"


def _estimate(outcome: Outcome, v: int, place: int) -> str:
    shown = outcome.shown
    values = (shown.estimate[v, place], shown.low[v, place], shown.high[v, place])
    if isnan(values[0]):
        return "–"
    scale = 100 if outcome.kind == "share" else 1
    centre, low, high = (f"{scale * value:.1f}" for value in values)
    unit = "%" if outcome.kind == "share" else ""
    mark = "*" if outcome.differs(v, place) else ""
    return f"{centre}{unit}{mark}" if isnan(values[1]) else f"{centre}{unit}{mark} ({low}–{high})"
