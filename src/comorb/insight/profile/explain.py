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

    Attributes
    ----------
    codes : tuple of str
        The codes of the record that the model knows.
    unknown : tuple of str
        Those it does not know, which say nothing.
    posterior : ndarray of shape (k,)
        The probability of each cluster.
    base : ndarray of shape (k,)
        The log-probability of each cluster for a record without codes; the highest is 0.
    contributions : ndarray of shape (codes, k)
        Positive where the code is likelier than in the mixture as a whole.
    """

    codes: tuple[str, ...]
    unknown: tuple[str, ...]
    posterior: Floats
    base: Floats
    contributions: Floats

    def against(self, cluster: int, other: int) -> Floats:
        """Return what each code adds to the log-odds of one cluster against another."""
        return np.asarray(self.contributions[:, cluster] - self.contributions[:, other])


def explain(model: Mixture, codes: Sequence[str], given: Sequence[str]) -> Explanation:
    """Explain the posterior of a record.

    logit μᵢⱼ − logit Σₕ μᵢₕ ωₕ for each code i that the record has. O(k·d).

    Parameters
    ----------
    model : Mixture
        The clusters.
    codes : sequence of str
        The model's codes, in the order of its columns.
    given : sequence of str
        The codes of the record, at the model's level; repeated ones count once.

    Returns
    -------
    Explanation
        The posterior and its parts.
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
