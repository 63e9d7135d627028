"""Why a record is where it is: what each of its codes says for and against each cluster."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from comorb.model.arrays import Floats
from comorb.model.mixture import EDGE, Mixture


@dataclass(frozen=True, eq=False)
class Explanation:
    """The posterior of one record, taken apart.

    log P(Y = j | x) is, up to a constant, ``base[j]`` + Σ ``contributions[:, j]``; so the
    difference of two columns is what a code adds to the log-odds of one cluster against
    another, compared with the same record without the code.
    """

    codes: tuple[str, ...]  # those that the model knows
    unknown: tuple[str, ...]  # those that it doesn't, which say nothing
    posterior: Floats  # (k,)
    base: Floats  # (k,): log-probabilities for a record without codes; the highest is 0
    contributions: Floats  # (codes, k): positive where likelier than in the mixture as a whole

    def against(self, cluster: int, other: int) -> Floats:
        """Return what each code adds to the log-odds of one cluster against another."""
        return np.asarray(self.contributions[:, cluster] - self.contributions[:, other])


def explain(model: Mixture, codes: Sequence[str], given: Sequence[str]) -> Explanation:
    """Explain the posterior of a record that has the codes ``given``; repeated ones count once.

    ``codes`` are those of the model's columns. A code i contributes logit μᵢⱼ − logit Σₕ μᵢₕ ωₕ.
    O(k·d).
    """
    place = {code: column for column, code in enumerate(codes)}
    listed = list(dict.fromkeys(given))
    known = [code for code in listed if code in place]
    base, logits = model.tables()
    overall = np.clip(model.weights @ model.means, EDGE, 1 - EDGE)
    columns = [place[code] for code in known]
    mixed = np.log(overall) - np.log1p(-overall)
    contributions = logits[columns] - mixed[columns, None]
    total = base + contributions.sum(axis=0)
    posterior = np.exp(total - total.max())
    unknown = tuple(code for code in listed if code not in place)
    return Explanation(
        tuple(known), unknown, posterior / posterior.sum(), base - base.max(), contributions
    )
