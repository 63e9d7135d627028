"""Run: the whole job, from records to a folder of results, for the command line and the explorer.

A run's folder holds the model, the cluster of each record, the profile and the report.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from comorb.errors import ComorbWarning, InputError
from comorb.insight.profile.assignment import assign
from comorb.insight.profile.profile import Profile
from comorb.insight.profile.profiling import profile
from comorb.insight.runs.assign import MODEL, Assigned, Tell, silent
from comorb.insight.runs.folder import ASSIGNMENTS, names_of, save_profile
from comorb.insight.runs.lineage import arrange, kept_names
from comorb.insight.runs.stability import Stability, stability
from comorb.model.choose import Choice
from comorb.model.estimator import BernoulliMixture, choose_k
from comorb.records.cohort import Cohort
from comorb.records.preparation import Preparation
from comorb.storage import SavedModel, save_model, write_folder


@dataclass(frozen=True, eq=False)
class Run:
    """A model with what it says about the records it was fitted on."""

    model: SavedModel
    assigned: Assigned
    profile: Profile
    stability: Stability | None = None

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
    k: int | Literal["auto"] = "auto",
    preparation: Preparation | None = None,
    *,
    title: str = "",
    command: str = "",
    outcomes: Sequence[str] | None = None,
    repeats: int = 3,
    earlier: Sequence[Profile] = (),
    memory: str | None = None,
    tell: Tell = silent,
) -> Run:
    """Read records, find their clusters and describe them.

    Parameters
    ----------
    records : Cohort, or anything that `read_records` reads
        The records.
    k : int or "auto", default="auto"
        The number of clusters.
    preparation : Preparation, optional
        How to read them and which to keep; by default those with at least 3 codes.
    title, command : str, optional
        What the data are and what was run, for the report.
    outcomes : sequence of str, optional
        The covariates to sum up per cluster; by default all that can be.
    repeats : int, default=3
        On how many pairs of overlapping parts stability is measured; 0 leaves it out.
    earlier : sequence of Profile, optional
        Earlier runs, the last one first; clusters that go on keep their numbers and the names
        they were given.
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
    >>> run(heart_failure(), 5, repeats=0).profile.k
    5
    """
    preparation = preparation or Preparation()
    cohort, left_out = _prepared(records, preparation, memory, tell)
    tell(f"Finding the clusters of {len(cohort):,} records")
    fitted = BernoulliMixture(k).fit(cohort.matrix, sample_weight=cohort.weights)
    reason = fitted.choice_.reason if k == "auto" else f"{k}, as asked"
    stable = measured_stability(cohort, fitted, repeats, tell)
    tell("Describing the clusters")
    mixture = fitted.mixture_
    numbers = None
    if earlier:
        mixture, numbers = arrange(mixture, cohort.codes, earlier)
    about = profile(
        mixture,
        cohort,
        title=title,
        reason=reason,
        command=command,
        stability=stable.jaccard if stable else None,
        outcomes=outcomes,
        numbers=numbers,
    )
    if earlier:
        about = about.renamed(kept_names(about, earlier))
    assigned = Assigned(
        cohort.ids, assign(mixture, cohort), names_of(about), about.numbers, cohort.ledger
    )
    model = SavedModel(
        mixture,
        cohort.codes,
        cohort.names,
        names_of(about),
        about.numbers,
        cohort.system,
        cohort.level,
        left_out,
        preparation.to_dict(),
        about.source.digest,
        {
            "title": title,
            "records": len(cohort),
            "reason": reason,
            "passes": fitted.n_iter_,
            "converged": fitted.converged_,
            "log_likelihood": fitted.log_likelihood_,
            "smoothing": fitted.smoothing_,
        },
    )
    return Run(model, assigned, about, stable)


def sweep(
    records: Any,
    ks: Sequence[int] | None = None,
    preparation: Preparation | None = None,
    *,
    memory: str | None = None,
    tell: Tell = silent,
) -> Choice:
    """Read records and find out how many clusters they hold; see `comorb.choose_k`."""
    cohort, _ = _prepared(records, preparation or Preparation(), memory, tell)
    tell(f"Trying numbers of clusters on {len(cohort):,} records")
    return choose_k(cohort.matrix, ks, sample_weight=cohort.weights)


def _prepared(
    records: Any, preparation: Preparation, memory: str | None, tell: Tell
) -> tuple[Cohort, tuple[str, ...]]:
    """Return the cohort, and the codes that were left out of it on purpose."""
    tell("Reading the records")
    whole = records if isinstance(records, Cohort) else preparation.read(records, memory)
    chosen = preparation.select(whole)
    cohort = preparation.drop(chosen)
    return cohort, tuple(sorted(set(chosen.codes) - set(cohort.codes)))


def measured_stability(
    cohort: Cohort, fitted: BernoulliMixture, repeats: int, tell: Tell
) -> Stability | None:
    """Find out how well the clusters come out again; None when it can't be, or isn't wanted."""
    if not repeats:
        return None
    tell(f"Finding the clusters again, in {2 * repeats} parts of the records")
    try:
        return stability(cohort.matrix, fitted, repeats=repeats, sample_weight=cohort.weights)
    except InputError as error:
        warnings.warn(f"stability was not measured: {error}", ComorbWarning, stacklevel=3)
        return None
