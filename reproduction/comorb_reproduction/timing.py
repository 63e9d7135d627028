"""Table 'average clustering time' and the stacked bars of decomposition and EM."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from statistics import fmean

from comorb_reproduction.accuracy import measured
from comorb_reproduction.figures import clean, new_figure, save
from comorb_reproduction.methods import ASVTD, COMORB, K_MEANS, METHODS, SPECTRAL
from comorb_reproduction.results import Result, Tick, write_results
from comorb_reproduction.sections import Claim, Section, judged, table

TITLE = "Time: the table 'average clustering time' and its bars"
PAPER = {ASVTD: 1.3, "TPM": 3.68, "HMM12": 0.77, K_MEANS: 0.76, SPECTRAL: 7.48, "PCA": 0.38}
BARS = (COMORB, ASVTD, "HMM12", "TPM", "Jain-Oh")


def run(out: Path, quick: bool, tick: Tick) -> Section:
    """Average the times of the accuracy runs, as the paper did, and draw the bars."""
    rows = averages(measured(out, quick, tick))
    write_results(out / "time.csv", rows.values())
    header = ["method", "seconds", "decomposition", "EM", "× k-means", "paper", "paper × k-means"]
    body = (
        "The mean over all runs of the accuracy figure. comorb is one fit, not split; PCA, "
        "k-means and SC-lin are scikit-learn's (`n_init=10`; SC-lin with LOBPCG, which finds "
        "the eigenvectors of the default solver, and faster at N = 10,000). The paper ran "
        "Python 2.7 on a laptop: compare the ratios.\n\n"
        f"{_figure(out, rows)}\n\n"
        + table(header, (_cells(method, row) for method, row in rows.items()))
        + "\n\nThe same in `time.csv`."
    )
    return Section(TITLE, body, tuple(_claims(rows)))


def averages(rows: list[Result]) -> dict[str, Result]:
    """Return the mean seconds of each method, in all and by halves, and as ratios to k-means."""
    result: dict[str, Result] = {}
    for method in METHODS:
        own = [row for row in rows if row["method"] == method]
        halves = {c: fmean(float(row[c]) for row in own) for c in ("decomposing", "refining")}
        result[method] = {"method": method, "seconds": sum(halves.values()), **halves}
    base = float(result[K_MEANS]["seconds"])
    for method, row in result.items():
        row["ratio"] = float(row["seconds"]) / base
        row["paper_seconds"] = PAPER.get(method, "")
        row["paper_ratio"] = PAPER[method] / PAPER[K_MEANS] if method in PAPER else ""
    return result


def _cells(method: str, row: Result) -> list[str]:
    forms = {"seconds": "{:.3f}", "decomposing": "{:.3f}", "refining": "{:.3f}"}
    forms |= {"ratio": "{:.2f}", "paper_seconds": "{:.2f}", "paper_ratio": "{:.2f}"}
    return [method, *(form.format(row[c]) if row[c] else "–" for c, form in forms.items())]


def _claims(rows: dict[str, Result]) -> Iterable[Claim]:
    def seconds(method: str, column: str = "seconds") -> float:
        return float(rows[method][column])

    def listed(methods: Iterable[str], column: str = "seconds") -> str:
        return ", ".join(f"{m} {seconds(m, column):.3f} s" for m in methods)

    others = [m for m in PAPER if m != SPECTRAL]
    yield judged(
        "Spectral clustering is much slower than every other method of the paper",
        sum(seconds(SPECTRAL) > 2 * seconds(m) for m in others),
        len(others),
        listed([SPECTRAL, *others]),
    )
    tensor = (ASVTD, "HMM12", "TPM")
    yield judged(
        "TPM is the slowest of the three tensor methods",
        int(seconds("TPM") == max(seconds(m) for m in tensor)),
        1,
        listed(tensor),
    )
    views = ("HMM12", "TPM")
    yield judged(
        "ASVTD decomposes significantly faster than the multi-view methods",
        sum(1.5 * seconds(ASVTD, "decomposing") < seconds(m, "decomposing") for m in views),
        len(views),
        "decomposition alone: " + listed(tensor, "decomposing"),
    )
    yield judged(
        "EM takes longer after ASVTD than after the multi-view methods",
        sum(seconds(ASVTD, "refining") > seconds(m, "refining") for m in views),
        len(views),
        "EM alone: " + listed(tensor, "refining"),
    )


def _figure(out: Path, rows: dict[str, Result]) -> str:
    figure = new_figure(8, 3.2)
    axes = figure.subplots()
    clean(axes)
    axes.grid(False, axis="y")
    split = [float(rows[m]["decomposing"]) for m in BARS]
    em = [float(rows[m]["refining"]) for m in BARS]
    shades = ["#0072B2" if m != COMORB else "#D55E00" for m in BARS]
    axes.barh(BARS, split, color=shades, height=0.6)
    axes.barh(BARS, em, left=split, color="#E69F00", height=0.6)
    for at, (first, second) in enumerate(zip(split, em, strict=True)):
        axes.annotate(
            f"{first + second:.3f} s", (first + second, at), (5, 0),
            textcoords="offset points", va="center", fontsize=9,
        )  # fmt: skip
    for label, colour in (("comorb, whole fit", "#D55E00"), ("decomposition", "#0072B2")):
        axes.barh(0, 0, color=colour, label=label)
    axes.barh(0, 0, color="#E69F00", label="EM")
    axes.invert_yaxis()
    axes.margins(x=0.12)
    axes.set_xlabel("average seconds a run")
    axes.legend(frameon=False)
    return save(figure, out, "time", "Average seconds of decomposition and EM")
