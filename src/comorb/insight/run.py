"""Run: the whole job, from records to a folder of results, for the command line and the explorer.

A run's folder holds the model, the cluster of each record, the profile and the report.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.csv as pa_csv

from comorb.errors import StorageError
from comorb.insight.assignment import assign
from comorb.insight.compare import Comparison, compare
from comorb.insight.pdf import report_pdf
from comorb.insight.profile import Profile, profile
from comorb.insight.report import report
from comorb.insight.scoring import MODEL, Assigned, Tell, silent
from comorb.model.estimator import BernoulliMixture
from comorb.model.kernels import Ints
from comorb.model.mixture import Mixture
from comorb.records.cohort import Cohort
from comorb.records.preparation import Preparation
from comorb.storage import (
    SavedModel,
    check_file,
    fingerprint,
    load_model,
    save_model,
    write_folder,
    write_whole,
)

ASSIGNMENTS, PROFILE, REPORT = "assignments.csv", "profile.json", "report.html"


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
            _save_profile(self.profile, folder)


@dataclass(frozen=True, eq=False)
class Compared:
    """Two profiles and what sets them apart."""

    one: Profile
    two: Profile
    comparison: Comparison


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
    assigned = Assigned(cohort.ids, assign(mixture, cohort), _names(about), cohort.ledger)
    model = SavedModel(
        mixture,
        cohort.codes,
        cohort.names,
        _names(about),
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


def load_profile(run: str | Path) -> Profile:
    """Read the profile of a run, from its folder or from the file itself."""
    path = Path(run) / PROFILE if Path(run).is_dir() else Path(run)
    try:
        return Profile.from_json(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        message = f"There is no profile {path}; give the folder of a run, or its {PROFILE}."
    except (OSError, UnicodeDecodeError):
        message = f"{path} can't be read as a profile; give the folder of a run, or its {PROFILE}."
    except StorageError as error:
        message = f"{path}: {error}"
    raise StorageError(message)


def rename(directory: str | Path, names: Mapping[int, str]) -> Profile:
    """Give clusters of a saved run other names, counted from 0, in all its files."""
    directory = Path(directory)
    about = load_profile(directory).renamed(names)
    model = replace(load_model(directory / MODEL), clusters=_names(about))
    with write_folder(directory, force=True) as folder:
        save_model(model, folder / MODEL)
        _save_profile(about, folder)
    return about


def write_report(run: str | Path, path: str | Path, min_cell: int = 0, force: bool = False) -> None:
    """Write the report of a saved run to an HTML or PDF file, without counts under ``min_cell``."""
    path = Path(path)
    check_file(path, (".html", ".pdf"), force)
    about = load_profile(run).suppressed(min_cell)
    if path.suffix.lower() == ".pdf":
        with write_whole(path) as file:
            report_pdf(about, file)
    else:
        write_text(report(about), path)


def compare_runs(one: str | Path, two: str | Path, min_cell: int = 0) -> Compared:
    """Compare two runs, given by their folders or profiles.

    Where both are on the same records, and their assignments lie beside their profiles, the
    records are followed from one to the other.
    """
    a, b = load_profile(one), load_profile(two)
    labels = None
    if a.source.digest == b.source.digest:
        labels = _shared_labels(Path(one) / ASSIGNMENTS, Path(two) / ASSIGNMENTS)
    a, b = a.suppressed(min_cell), b.suppressed(min_cell)
    return Compared(a, b, compare(a, b, labels))


def _shared_labels(one: Path, two: Path) -> tuple[Ints, Ints] | None:
    if not (one.is_file() and two.is_file()):
        return None
    types = pa_csv.ConvertOptions(column_types={"id": pa.string(), "cluster": pa.int64()})
    first, second = (
        pa_csv.read_csv(path, convert_options=types).sort_by("id") for path in (one, two)
    )
    if first["id"] != second["id"]:
        return None
    return first["cluster"].to_numpy() - 1, second["cluster"].to_numpy() - 1


def _save_profile(about: Profile, folder: Path) -> None:
    write_text(about.to_json(), folder / PROFILE)
    write_text(report(about), folder / REPORT)


def write_text(text: str, path: str | Path) -> None:
    """Write a text as UTF-8, whole or not at all."""
    with write_whole(path) as file:
        file.write(text.encode())


def _names(about: Profile) -> tuple[str, ...]:
    return tuple(cluster.name for cluster in about.clusters)
