"""The one run: from a cohort, wherever it lies, to a folder of results.

The command line, the explorer and a notebook differ in how they show progress and in nothing else.
"""

from __future__ import annotations

import json
import shlex
import warnings
from collections.abc import Mapping, Sequence
from concurrent.futures import Executor
from contextlib import nullcontext
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal

from comorb.engines import FileJournal, open_engine
from comorb.engines.blockfile import RowGroup, identity
from comorb.errors import InputError, StorageError
from comorb.insight.profile.assignment import Assignment, assign
from comorb.insight.profile.checking import Check, check_model
from comorb.insight.profile.gathering import Gathering
from comorb.insight.profile.keys import own_secret
from comorb.insight.profile.profile import Profile
from comorb.insight.profile.profiling import profile
from comorb.insight.runs.assigning import Assigning
from comorb.insight.runs.cohorts import JOURNAL, AnyCohort, open_cohort, workshop
from comorb.insight.runs.drift import density_facts
from comorb.insight.runs.folder import RunFolder
from comorb.insight.runs.lineage import arrange, kept_names, kept_notes
from comorb.insight.runs.progress import Pace, Progress, Tell, silent
from comorb.insight.runs.scoring import Scorer
from comorb.insight.runs.stability import Stability, stability
from comorb.insight.runs.tree import tree_document
from comorb.model.choose import Choice, choose
from comorb.model.em import Stopping
from comorb.model.fitting import MixtureFit
from comorb.model.kernels import is_compiled
from comorb.model.mixture import Mixture
from comorb.records.archive import CohortFile
from comorb.records.cohort import Cohort
from comorb.records.preparation import Preparation
from comorb.remote import Remote, place_of
from comorb.storage import SavedModel, check_folder, save_model, write_text

DESCRIBED = 500_000  # records of a file that the profile is made of, at most


@dataclass(frozen=True)
class Request:
    """What a run is asked for, beside its records."""

    k: int | Literal["auto"] = "auto"
    preparation: Preparation = field(default_factory=Preparation)  # is kept with the model
    title: str = ""  # what the data are, for the report
    command: str = ""  # what was run, for the report
    outcomes: tuple[str, ...] | None = None  # the covariates to sum up; None for all that can be
    repeats: int = 3  # pairs of overlapping parts that stability is measured on; 0 leaves it out
    earlier: tuple[Profile, ...] = ()  # the last one first; what goes on keeps number and name
    secret: bytes | None = None  # what the keys of records are made with; None for one's own
    protected: int = 0  # the smallest count that the report tells; 0 for a full report

    def words(self, records: str, beside: Mapping[str, str] | None = None) -> str:
        """Return the command that does the same with some records, and sources beside them."""
        words = ["comorb", "fit", records]
        words += [word for one in (beside or {}).items() for word in ("--with", "=".join(one))]
        words += ["-k", str(self.k), *self.preparation.words()]
        words += [word for name in self.outcomes or () for word in ("--outcome", name)]
        return shlex.join(words)


def fit_records(
    records: Any,
    directory: str | Path | Remote,
    request: Request,
    *,
    memory: str | None = None,
    engine: str | None = None,
    force: bool = False,
    tell: Tell = silent,
) -> Profile:
    """Read records, find their clusters and write the results to a folder; see `RunFolder`.

    ``memory``, such as '2GB', is about the most to hold: the records become a cohort file and may
    be more. An ``engine``, which maps the blocks, wants a file too. While the run is under way, the
    file and a journal of its passes are in a hidden folder beside ``directory``; a run that was
    interrupted goes on there when it is started again.
    """
    check_folder(directory, force)
    directory = place_of(directory).absolute()
    outside = bool(memory or engine)
    place = workshop(directory, records, request.preparation) if outside else nullcontext()
    with (
        open_engine(engine or "threads") as executor,
        place as folder,
        open_cohort(
            records,
            request.preparation,
            memory=memory,
            executor=executor if engine else None,
            folder=folder,
            tell=tell,
        ) as cohort,
    ):
        journal = None if folder is None else folder / JOURNAL
        return run(cohort, request, directory, executor, force=force, journal=journal, tell=tell)


def run(
    cohort: AnyCohort,
    request: Request,
    directory: str | Path | Remote,
    executor: Executor | None = None,
    *,
    force: bool = False,
    journal: Path | Remote | None = None,
    tell: Tell = silent,
) -> Profile:
    """Find the clusters of a cohort, assign each record once, describe, and write one folder.

    A ``journal`` keeps the passes over a cohort file, so that the run can go on from them. The
    clusters of a file of more than half a million records are described, and their stability
    measured, on that many, evenly spread.

    >>> import tempfile
    >>> from comorb.records.datasets import heart_failure
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     run(heart_failure(), Request(5, repeats=0), folder).k
    5
    """
    clusters = find(cohort, request, executor, journal, tell)
    with RunFolder.write(directory, force) as folder:
        sample, step = cohort.sample(DESCRIBED, executor)
        tell(Progress("describing", "Assigning the records"))
        secret, _ = _secret(request)
        gathering = Gathering(clusters.mixture.n_components, secret, request.outcomes)
        scorer = Scorer(clusters.mixture, clusters.check.caveats.temperature, clusters.numbers)
        place = journal.with_name("parts") if isinstance(journal, Remote) else None
        assigning = Assigning(cohort, scorer, folder, gathering, place)
        assigned = assigning.run(executor, step)
        made, _ = make_profile(clusters, sample, assigned, request, tell, gathering)
        tell(Progress("writing", "Writing the results"))
        digest = made.source.digest if step == 1 else cohort.digest()
        save_model(_saved(cohort, clusters, made, request, digest), folder.model)
        folder.save_profile(made, request.protected)
        if clusters.choice is not None:
            grown = tree_document(clusters.choice, cohort.codes, cohort.names, cohort.system)
            write_text(json.dumps(grown, ensure_ascii=False), folder.tree)
    return made


@dataclass(frozen=True, eq=False)
class Clusters:
    """What a fit found: the mixture, its numbers, why so many, and facts and notes about it."""

    mixture: Mixture
    numbers: tuple[int, ...]
    reason: str
    facts: dict[str, Any]
    notes: tuple[str, ...]
    check: Check
    choice: Choice | None = None  # where the number was chosen


def find(
    cohort: AnyCohort,
    request: Request,
    executor: Executor | None,
    journal: Path | Remote | None = None,
    tell: Tell = silent,
) -> Clusters:
    """Find the clusters of a cohort; what the fit warns of becomes a note."""
    once = "" if is_compiled() else " (this first time, some seconds to compile)"
    tell(Progress("finding", f"Finding the clusters of {len(cohort):,} records{once}"))
    pace = Pace(Stopping().limit, tell)
    blocks, passes = cohort.blocks(), None
    if isinstance(cohort, CohortFile):
        passes = FileJournal(journal, identity(cohort.path), pace.begin)
        blocks = replace(blocks, journal=passes)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        fitted = MixtureFit(request.k).fit_blocks(blocks, executor, pace.gained)
    reason = fitted.choice_.reason if request.k == "auto" else f"{request.k}, as asked"
    facts: dict[str, Any] = {
        "reason": reason,
        "passes": fitted.n_iter_,
        "converged": fitted.converged_,
        "log_likelihood": fitted.log_likelihood_,
        "smoothing": fitted.smoothing_,
    }
    mixture, numbers = fitted.mixture_, tuple(range(1, fitted.weights_.size + 1))
    if request.earlier:
        mixture, numbers = arrange(mixture, cohort.codes, request.earlier)
    seen = replace(cohort.blocks(mixture.variables), journal=blocks.journal)
    check = check_model(mixture, seen, executor)
    facts["temperature"] = check.caveats.temperature
    facts |= density_facts(mixture, blocks, executor)
    if passes is not None:
        groups = [load for load in blocks.loaders if isinstance(load, RowGroup)]
        facts["passes_over_the_file"] = passes.passes + passes.recalled
        facts["bytes_a_pass"] = sum(group.size for group in groups)
    notes = tuple(str(one.message) for one in caught)
    choice = fitted.choice_ if request.k == "auto" else None
    return Clusters(mixture, numbers, reason, facts, notes, check, choice)


def make_profile(
    clusters: Clusters,
    sample: Cohort,
    assigned: Assignment,
    request: Request,
    tell: Tell,
    gathering: Gathering | None = None,
) -> tuple[Profile, Stability | None]:
    """Return the profile of the clusters, and how well they come out again, if that is wanted.

    ``gathering`` has what was gathered of all records, where they are more than the sample.
    """
    measured, notes, reason = None, clusters.notes, clusters.reason
    if request.repeats:
        text = f"Finding the clusters again, in {2 * request.repeats} parts of the records"
        tell(Progress("repeating", text))
        try:
            measured = stability(
                sample.matrix,
                clusters.mixture,
                repeats=request.repeats,
                sample_weight=sample.weights,
                labels=assigned.labels,
                features=sample.features,
            )
            if clusters.choice is not None:
                shares = clusters.mixture.weights.tolist()
                reason = clusters.choice.judged(measured.jaccard, shares).reason
        except InputError as error:
            notes = (*notes, f"stability was not measured: {error}")
    tell(Progress("describing", "Describing the clusters"))
    secret, problem = _secret(request)
    notes = (*notes, *problem)
    made = profile(
        clusters.mixture,
        replace(sample, ledger=sample.ledger.noted(*notes)),
        title=request.title,
        reason=reason,
        command=request.command,
        stability=None if measured is None else measured.jaccard,
        outcomes=request.outcomes,
        assigned=assigned,
        numbers=clusters.numbers,
        check=clusters.check,
        secret=secret,
        gathering=gathering,
    )
    made = made.renamed(kept_names(made, request.earlier))
    return made.noted(kept_notes(made, request.earlier)), measured


def _secret(request: Request) -> tuple[bytes | None, tuple[str, ...]]:
    """Return what the keys of records are made with, or None and a note on why there is none."""
    try:
        return request.secret or own_secret(), ()
    except StorageError as error:
        return None, (f"the counts of this run can't be protected: {error}",)


def measure_stability(
    cohort: AnyCohort, request: Request, executor: Executor | None = None, tell: Tell = silent
) -> tuple[Profile, Stability]:
    """Find the clusters of a cohort, and find out how well they come out again."""
    clusters = find(cohort, request, executor, tell=tell)
    sample, _ = cohort.sample(DESCRIBED, executor)
    tau = clusters.check.caveats.temperature
    assigned = assign(clusters.mixture, sample, temperature=tau)
    made, measured = make_profile(clusters, sample, assigned, request, tell)
    if measured is None:
        raise InputError(made.source.notes[-1])
    return made, measured


def choose_number(
    cohort: AnyCohort,
    ks: Sequence[int] | None = None,
    executor: Executor | None = None,
    tell: Tell = silent,
) -> Choice:
    """Find out how many clusters a cohort holds; see `comorb.choose_k`."""
    tell(Progress("finding", f"Trying numbers of clusters on {len(cohort):,} records"))
    return choose(cohort.blocks(), ks, executor)


def _saved(
    cohort: AnyCohort, clusters: Clusters, made: Profile, request: Request, digest: str
) -> SavedModel:
    return SavedModel(
        mixture=clusters.mixture,
        codes=cohort.codes,
        names=cohort.names,
        clusters=made.cluster_names,
        numbers=clusters.numbers,
        system=cohort.system,
        level=cohort.level,
        left_out=cohort.left_out,
        preparation=request.preparation.to_dict(),
        data_hash=digest,
        run={
            "title": request.title,
            "records": len(cohort),
            **clusters.facts,
            "reason": made.source.reason,
            "shares": [cluster.share for cluster in made.clusters],
        },
    )
