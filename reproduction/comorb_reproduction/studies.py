"""The heart-failure and the tertiary study: clusters, charts, stability, beside the paper's."""

from __future__ import annotations

import warnings
from functools import partial
from pathlib import Path
from statistics import fmean
from time import perf_counter
from typing import cast

import numpy as np
from matplotlib.figure import Figure
from scipy import sparse
from sklearn.metrics import adjusted_rand_score

from comorb.errors import ComorbWarning
from comorb.model.arrays import Ints
from comorb.model.em import em
from comorb.model.estimators import BernoulliMixture
from comorb.model.sweep import hard_labels
from comorb.profiles.build import profile
from comorb.profiles.profile import Profile
from comorb.views import charts
from comorb_reproduction.figures import save
from comorb_reproduction.methods import ASVTD, COMORB, PAPER_STOP, blocks_of, weak_answers
from comorb_reproduction.multiview import SampleViews
from comorb_reproduction.published import LOOKED_AT, Likeness, likenesses, summed_up, verdicts
from comorb_reproduction.results import Result, Tick, fill
from comorb_reproduction.sections import Claim, Section, judged, table
from comorb_reproduction.survey import TERTIARY, WHERE, PaperStudy, paper_studies
from comorb_reproduction.tpm import tpm

TITLE = "Patients: the heart-failure and the tertiary study"
RUN_ON = "ASVTD+EM, run on"
RUN = {
    "method": "{}",
    "seconds": "{:.2f} s",
    "passes": "{}",
    "log_likelihood": "{:.3f}",
    "stability": "{:.2f}",
    "stability_least": "{:.2f}",
}


def fitted(matrix: sparse.csr_array, k: int, method: str) -> BernoulliMixture:
    """Fit as the paper did (EM from ASVTD until ‖Δω‖ < 0.01), run on, or by comorb's defaults."""
    model = BernoulliMixture(k)
    if method != COMORB:
        model.set_params(init="asvtd", smoothing=0)
    if method == ASVTD:
        model.set_params(stop="weights", tol=0.01)
    with weak_answers():
        return model.fit(matrix)


def overlap_agreement(matrix: sparse.csr_array, k: int, method: str, seeds: range) -> list[float]:
    """Return, for each seed, the ARI of two fits where their subsets overlap.

    Each subset is three quarters of the records, so that half of them are in both.
    """
    n = matrix.shape[0]
    agreed = []
    for seed in seeds:
        order = np.random.default_rng(seed).permutation(n)
        both = matrix[order[n // 4 : 3 * n // 4]]
        first, second = (
            fitted(matrix[part], k, method).predict(both)
            for part in (order[: 3 * n // 4], order[n // 4 :])
        )
        agreed.append(float(adjusted_rand_score(first, second)))
    return agreed


def split_dependence(matrix: sparse.csr_array, k: int, splits: int) -> float:
    """Return the mean ARI between TPM + EM on different random splits into views."""
    labels: list[Ints] = []
    for seed in range(splits):
        mixed = matrix[:, np.random.default_rng(seed).permutation(matrix.shape[1])].tocsr()
        mixed.sort_indices()
        blocks = blocks_of(mixed)
        model = em(blocks, tpm(SampleViews(mixed), k), None, PAPER_STOP).model
        labels.append(hard_labels(model, blocks))
    pairs = [(a, b) for a in range(splits) for b in range(a)]
    return fmean(adjusted_rand_score(labels[a], labels[b]) for a, b in pairs)


def _measure(study: PaperStudy, key: Result) -> Result:
    matrix, method = study.cohort.matrix, str(key["method"])
    fitted(matrix[:2000], study.k, method)
    began = perf_counter()
    model = fitted(matrix, study.k, method)
    seconds = perf_counter() - began
    shuffled = matrix[np.random.default_rng(0).permutation(matrix.shape[0])]
    again = fitted(shuffled, study.k, method)
    seeds = int(key["seeds"])
    agreed = overlap_agreement(matrix, study.k, method, range(seeds))
    splits = min(seeds + 1, 5)
    return {
        "d": matrix.shape[1],
        "seconds": round(seconds, 4),
        "passes": model.n_iter_,
        "same_bits": int(np.array_equal(model.means_, again.means_)),
        "log_likelihood": model.log_likelihood_ / matrix.shape[0],
        "stability": fmean(agreed),
        "stability_least": min(agreed),
        "split_ari": split_dependence(matrix, study.k, splits) if method == ASVTD else "",
    }


def run(data: Path, out: Path, quick: bool, tick: Tick) -> Section:
    """Cluster both cohorts, draw the paper's charts and look for the paper's clusters."""
    if not data.exists():
        warnings.warn(
            f"{data} is not there, so the studies take built-in cohorts. {WHERE}",
            ComorbWarning,
            stacklevel=2,
        )
    studies = paper_studies(data)
    bodies, claims = [], []
    for at, study in enumerate(studies):
        wanted: list[Result] = [
            {
                "study": study.name,
                "source": study.source,
                "n": len(study.cohort),
                "k": study.k,
                "method": method,
                "seeds": 1 if quick else 10,
            }
            for method in (ASVTD, RUN_ON, COMORB)
        ]
        counted = partial(_tell, tick, at, len(studies))
        rows = fill(out / "studies.csv", wanted, partial(_measure, study), counted)
        models = {m: fitted(study.cohort.matrix, study.k, m) for m in (ASVTD, COMORB)}
        profiles = {
            method: profile(model.mixture_, study.cohort, title=study.name)
            for method, model in models.items()
        }
        alike = {method: _alike(study, own) for method, own in profiles.items()}
        bodies.append(_body(out, study, rows, profiles[COMORB], alike))
        claims += _claims(study, rows, alike)
    missing = "" if data.exists() else f"`{data.name}` was not there. {WHERE}\n\n"
    listed = "; ".join(f"{name}: {', '.join(codes)}" for name, codes in TERTIARY.items())
    listed = f"\n\nTertiary by first-listed ICD-9-CM category: {listed}." if not missing else ""
    return Section(TITLE, missing + "\n\n".join(bodies) + listed, tuple(claims))


def _tell(tick: Tick, at: int, parts: int, done: int, total: int) -> None:
    tick(at * total + done, parts * total)


def _alike(study: PaperStudy, own: Profile) -> list[Likeness]:
    top = [[own.codes[i] for i in own.top(j, n=LOOKED_AT)] for j in range(own.k)]
    return likenesses(study.name, top)


def _body(
    out: Path, study: PaperStudy, rows: list[Result], own: Profile, alike: dict[str, list[Likeness]]
) -> str:
    stem = study.name.replace(" ", "_")
    drawn = {
        "frequency": (charts.draw_frequency(own), "the 20 most frequent diagnoses by cluster"),
        "heatmap": (charts.draw_heatmap(own), "records by cluster, the 40 most common diagnoses"),
    }
    images = [
        save(cast("Figure", axes.figure), out, f"{stem}_{name}", f"{study.name}: {caption}")
        for name, (axes, caption) in drawn.items()
    ]
    runs = [[form.format(row[name]) for name, form in RUN.items()] for row in rows]
    clusters = [
        [j + 1, c.name, f"{c.size:,}", "; ".join(own.labels[i] for i in own.top(j, n=6))]
        for j, c in enumerate(own.clusters)
    ]
    beside = [
        [
            ours.published.name,
            f"{ours.published.size:,}",
            paper,
            verdict,
            ours.cluster + 1,
            ", ".join(ours.shared) or "none",
        ]
        for ours, paper, verdict in zip(
            alike[COMORB], verdicts(alike[ASVTD]), verdicts(alike[COMORB]), strict=True
        )
    ]
    n, d = study.cohort.matrix.shape
    return "\n\n".join(
        [
            f"### {study.name.capitalize()}, k = {study.k}",
            f"{study.source}; 3-digit ICD-9 categories, at least 3 a record: {n:,} records × {d} "
            "categories. ASVTD+EM stops as the paper did, or runs on until the likelihood stands "
            "still; comorb smooths, which costs likelihood and buys stability. The clusters shown "
            f"are comorb's. Stability: ARI over {rows[0]['seeds']} pairs of overlapping parts.",
            table(["fit", "time", "EM passes", "log-likelihood", "stability", "least"], runs),
            *images,
            table(["cluster", "name", "records", "most relevant diagnoses (λ = 0.6)"], clusters),
            "The paper's clusters beside ours. One appears when most of the codes of the paper's "
            f"table, with at least one that it can't be named without, are among the {LOOKED_AT} "
            "most relevant of one of ours.",
            table(
                ["paper's cluster", "size", ASVTD, COMORB, "comorb's cluster", "shared codes"],
                beside,
            ),
        ]
    )


def _claims(study: PaperStudy, rows: list[Result], alike: dict[str, list[Likeness]]) -> list[Claim]:
    paper, run_on, ours = rows
    gain = float(run_on["log_likelihood"]) - float(paper["log_likelihood"])
    there = len({one.cluster for one in alike[ASVTD] if one.verdict == "appears"})
    return [
        judged(
            f"{study.name}: the clusters of the paper's table",
            there,
            len(alike[ASVTD]),
            f"ASVTD+EM: {summed_up(alike[ASVTD])}. comorb: {summed_up(alike[COMORB])}",
        ),
        judged(
            f"{study.name}: stability above 0.9 on overlapping subsets",
            int(float(paper["stability"]) > 0.9) + int(float(paper["stability_least"]) > 0.9),
            2,
            f"ASVTD+EM {paper['stability']:.2f} (least {paper['stability_least']:.2f}), "
            f"comorb {ours['stability']:.2f} (least {ours['stability_least']:.2f})",
        ),
        judged(
            f"{study.name}: a fit takes a few seconds",
            int(float(paper["seconds"]) < 5),
            1,
            f"ASVTD+EM {paper['seconds']:.2f} s, comorb {ours['seconds']:.2f} s",
        ),
        judged(
            f"{study.name}: the same data give the same clusters",
            int(paper["same_bits"]),
            1,
            "with the rows in another order, ASVTD+EM and comorb give the same bits"
            if paper["same_bits"] and ours["same_bits"]
            else "not to the last bit with the rows in another order",
        ),
        judged(
            f"{study.name}: EM converges in few steps to a good optimum",
            int(int(paper["passes"]) <= 30) + int(gain < 0.01),
            2,
            f"{paper['passes']} steps by the paper's rule; run on until the likelihood stands "
            f"still, EM gains {gain:.3f} nats a record in {run_on['passes']} passes",
        ),
        judged(
            f"{study.name}: a multi-view method depends on how the columns are split",
            int(float(paper["split_ari"]) < 0.9),
            1,
            f"mean ARI between random splits, TPM + EM: {paper['split_ari']:.2f}; "
            "ASVTD and comorb have no split",
        ),
    ]
