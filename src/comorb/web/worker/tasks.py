"""Tasks: what a worker does for each message."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from comorb.engines import open_engine
from comorb.errors import InputError
from comorb.insight.profile.profile import Profile
from comorb.insight.runs.assign import assign_records
from comorb.insight.runs.by_hand import Revision, moved_records, row_of
from comorb.insight.runs.comparing import compare_runs
from comorb.insight.runs.folder import RunFolder, load_profile, rename
from comorb.insight.runs.progress import Progress
from comorb.insight.runs.run import Request, run
from comorb.insight.runs.stability import stability
from comorb.insight.views.diagnoses import translated
from comorb.model.arrays import Floats
from comorb.storage import load_model
from comorb.web.worker import cohorts, documents, downloads, messages
from comorb.web.worker.cohorts import Plain

Tell = Callable[[Progress | messages.Counted], None]
_DIFFERENCES = 25  # diagnoses of a comparison that are sent


def _make_run(task: messages.MakeRun, tell: Tell) -> Plain:
    """Find the clusters of the records that a run asks for, and write its folder."""
    tell(Progress("reading", "Reading the records"))
    cohort = cohorts.chosen_cohort(task)
    secret = cohorts.secret_of(task.workspace)
    tell(messages.Counted(len(cohort)))
    groups = None
    outcomes = cohorts.outcomes(task.data, task.rules, cohort)
    if task.record or task.merge:
        tell(Progress("describing", "Describing the clusters"))
        before = RunFolder(task.parent or "")
        revision = Revision(before, cohort, task.groups, outcomes, secret)
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
            secret=secret,
        )
        with open_engine() as executor:
            profile = run(cohort, request, task.folder, executor, force=True, tell=tell)
    documents.renew(task.folder, profile, task.min_cell)
    return {
        "records": profile.source.records,
        "protected_records": profile.protected(task.min_cell).source.records,
        "features": profile.source.features,
        "clusters": profile.k,
        "groups": groups,
        "moved": len(moved_records(RunFolder(task.folder))),
    }


def _measure(task: messages.MeasureStability) -> tuple[float, ...] | None:
    """Return how stable each cluster of a run is, or None when there are too few records."""
    cohort = cohorts.chosen_cohort(task.run)
    mixture = load_model(RunFolder(task.run.folder).model).mixture
    try:
        return stability(
            cohort.matrix, mixture, sample_weight=cohort.weights, features=cohort.features
        ).jaccard
    except InputError:
        return None


def _note_stability(task: messages.NoteStability) -> None:
    folder = RunFolder(task.folder)
    if folder.path.exists():
        profile = load_profile(task.folder).with_stability(task.stability)
        folder.save_profile(profile)
        documents.renew(task.folder, profile, task.min_cell)


def _name_clusters(task: messages.NameClusters) -> None:
    documents.renew(task.folder, rename(task.folder, task.names), task.min_cell)


def _explain_record(task: messages.ExplainRecord) -> Plain:
    cohort = cohorts.chosen_cohort(task.run)
    row = row_of(cohort, task.record)
    ones = cohort.matrix.indices[slice(*cohort.matrix.indptr[row : row + 2])]
    codes = [cohort.codes[i] for i in ones]
    columns = cohort.features.columns() if cohort.features else {}
    values = {name: column[row] for name, column in columns.items()}
    known = [f"{name}={one}" for name, one in values.items() if one is not None and one == one]
    return _explained(load_profile(task.run.folder), [*codes, *known], task.language)


def _explain_codes(task: messages.ExplainCodes) -> Plain:
    return _explained(documents.shown_profile(task), task.codes, task.language)


def _rank_diagnoses(task: messages.RankDiagnoses) -> list[Plain]:
    profile = translated(documents.shown_profile(task), task.language)
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


def _compare_runs(task: messages.CompareRuns) -> Plain:
    secret = cohorts.secret_of(task.workspace)
    compared = compare_runs(task.one, task.two, task.min_cell, task.follow, secret)
    comparison, one = compared.comparison, translated(compared.one, task.language)
    differences = np.nan_to_num(np.abs(comparison.differences))
    most = np.argsort(-differences.max(axis=0, initial=0), kind="stable")[:_DIFFERENCES]
    return {
        "pairs": [list(pair) for pair in comparison.pairs],
        "ari": comparison.ari,
        "shared": compared.followed,
        "flows": None if comparison.flows is None else _with_holes(comparison.flows),
        "codes": [
            {
                "code": comparison.codes[i],
                "label": one.labels[one.codes.index(comparison.codes[i])],
                "differences": _with_holes(comparison.differences[:, i]),
            }
            for i in most
        ],
    }


def _explained(profile: Profile, codes: list[str], language: str) -> Plain:
    """Return where a record with some codes belongs, and what each code says for each cluster.

    Of a protected profile, to tenths.
    """
    explanation = profile.explain(codes)
    if not explanation.codes:
        raise InputError(
            "None of these is a diagnosis or a feature that the clusters know; give codes such as "
            "those in the charts above."
        )
    digits = 1 if profile.min_cell else 12
    profile = translated(profile, language)
    labels = dict(zip(profile.codes[: profile.n_codes], profile.labels, strict=False))
    absent = explanation.base - explanation.base @ np.nan_to_num(profile.weights)
    return {
        "posterior": explanation.posterior.tolist(),
        "absent": absent.round(digits).tolist(),
        "codes": [
            {"code": code, "label": labels.get(code, ""), "speaks": speaks}
            for code, speaks in zip(
                explanation.codes, explanation.contributions.round(digits).tolist(), strict=True
            )
        ],
        "unknown": list(explanation.unknown),
    }


def _with_holes(values: Floats) -> Any:
    """Return numbers as plain lists, with None for those that are not told."""
    plain = values.astype(object)
    plain[np.isnan(values)] = None
    return plain.tolist()


def _command(task: messages.MakeRun) -> str:
    """Return the command that does the same, where there is one."""
    data = task.data
    if data.kind == "builtin" or task.within or task.merge:
        return ""
    source = Path(data.source)
    name = data.title + "".join(source.suffixes) if data.kind == "upload" else source.name
    outcomes = cohorts.asked_outcomes(data, task.rules)
    prepared = cohorts.preparation(data, task.rules)
    asked = Request(task.k, prepared, outcomes=None if outcomes is None else tuple(outcomes))
    return asked.words(name)


def _keep_secret(task: messages.KeepSecret) -> None:
    """Make the secret, and return nothing of it."""
    cohorts.secret_of(task.workspace)


_DONE_BY: dict[type[messages.Task], Callable[[Any], Any]] = {
    messages.KeepSecret: _keep_secret,
    messages.Understand: cohorts.understand,
    messages.DescribeColumns: cohorts.describe_columns,
    messages.ReadMap: cohorts.read_own_map,
    messages.ListCodes: cohorts.list_codes,
    messages.CountCohort: cohorts.count_cohort,
    messages.CountProtected: cohorts.count_protected,
    messages.MeasureStability: _measure,
    messages.NoteStability: _note_stability,
    messages.ShowProfile: documents.write,
    messages.NameClusters: _name_clusters,
    messages.ExplainCodes: _explain_codes,
    messages.ExplainRecord: _explain_record,
    messages.RankDiagnoses: _rank_diagnoses,
    messages.AssignFile: lambda task: assign_records(task.folder, task.records, task.path),
    messages.WriteDownload: downloads.write,
    messages.CompareRuns: _compare_runs,
}


def do(task: messages.Task, tell: Tell) -> Any:
    """Do a task and return what it found, in plain values."""
    if isinstance(task, messages.MakeRun):
        return _make_run(task, tell)
    return _DONE_BY[type(task)](task)
