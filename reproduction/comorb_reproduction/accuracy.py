"""Figure 'Adjusted Rand Index': every method over N, k and d, without and with EM."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from statistics import fmean, pstdev

from sklearn.metrics import adjusted_rand_score

from comorb.records.datasets.simulate import Simulated, paper
from comorb_reproduction.figures import LABELS, LOOKS, PLACE, clean, new_figure, save
from comorb_reproduction.methods import ASVTD, COMORB, K_MEANS, METHODS, SPECTRAL, Setting
from comorb_reproduction.results import Result, Tick, fill, write_results
from comorb_reproduction.sections import Claim, Section, judged, table

REFERENCES = (K_MEANS, SPECTRAL, "PCA")
MULTI_VIEW = ("HMM12", "TPM")
NEAR = 0.05
TITLE = "Accuracy: the figure 'Adjusted Rand Index'"

Summary = dict[tuple[Setting, str], dict[str, float]]


@dataclass(frozen=True)
class Grid:
    """What is run: the panels, each a name and its settings (N, d, k), and the seeds."""

    panels: dict[str, tuple[Setting, ...]]
    seeds: range


FULL = Grid(
    {
        "n": tuple((n, 99, 12) for n in (100, 300, 1000, 3000, 10_000)),
        "k": tuple((10_000, 99, k) for k in (2, 4, 8, 12, 20, 33)),
        "d": tuple((10_000, d, 4) for d in (12, 24, 48, 99)),
    },
    range(5),
)
QUICK = Grid(
    {
        "n": ((100, 99, 12), (1000, 99, 12)),
        "k": ((1000, 99, 2), (1000, 99, 4), (1000, 99, 12)),
        "d": ((1000, 12, 4), (1000, 99, 4)),
    },
    range(2),
)


def measured(out: Path, quick: bool, tick: Tick) -> list[Result]:
    """Return a row for each setting, seed and method: ARI before and after EM, seconds."""
    grid = QUICK if quick else FULL
    settings = dict.fromkeys(s for panel in grid.panels.values() for s in panel)
    wanted: list[Result] = [
        {"n": n, "d": d, "k": k, "seed": seed, "method": method}
        for n, d, k in settings
        for seed in grid.seeds
        for method in METHODS
    ]
    for method in METHODS:  # compile and load before anything is timed
        _make({"n": 100, "d": 12, "k": 2, "seed": 0, "method": method})
    return fill(out / "ari.csv", wanted, _make, tick)


def _make(key: Result) -> Result:
    n, d, k, seed = (int(key[name]) for name in ("n", "d", "k", "seed"))
    data = _drawn(n, d, k, seed)
    result = METHODS[str(key["method"])](data, k, seed)
    return {
        "ari_start": round(adjusted_rand_score(data.labels, result.start), 6),
        "ari": round(adjusted_rand_score(data.labels, result.labels), 6),
        "decomposing": round(result.decomposing, 6),
        "refining": round(result.refining, 6),
    }


@lru_cache(maxsize=1)
def _drawn(n: int, d: int, k: int, seed: int) -> Simulated:
    return paper(n, d, k, seed)


def summary(rows: list[Result]) -> Summary:
    """Return mean and spread over the seeds, by setting and method."""
    groups: dict[tuple[Setting, str], list[Result]] = {}
    for row in rows:
        setting = (int(row["n"]), int(row["d"]), int(row["k"]))
        groups.setdefault((setting, str(row["method"])), []).append(row)
    result = {}
    for key, group in groups.items():
        columns = {c: [float(r[c]) for r in group] for c in ("ari_start", "ari")}
        result[key] = {c: fmean(v) for c, v in columns.items()}
        result[key] |= {f"{c}_sd": pstdev(v) for c, v in columns.items()}
        result[key]["seeds"] = len(group)
    return result


def run(out: Path, quick: bool, tick: Tick) -> Section:
    """Measure the six panels, draw them and judge what the paper says of them."""
    grid = QUICK if quick else FULL
    scores = summary(measured(out, quick, tick))
    rows: list[Result] = [
        {"panel": name, "n": s[0], "d": s[1], "k": s[2], "method": method, **scores[s, method]}
        for name, panel in grid.panels.items()
        for s in panel
        for method in METHODS
    ]
    write_results(out / "ari_summary.csv", rows)
    image = _figure(out, grid, scores)
    settings = list(dict.fromkeys(s for panel in grid.panels.values() for s in panel))
    columns = ("ari_start", "ari", "ari_sd")
    means = [
        [method, *(f"{fmean(scores[s, method][c] for s in settings):.3f}" for c in columns)]
        for method in METHODS
    ]
    best = sum(scores[s, COMORB]["ari"] >= _best(scores, s, METHODS) - NEAR for s in settings)
    body = (
        f"{len(settings)} settings, seeds 0 to {grid.seeds[-1]}; data as in the paper's appendix "
        "E. 'Blind' multi-view methods order their views without the true parameters. NN-CP is "
        "written out here with the updates of TensorLy's `non_negative_parafac`. A method "
        "without EM has one value twice.\n\n"
        f"{image}\n\n"
        + table(["method", "ARI before EM", "ARI at the end", "spread over seeds"], means)
        + f"\n\ncomorb is the best of all, or within {NEAR} of it, in {best} of {len(settings)} "
        "settings.\n\nEach run: `ari.csv`; means and spreads: `ari_summary.csv`."
    )
    return Section(TITLE, body, tuple(_claims(settings, scores)))


def _best(scores: Summary, setting: Setting, methods: Iterable[str], column: str = "ari") -> float:
    return max(scores[setting, method][column] for method in methods)


def _claims(settings: list[Setting], scores: Summary) -> Iterable[Claim]:
    def mean(method: str, column: str = "ari") -> float:
        return fmean(scores[s, method][column] for s in settings)

    tensor = (ASVTD, *MULTI_VIEW)
    references = {s: _best(scores, s, REFERENCES) for s in settings}
    wins = sum(min(scores[s, m]["ari"] for m in tensor) > references[s] for s in settings)
    some = sum(_best(scores, s, tensor) > references[s] for s in settings)
    yield judged(
        "k-means, spectral clustering and PCA are outperformed by tensor methods",
        wins,
        len(settings),
        f"all three tensor methods with EM beat all three references in {wins} of "
        f"{len(settings)} settings, at least one does in {some}; mean ARI "
        + ", ".join(f"{m} {mean(m):.2f}" for m in (*tensor, *REFERENCES)),
    )
    wins = sum(
        scores[s, ASVTD]["ari"] > _best(scores, s, MULTI_VIEW, "ari_start") for s in settings
    )
    yield judged(
        "ASVTD with EM is better than the multi-view methods without EM",
        wins,
        len(settings),
        f"in {wins} of {len(settings)} settings; mean ARI {mean(ASVTD):.2f} against "
        + ", ".join(f"{m} {mean(m, 'ari_start'):.2f}" for m in MULTI_VIEW),
    )
    gains = [mean(m) - mean(m, "ari_start") for m in MULTI_VIEW]
    yield judged(
        "EM improves the multi-view methods hugely",
        sum(gain > 0.1 for gain in gains),
        len(gains),
        ", ".join(f"{m} {g:+.2f}" for m, g in zip(MULTI_VIEW, gains, strict=True)),
    )
    near = sum(scores[s, ASVTD]["ari"] > _best(scores, s, MULTI_VIEW) - NEAR for s in settings)
    yield judged(
        "With EM, ASVTD gets almost the same results as HMM12 and TPM",
        near,
        len(settings),
        f"within {NEAR} of the better of the two, or above it, in {near} of {len(settings)} "
        f"settings; mean ARI {mean(ASVTD):.2f} against "
        + ", ".join(f"{m} {mean(m):.2f}" for m in MULTI_VIEW)
        + f"; comorb {mean(COMORB):.2f}",
    )


def _figure(out: Path, grid: Grid, scores: Summary) -> str:
    figure = new_figure(13, 7.6)
    panels = figure.subplots(2, 3, sharey=True)
    titles = {"n": "d = 99, k = 12", "k": "d = 99", "d": "k = 4"}
    for across, (name, settings) in enumerate(grid.panels.items()):
        xs = [s[PLACE[name]] for s in settings]
        for down, column in enumerate(("ari_start", "ari")):
            axes = panels[down, across]
            clean(axes)
            for method, (colour, marker) in LOOKS.items():
                shown = "ari" if method == ASVTD else column
                means = [scores[s, method][shown] for s in settings]
                spread = [scores[s, method][f"{shown}_sd"] for s in settings]
                axes.errorbar(
                    xs, means, spread, label=method, color=colour, marker=marker, markersize=5,
                    linewidth=2.4 if method == COMORB else 1.4, elinewidth=0.6,
                    zorder=3 if method == COMORB else 2,
                )  # fmt: skip
            if name == "n":
                axes.set_xscale("log")
            fixed = "" if name == "n" else f"N = {settings[0][0]:,}, "
            axes.set_title(
                f"{'with' if down else 'without'} EM after multi-view: {fixed}{titles[name]}",
                fontsize=10,
            )
            axes.set_xlabel(LABELS[name])
            axes.set_ylim(-0.05, 1.03)
        panels[min(across, 1), 0].set_ylabel("adjusted Rand index")
    handles, names = panels[0, 0].get_legend_handles_labels()
    figure.legend(handles, names, loc="outside lower center", ncols=len(names), frameon=False)
    return save(figure, out, "ari", "Adjusted Rand index against N, k and d, without and with EM")
