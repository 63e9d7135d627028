"""Tasks: what a worker does for each message."""

from __future__ import annotations

from collections.abc import Callable
from functools import singledispatch
from pathlib import Path
from typing import Any

import numpy as np

from comorb.engines import open_engine
from comorb.errors import InputError
from comorb.insight.profile.explain import Explanation
from comorb.insight.profile.profile import Profile
from comorb.insight.runs.assign import assign_records
from comorb.insight.runs.by_hand import Revision, moved_records, row_of
from comorb.insight.runs.comparing import compare_runs
from comorb.insight.runs.folder import RunFolder, load_profile, rename
from comorb.insight.runs.progress import Progress
from comorb.insight.runs.run import Request, run
from comorb.insight.runs.stability import stability
from comorb.model.arrays import Floats
from comorb.storage import load_model, write_text
from comorb.web.worker import cohorts, downloads
from comorb.web.worker.cohorts import Plain
from comorb.web.worker.messages import (
    AssignFile,
    CompareRuns,
    CountCohort,
    Counted,
    ExplainCodes,
    ExplainRecord,
    ListCodes,
    MakeRun,
    MeasureStability,
    NameClusters,
    NoteStability,
    RankDiagnoses,
    ShowProfile,
    Task,
    Understand,
    WriteDownload,
)

Tell = Callable[[Progress | Counted], None]
_DIFFERENCES = 25  # diagnoses of a comparison that are sent


@singledispatch
def do(task: Task, tell: Tell) -> Any:
    """Do a task and return what it found, in plain values."""
    raise InputError(f"no worker knows the task {type(task).__name__}")


@do.register
def _understand(task: Understand, _: Tell) -> Plain:
    return cohorts.understand(task)


@do.register
def _list_codes(task: ListCodes, _: Tell) -> list[list[Any]]:
    return cohorts.list_codes(task)


@do.register
def _count_cohort(task: CountCohort, _: Tell) -> Plain:
    return cohorts.count_cohort(task)


@do.register
def _make_run(task: MakeRun, tell: Tell) -> Plain:
    """Find the clusters of the records that a run asks for, and write its folder."""
    tell(Progress("reading", "Reading the records"))
    cohort = cohorts.chosen_cohort(task)
    cohorts.check_size(len(cohort), task.min_cell)
    tell(Counted(len(cohort)))
    groups = None
    outcomes = cohorts.outcomes(task.data, cohort)
    if task.record or task.merge:
        tell(Progress("describing", "Describing the clusters"))
        before = RunFolder(Path(task.parent or ""))
        revision = Revision(before, cohort, task.groups, outcomes)
        if task.merge:
            first, second = task.merge
            profile, groups = revision.merge((first, second), task.folder)
        else:
            profile = revision.move(task.record, task.cluster or 0, task.folder)
            groups = task.groups
    else:
        request = Request(
            task.k,
            cohorts.preparation(task.data, task.rules),
            title=task.title,
            command=_command(task),
            outcomes=outcomes,
            repeats=0,
            earlier=tuple(load_profile(folder) for folder in task.earlier),
        )
        with open_engine() as executor:
            profile = run(cohort, request, task.folder, executor, force=True, tell=tell)
    folder = RunFolder(Path(task.folder))
    _show(profile, folder, task.min_cell)
    return {
        "records": profile.source.records,
        "features": profile.source.features,
        "clusters": profile.k,
        "groups": groups,
        "moved": len(moved_records(folder)),
    }


@do.register
def _measure(task: MeasureStability, _: Tell) -> tuple[float, ...] | None:
    """Return how stable each cluster of a run is, or None when there are too few records."""
    cohort = cohorts.chosen_cohort(task.run)
    mixture = load_model(RunFolder(Path(task.run.folder)).model).mixture
    try:
        return stability(cohort.matrix, mixture, sample_weight=cohort.weights).jaccard
    except InputError:
        return None


@do.register
def _note_stability(task: NoteStability, _: Tell) -> None:
    folder = RunFolder(Path(task.folder))
    if folder.path.exists():
        profile = load_profile(folder.path).with_stability(task.stability)
        folder.save_profile(profile)
        _show(profile, folder, task.min_cell)


@do.register
def _show_profile(task: ShowProfile, _: Tell) -> None:
    _show(load_profile(task.folder), RunFolder(Path(task.folder)), task.min_cell)


@do.register
def _name_clusters(task: NameClusters, _: Tell) -> None:
    _show(rename(task.folder, task.names), RunFolder(Path(task.folder)), task.min_cell)


@do.register
def _explain_codes(task: ExplainCodes, _: Tell) -> Plain:
    return _explained(load_profile(task.folder), task.codes, task.min_cell)


@do.register
def _explain_record(task: ExplainRecord, _: Tell) -> Plain:
    cohort = cohorts.chosen_cohort(task.run)
    row = row_of(cohort, task.record)
    ones = cohort.matrix.indices[slice(*cohort.matrix.indptr[row : row + 2])]
    codes = [cohort.codes[i] for i in ones]
    return _explained(load_profile(task.run.folder), codes, task.run.min_cell)


@do.register
def _rank_diagnoses(task: RankDiagnoses, _: Tell) -> list[Plain]:
    profile = load_profile(task.folder).suppressed(task.min_cell)
    return [
        {
            "cluster": cluster.number,
            "name": cluster.name,
            "diagnoses": [
                {
                    "code": profile.codes[i],
                    "label": profile.labels[i],
                    "share": float(profile.prevalence[place, i]),
                    "lift": float(profile.lift[place, i]),
                }
                for i in profile.top(place, task.lam, task.n)
            ],
        }
        for place, cluster in enumerate(profile.clusters)
    ]


@do.register
def _assign_file(task: AssignFile, _: Tell) -> None:
    assign_records(task.folder, task.records, task.path)


@do.register
def _write_download(task: WriteDownload, _: Tell) -> None:
    downloads.write(task)


@do.register
def _compare_runs(task: CompareRuns, _: Tell) -> Plain:
    compared = compare_runs(task.one, task.two, task.min_cell, task.follow)
    comparison, one = compared.comparison, compared.one
    place = {code: column for column, code in enumerate(one.codes)}
    differences = np.nan_to_num(np.abs(comparison.differences))
    most = np.argsort(-differences.max(axis=0, initial=0), kind="stable")[:_DIFFERENCES]
    return {
        "pairs": [list(pair) for pair in comparison.pairs],
        "ari": comparison.ari,
        "shared": compared.followed,
        "flows": None if comparison.flows is None else _with_holes(comparison.flows),
        "step": comparison.step,
        "codes": [
            {
                "code": comparison.codes[i],
                "label": one.labels[place[comparison.codes[i]]],
                "differences": _with_holes(comparison.differences[:, i]),
            }
            for i in most
        ],
    }


def _explained(profile: Profile, codes: list[str], min_cell: int) -> Plain:
    """Return where a record with some codes belongs, and what each code says for each cluster."""
    explanation: Explanation = profile.explain(codes)
    if not explanation.codes:
        raise InputError(
            "None of these is a diagnosis that the clusters know; give codes such as those in the "
            "charts above."
        )
    seen = ~np.isnan(profile.suppressed(min_cell).means)
    places = [profile.codes.index(code) for code in explanation.codes]
    absent = explanation.base - explanation.base @ profile.weights
    return {
        "posterior": explanation.posterior.tolist(),
        "absent": [
            float(value) if all(seen[cluster, place] for place in places) else None
            for cluster, value in enumerate(absent)
        ],
        "codes": [
            {
                "code": profile.codes[place],
                "label": profile.labels[place],
                "speaks": [
                    float(value) if seen[cluster, place] else None
                    for cluster, value in enumerate(explanation.contributions[row])
                ],
            }
            for row, place in enumerate(places)
        ],
        "unknown": list(explanation.unknown),
    }


def _with_holes(values: Floats) -> Any:
    """Return numbers as plain lists, with None for those that are hidden."""
    plain = values.astype(object)
    plain[np.isnan(values)] = None
    return plain.tolist()


def _show(profile: Profile, folder: RunFolder, min_cell: int) -> None:
    """Write the profile without small counts, in place of one with another threshold."""
    path = folder.shown(min_cell)
    write_text(profile.suppressed(min_cell).to_json(), path)
    for other in set(folder.all_shown()) - {path}:
        other.unlink()


def _command(task: MakeRun) -> str:
    """Return the command that does the same, where there is one."""
    data = task.data
    if data.kind == "builtin" or task.within or task.merge:
        return ""
    source = Path(data.source)
    name = data.title + "".join(source.suffixes) if data.kind == "upload" else source.name
    outcomes = None if data.outcomes is None else tuple(data.outcomes)
    asked = Request(task.k, cohorts.preparation(data, task.rules), outcomes=outcomes)
    return asked.words(name)
