"""Exact moments: each decomposition gives a known model back; biased ones do not."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np

from comorb.model.arrays import Floats
from comorb.model.decompose import svtd
from comorb.model.mixture import Mixture
from comorb.records.datasets.simulate import paper
from comorb_reproduction.hmm12 import hmm12
from comorb_reproduction.jain_oh import jain_oh
from comorb_reproduction.multiview import ExactViews, matched
from comorb_reproduction.results import Result, Tick, fill
from comorb_reproduction.sections import Section, judged, table
from comorb_reproduction.tpm import tpm

TITLE = "Exact moments: the decompositions on their own"
CLOSE = 1e-6


def limit_third(model: Mixture) -> Floats:
    """Return M̃3 of an endless sample: an index that comes twice counts once, since x² = x."""
    third = np.einsum("j,ja,jb,jc->abc", model.weights, *[model.means] * 3, optimize=True)
    pairs = np.einsum("j,ja,jb->ab", model.weights, model.means, model.means)
    np.fill_diagonal(pairs, model.weights @ model.means)
    for i in range(model.n_columns):
        third[i, i, :] = third[i, :, i] = third[:, i, i] = pairs[i]
    return np.asarray(third)


def _exact_svtd(model: Mixture, k: int) -> Mixture:
    m, w = model.means, model.weights
    third = np.einsum("j,ja,jb,jc->abc", w, m, m, m, optimize=True)
    return svtd(w @ m, (w * m.T) @ m, third, k)


def _biased_svtd(model: Mixture, k: int) -> Mixture:
    third = limit_third(model)
    second = np.einsum("iij->ij", third)
    return svtd(second.diagonal().copy(), second.copy(), third, k)


METHODS: dict[str, Callable[[Mixture, int], Mixture]] = {
    "SVTD": _exact_svtd,
    "HMM12": lambda model, k: hmm12(ExactViews(model), k, truth=model.means),
    "TPM": lambda model, k: tpm(ExactViews(model), k, truth=model.means),
    "Jain-Oh, from biased moments": lambda model, k: jain_oh(limit_third(model), k),
    "ASVTD, from biased moments": _biased_svtd,
}


def largest_error(estimated: Mixture, true: Mixture) -> float:
    """Return the largest error of M and ω once the clusters are matched with the true ones."""
    order = matched(((true.means[:, None] - estimated.means[None]) ** 2).sum(axis=2))
    means = np.abs(estimated.means[order] - true.means).max()
    return float(max(means, np.abs(estimated.weights[order] - true.weights).max()))


def _make(key: Result) -> Result:
    d, k = int(key["d"]), int(key["k"])
    drawn = paper(1, d, k, int(key["seed"]))
    model = Mixture(drawn.weights, drawn.means)
    return {"error": largest_error(METHODS[str(key["method"])](model, k), model)}


def run(out: Path, quick: bool, tick: Tick) -> Section:
    """Decompose exact moments of models after the paper's appendix E."""
    sizes = ((30, 4),) if quick else ((30, 4), (99, 12))
    seeds = range(2 if quick else 5)
    wanted: list[Result] = [
        {"d": d, "k": k, "seed": seed, "method": method}
        for d, k in sizes
        for seed in seeds
        for method in METHODS
    ]
    rows = fill(out / "exact.csv", wanted, _make, tick)
    errors = {
        (method, d): max(float(r["error"]) for r in rows if r["method"] == method and r["d"] == d)
        for method in METHODS
        for d, _ in sizes
    }
    cells = [[method, *(f"{errors[method, d]:.1e}" for d, _ in sizes)] for method in METHODS]
    body = (
        f"The largest error of any entry of M and ω over seeds 0 to {seeds[-1]}, from moments "
        "without sampling noise.\n\n"
        + table(["method", *(f"d = {d}, k = {k}" for d, k in sizes)], cells)
        + "\n\nEach run: `exact.csv`."
    )
    exact = [errors[method, d] for method in list(METHODS)[:4] for d, _ in sizes]
    claims = (
        judged(
            "Fed with the correct moments, SVTD produces the correct model",
            sum(errors["SVTD", d] < CLOSE for d, _ in sizes),
            len(sizes),
            f"largest error {max(errors['SVTD', d] for d, _ in sizes):.1e}; "
            f"the unbiased alternatives {max(exact):.1e}",
        ),
        judged(
            "Biased moments give a biased model, which EM has to mend",
            sum(errors["ASVTD, from biased moments", d] > CLOSE for d, _ in sizes),
            len(sizes),
            "largest error of ASVTD without noise "
            f"{max(errors['ASVTD, from biased moments', d] for d, _ in sizes):.2f}",
        ),
    )
    return Section(TITLE, body, claims)
