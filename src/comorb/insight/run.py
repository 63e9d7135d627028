"""Run: the whole job, from records to a folder of results, for the command line and the explorer.

A run's folder holds the model, the cluster of each record, the profile and the report.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from comorb.insight.assignment import assign
from comorb.insight.profile import Profile, profile
from comorb.insight.saved import ASSIGNMENTS, names_of, save_profile
from comorb.insight.scoring import MODEL, Assigned, Tell, silent
from comorb.model.estimator import BernoulliMixture
from comorb.model.mixture import Mixture
from comorb.records.cohort import Cohort
from comorb.records.preparation import Preparation
from comorb.storage import SavedModel, fingerprint, save_model, write_folder


@dataclass(frozen=True, eq=False)
class Run:
    """A model with what it says about the records it was fitted on."""

    model: SavedModel
    assigned: Assigned
    profile: Profile

    def save(self, directory: str | Path, force: bool = False) -> None:
        """Write the model, the assignments, the profile and the report to a folder.

        Parameters
        ----------
        directory : path
            Made when it isn't there.
        force : bool, default=False
            Whether an earlier run in it may be replaced.
        """
        with write_folder(directory, force) as folder:
            save_model(self.model, folder / MODEL)
            self.assigned.save(folder / ASSIGNMENTS)
            save_profile(self.profile, folder)


def run(  # noqa: PLR0913 - what is told beside the data is told by name
    records: Any,
    k: int,
    preparation: Preparation | None = None,
    *,
    title: str = "",
    command: str = "",
    outcomes: Sequence[str] | None = None,
    memory: str | None = None,
    tell: Tell = silent,
) -> Run:
    """Read records, find their clusters and describe them.

    Parameters
    ----------
    records : Cohort, or anything that `read_records` reads
        The records.
    k : int
        The number of clusters.
    preparation : Preparation, optional
        How to read them and which to keep; by default those with at least 3 codes.
    title, command : str, optional
        What the data are and what was run, for the report.
    outcomes : sequence of str, optional
        The covariates to sum up per cluster; by default all that can be.
    memory : str, optional
        The most that reading may hold, such as '2GB'.
    tell : callable, optional
        Is told what is being done.

    Returns
    -------
    Run
        The model, the cluster of each record, and the profile.

    Examples
    --------
    >>> from comorb.records.datasets import heart_failure
    >>> run(heart_failure(), 5).profile.k
    5
    """
    preparation = preparation or Preparation()
    tell("Reading the records")
    whole = records if isinstance(records, Cohort) else preparation.read(records, memory)
    chosen = preparation.select(whole)
    cohort = preparation.drop(chosen)
    tell(f"Finding {k} clusters of {len(cohort):,} records")
    fitted = BernoulliMixture(k).fit(cohort.matrix, sample_weight=cohort.weights)
    mixture = Mixture(fitted.weights_, fitted.means_)
    tell("Describing the clusters")
    reason = f"{k}, as asked"
    about = profile(mixture, cohort, title=title, reason=reason, command=command, outcomes=outcomes)
    assigned = Assigned(cohort.ids, assign(mixture, cohort), names_of(about), cohort.ledger)
    model = SavedModel(
        mixture,
        cohort.codes,
        cohort.names,
        names_of(about),
        cohort.system,
        cohort.level,
        tuple(sorted(set(chosen.codes) - set(cohort.codes))),
        preparation.to_dict(),
        fingerprint(cohort.matrix, cohort.codes, cohort.weights),
        {
            "title": title,
            "records": len(cohort),
            "reason": reason,
            "passes": fitted.n_iter_,
            "converged": fitted.converged_,
            "log_likelihood": fitted.log_likelihood_,
        },
    )
    return Run(model, assigned, about)
