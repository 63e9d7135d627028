"""A run, from a cohort wherever it lies to a folder of results.

The command line, the explorer and a notebook differ in how they show progress and in nothing else.
"""

from __future__ import annotations

import json
import warnings
from collections.abc import Sequence
from concurrent.futures import Executor
from contextlib import nullcontext
from dataclasses import dataclass, replace
from typing import Any

from comorb.engines import FileJournal
from comorb.engines.block_files import RowGroup, identity
from comorb.errors import InputError, StorageError
from comorb.messages import Message
from comorb.model.em import Stopping
from comorb.model.fit import MixtureFit
from comorb.model.kernels import is_compiled
from comorb.model.mixture import Mixture
from comorb.model.select_k import Choice, choose
from comorb.profiles.assignment import Assignment, assign
from comorb.profiles.build import ModelCheck, RecordAccumulator, check_model, profile
from comorb.profiles.noise import own_secret
from comorb.profiles.profile import Profile
from comorb.records.cohort import Cohort
from comorb.remote import Place, Remote, place_of
from comorb.runs.assign import Scorer, assign_run
from comorb.runs.choose import tree_document
from comorb.runs.cohorts import CHECKPOINTS, AnyCohort, checkpoint_folder, open_records
from comorb.runs.compare import carry_names, carry_notes, order_by_number
from comorb.runs.drift import density_facts
from comorb.runs.folder import RunFolder
from comorb.runs.progress import PassProgress, Progress, Reporter, ignore_progress
from comorb.runs.spec import RunSpec
from comorb.runs.stability import Stability, stability
from comorb.storage import SavedModel, check_folder, save_model, write_text

MAX_DESCRIBED = 500_000  # records of a file that the profile is made of, at most
Request = RunSpec  # its name until version 0.3


def fit_records(
    records: Any,
    directory: str | Place,
    request: RunSpec,
    *,
    memory: str | None = None,
    engine: str | None = None,
    force: bool = False,
    report: Reporter = ignore_progress,
) -> Profile:
    """Read records, find their clusters and write the results to a folder; see `RunFolder`.

    ``memory``, such as '2GB', is about the most to hold: the records become a cohort file and may
    be more. An ``engine``, which maps the blocks, wants a file too. While the run is under way, the
    file and a journal of its passes are in a hidden folder next to ``directory``; a run that was
    interrupted goes on there when it is started again.
    """
    check_folder(directory, force)
    directory = place_of(directory).absolute()
    asked, outside = request.preparation, bool(memory or engine)
    place = checkpoint_folder(directory, records, asked) if outside else nullcontext()
    with (
        place as folder,
        open_records(records, asked, memory, engine, report, folder) as (cohort, executor),
    ):
        ways: dict[str, Any] = {"force": force, "report": report}
        journal = None if folder is None else folder / CHECKPOINTS
        return run(cohort, request, directory, executor, journal=journal, **ways)


def run(
    cohort: AnyCohort,
    request: RunSpec,
    directory: str | Place,
    executor: Executor | None = None,
    *,
    force: bool = False,
    journal: Place | None = None,
    report: Reporter = ignore_progress,
) -> Profile:
    """Find the clusters of a cohort, assign each record once, describe, and write one folder.

    A ``journal`` keeps the passes over a cohort file, so that the run can go on from them. The
    clusters of a file of more than half a million records are described, and their stability
    measured, on that many, evenly spread.

    >>> import tempfile
    >>> from comorb.records.datasets import heart_failure
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     run(heart_failure(), RunSpec(5, repeats=0), folder).k
    5
    """
    clusters = find_clusters(cohort, request, executor, journal, report)
    with RunFolder.write(directory, force) as folder:
        sample, step = cohort.sample(MAX_DESCRIBED, executor)
        report(Progress("describing", "Assigning the records"))
        secret, _ = _find_secret(request)
        accumulator = RecordAccumulator(clusters.mixture.n_components, secret, request.outcomes)
        scorer = Scorer(clusters.mixture, clusters.check.caveats.temperature, clusters.numbers)
        place = journal.with_name("parts") if isinstance(journal, Remote) else None
        assigned = assign_run(cohort, scorer, folder, accumulator, executor, step, place)
        made, _ = make_profile(clusters, sample, assigned, request, report, accumulator)
        report(Progress("writing", "Writing the results"))
        digest = made.source.digest if step == 1 else cohort.digest()
        save_model(_model_to_save(cohort, clusters, made, request, digest), folder.model)
        folder.save_profile(made, request.protected)
        if clusters.choice is not None:
            tree = tree_document(clusters.choice, cohort.codes, cohort.names, cohort.system)
            write_text(json.dumps(tree, ensure_ascii=False), folder.tree)
    return made


@dataclass(frozen=True, eq=False)
class Clusters:
    """What a fit found: the mixture, its numbers, why so many, and facts and notes about it."""

    mixture: Mixture
    numbers: tuple[int, ...]
    reason: str
    facts: dict[str, Any]
    notes: tuple[str, ...]
    check: ModelCheck
    choice: Choice | None = None  # where the number was chosen


def find_clusters(
    cohort: AnyCohort,
    request: RunSpec,
    executor: Executor | None,
    journal: Place | None = None,
    report: Reporter = ignore_progress,
) -> Clusters:
    """Find the clusters of a cohort; what the fit warns of becomes a note."""
    once = "" if is_compiled() else " (this first time, some seconds to compile)"
    report(Progress("finding", f"Finding the clusters of {len(cohort):,} records{once}"))
    pace = PassProgress(Stopping().limit, report)
    blocks, passes = cohort.blocks(), None
    if cohort.path is not None:
        passes = FileJournal(journal, identity(cohort.path), pace.begin)
        blocks = replace(blocks, journal=passes)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        fitted = MixtureFit(request.k).fit_blocks(blocks, executor, pace.gained)
    chosen = isinstance(request.k, str)
    reason = fitted.choice_.reason if chosen else Message("run.as_asked", k=request.k)
    facts: dict[str, Any] = {"reason": reason, "passes": fitted.n_iter_}
    for name in ("converged", "log_likelihood", "smoothing"):
        facts[name] = getattr(fitted, f"{name}_")
    mixture, numbers = fitted.mixture_, tuple(range(1, fitted.weights_.size + 1))
    if request.earlier:
        mixture, numbers = order_by_number(mixture, cohort.codes, request.earlier)
    seen = replace(cohort.blocks(mixture.variables), journal=blocks.journal)
    check = check_model(mixture, seen, executor)
    facts["temperature"] = check.caveats.temperature
    facts |= density_facts(mixture, blocks, executor)
    if passes is not None:
        groups = [load for load in blocks.loaders if isinstance(load, RowGroup)]
        facts["passes_over_the_file"] = passes.passes + passes.recalled
        facts["bytes_a_pass"] = sum(group.size for group in groups)
    notes = tuple(one.message.args[0] for one in caught if isinstance(one.message, Warning))
    choice = fitted.choice_ if chosen else None
    return Clusters(mixture, numbers, reason, facts, notes, check, choice)


def make_profile(
    clusters: Clusters,
    sample: Cohort,
    assigned: Assignment,
    request: RunSpec,
    report: Reporter,
    accumulator: RecordAccumulator | None = None,
) -> tuple[Profile, Stability | None]:
    """Return the profile of the clusters, and how well they come out again, if that is wanted.

    ``accumulator`` has what was gathered of all records, where they are more than the sample.
    """
    measured, notes, reason = None, clusters.notes, clusters.reason
    if request.repeats:
        text = f"Finding the clusters again, in {2 * request.repeats} parts of the records"
        report(Progress("repeating", text))
        try:
            measured = stability(
                sample.matrix,
                clusters.mixture,
                repeats=request.repeats,
                sample_weight=sample.weights,
                features=sample.features,
            )
            if clusters.choice is not None:
                shares = clusters.mixture.weights.tolist()
                reason = clusters.choice.with_reliability(measured.jaccard, shares).reason
        except InputError as error:
            notes = (*notes, Message("note.no_stability", error=error))
    report(Progress("describing", "Describing the clusters"))
    secret, problem = _find_secret(request)
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
        accumulator=accumulator,
    )
    made = made.renamed(carry_names(made, request.earlier))
    return made.noted(carry_notes(made, request.earlier)), measured


def _find_secret(request: RunSpec) -> tuple[bytes | None, tuple[str, ...]]:
    """Return what the keys of records are made with, or None and a note on why there is none."""
    try:
        return request.secret or own_secret(), ()
    except StorageError as error:
        return None, (Message("note.no_protection", error=error),)


def measure_stability(
    cohort: AnyCohort,
    request: RunSpec,
    executor: Executor | None = None,
    report: Reporter = ignore_progress,
) -> tuple[Profile, Stability]:
    """Find the clusters of a cohort, and measure how stable they are."""
    clusters = find_clusters(cohort, request, executor, report=report)
    sample, _ = cohort.sample(MAX_DESCRIBED, executor)
    tau = clusters.check.caveats.temperature
    assigned = assign(clusters.mixture, sample, temperature=tau)
    made, measured = make_profile(clusters, sample, assigned, request, report)
    if measured is None:
        raise InputError(made.source.notes[-1])
    return made, measured


def choose_number(
    cohort: AnyCohort,
    ks: Sequence[int] | None = None,
    executor: Executor | None = None,
    report: Reporter = ignore_progress,
) -> Choice:
    """Find out how many clusters a cohort holds; see `comorb.choose_k`."""
    report(Progress("finding", f"Trying numbers of clusters on {len(cohort):,} records"))
    return choose(cohort.blocks(), ks, executor)


def _model_to_save(
    cohort: AnyCohort, clusters: Clusters, made: Profile, request: RunSpec, digest: str
) -> SavedModel:
    return SavedModel(
        *(clusters.mixture, cohort.codes, cohort.names, made.cluster_names, clusters.numbers),
        *(cohort.system, cohort.level, cohort.left_out),
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
