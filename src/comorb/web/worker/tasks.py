"""Tasks: what a worker does for each message."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import numpy as np

from comorb.engines import open_engine
from comorb.errors import InputError
from comorb.model.arrays import Floats
from comorb.profiles.codec import plain_part
from comorb.profiles.comparison import likeness_word
from comorb.profiles.explain import resolve_codes
from comorb.profiles.profile import Profile
from comorb.runs.assign import assign_records
from comorb.runs.compare import compare_runs
from comorb.runs.edit import Revision, load_moves, row_of
from comorb.runs.folder import RunFolder, annotate, load_profile, rename
from comorb.runs.new_records import NewRecordsRequest, compare_new_records
from comorb.runs.progress import Progress
from comorb.runs.run import MAX_DESCRIBED, run
from comorb.runs.slices import SplitRecords
from comorb.runs.stability import stability
from comorb.storage import load_model, write_text
from comorb.views.findings import page_json
from comorb.views.words import translated
from comorb.web.worker import cohorts, downloads, requests
from comorb.web.worker.cohorts import Plain

Reporter = Callable[[Progress | requests.Counted], None]
_DIFFERENCES = 25  # diagnoses of a comparison that are sent


def _make_run(task: requests.MakeRun, report: Reporter) -> Plain:
    """Find the clusters of the records that a run asks for, and write its folder."""
    report(Progress("reading", "Reading the records"))
    cohort = cohorts.chosen_cohort(task)
    secret = cohorts.secret_of(task.workspace)
    report(requests.Counted(len(cohort)))
    groups, spec = None, task.spec
    outcomes = cohorts.outcomes(task.data, task.rules, cohort)
    if task.record or spec.merge or spec.split:
        report(Progress("describing", "Describing the clusters"))
        before = RunFolder(task.parent or "")
        revision = Revision(before, cohort.load(), task.groups, outcomes, secret)
        if spec.merge:
            profile, groups = revision.merge(spec.merge, task.folder)
        elif spec.split:
            profile = revision.split(*spec.split, task.folder)
        else:
            profile = revision.move(task.record, task.cluster or 0, task.folder)
            groups = task.groups
    else:
        asked = replace(
            spec,
            preparation=cohorts.preparation(task.data, task.rules),
            command=_command(task),
            outcomes=outcomes,
            repeats=0,
            earlier=tuple(load_profile(folder) for folder in task.earlier),
            secret=secret,
        )
        with open_engine() as executor:
            profile = run(cohort, asked, task.folder, executor, force=True, report=report)
    downloads.renew(task.folder, profile, task.min_cell)
    shown = profile.protected(task.min_cell)
    return {
        "records": profile.source.records,
        "protected_records": shown.source.records,
        "features": profile.source.features,
        "protected_features": shown.source.features,
        "clusters": profile.k,
        "groups": groups,
        "moved": len(load_moves(RunFolder(task.folder))),
        "splits": cohorts.splits(cohort.sample(MAX_DESCRIBED)[0]),
    }


def _measure(task: requests.MeasureStability) -> tuple[float, ...] | None:
    """Return how stable each cluster of a run is, or None when there are too few records."""
    cohort, _ = cohorts.chosen_cohort(task.run).sample(MAX_DESCRIBED)
    mixture = load_model(RunFolder(task.run.folder).model).mixture
    try:
        return stability(
            cohort.matrix, mixture, sample_weight=cohort.weights, features=cohort.features
        ).jaccard
    except InputError:
        return None


def _note_stability(task: requests.NoteStability) -> None:
    folder = RunFolder(task.folder)
    if folder.path.exists():
        profile = load_profile(task.folder).with_stability(task.stability)
        folder.save_profile(profile)
        downloads.renew(task.folder, profile, task.min_cell)


def _name_clusters(task: requests.NameClusters) -> None:
    downloads.renew(task.folder, rename(task.folder, task.names), task.min_cell)


def _note_clusters(task: requests.NoteClusters) -> None:
    downloads.renew(task.folder, annotate(task.folder, task.notes), task.min_cell)


def _assign_data(task: requests.AssignData) -> Plain:
    """Say how many records of some data each cluster gets, and what changed."""
    data, builtin = task.data, task.data.kind == "builtin"
    asked = NewRecordsRequest(
        worklist=Path(task.path) if task.path else None,
        min_cell=task.min_cell,
        secret=cohorts.secret_of(task.workspace) if task.min_cell else b"",
        fewest=task.fewest,
    )
    records = cohorts.whole_cohort(data, {}) if builtin else data.source
    reading = None if builtin else cohorts.preparation(data, {})
    return asdict(compare_new_records(task.folder, records, reading, asked))


def _explain_record(task: requests.ExplainRecord) -> Plain:
    cohort = cohorts.chosen_cohort(task.run).load()
    row = row_of(cohort, task.record)
    ones = cohort.matrix.indices[slice(*cohort.matrix.indptr[row : row + 2])]
    codes = [cohort.codes[i] for i in ones]
    columns = cohort.features.columns() if cohort.features else {}
    values = {name: column[row] for name, column in columns.items()}
    known = [f"{name}={one}" for name, one in values.items() if one is not None and one == one]
    return _explained(load_profile(task.run.folder), [*codes, *known], task.language)


def _split_run(task: requests.SplitRun) -> Plain:
    """Return the shares of the clusters within slices, with intervals of standardised ones."""
    slices, half = _records(task).slices(task.by)
    return plain_part(slices) | {"notes": list(slices.notes), "half": _with_holes(half)}


def _show_slice(task: requests.ShowSlice) -> None:
    split = _records(task)
    outcomes = cohorts.outcomes(task.run.data, task.run.rules, split.cohort)
    made = split.profile(task.by, task.label, outcomes, task.groups)
    if task.min_cell:  # of the whole run, names are those that its protected counts give
        names = load_profile(task.run.folder).protected(task.min_cell).cluster_names
        made = made.protected(task.min_cell)
        told = (place for place, cluster in enumerate(made.clusters) if cluster.size is not None)
        made = made.renamed({place: names[place] for place in told})
    write_text(page_json(made, task.language), task.path)


def _records(task: requests.SplitRun) -> SplitRecords:
    secret = cohorts.secret_of(task.run.workspace)
    cohort = cohorts.chosen_cohort(task.run).load()
    return SplitRecords(task.run.folder, cohort, secret, task.min_cell)


def _rank_diagnoses(task: requests.RankDiagnoses) -> list[Plain]:
    profile = translated(downloads.shown_profile(task), task.language)
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


def _compare_runs(task: requests.CompareRuns) -> Plain:
    secret = cohorts.secret_of(task.workspace)
    compared = compare_runs(task.one, task.two, task.min_cell, task.follow, secret)
    comparison, one = compared.comparison, translated(compared.one, task.language)
    differences = np.nan_to_num(np.abs(comparison.differences))
    most = np.argsort(-differences.max(axis=0, initial=0), kind="stable")[:_DIFFERENCES]
    return {
        "pairs": [list(pair) for pair in comparison.pairs],
        "matches": [{"likeness": one, "word": likeness_word(one)} for one in comparison.likeness],
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


def _explain_texts(task: requests.ExplainCodes) -> Plain:
    """Explain a record by codes and words; of those that mean several codes, say which."""
    profile = downloads.shown_profile(task)
    asked = resolve_codes(profile, task.codes)
    shown = translated(profile, task.language)
    choices = [
        {"text": text, "codes": [_named(shown, place) for place in places]}
        for text, places in asked.choices
    ]
    if choices and not asked.given:
        return {"posterior": None, "choices": choices}
    return _explained(profile, asked.given, task.language) | {"choices": choices}


def _named(profile: Profile, place: int) -> Plain:
    return {"code": profile.codes[place], "label": profile.labels[place]}


def _explained(profile: Profile, codes: Sequence[str], language: str) -> Plain:
    """Return where a record with some codes belongs, and what each code says for each cluster.

    Of a protected profile, to tenths.
    """
    explanation = profile.explain(codes)
    if not explanation.codes:
        raise InputError("run.unknown_codes")
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


def _command(task: requests.MakeRun) -> str:
    """Return the command that does the same, where there is one."""
    data = task.data
    if data.kind == "builtin" or task.within or task.spec.merge or task.spec.split:
        return ""
    source = Path(data.source)
    name = data.title + "".join(source.suffixes) if data.kind == "upload" else source.name
    outcomes = cohorts.asked_outcomes(data, task.rules)
    asked = replace(
        task.spec,
        preparation=cohorts.preparation(data, task.rules),
        outcomes=None if outcomes is None else tuple(outcomes),
    )
    return asked.words(name)


def _keep_secret(task: requests.KeepSecret) -> None:
    """Make the secret, and return nothing of it."""
    cohorts.secret_of(task.workspace)


_DONE_BY: dict[type[requests.Task], Callable[[Any], Any]] = {
    requests.KeepSecret: _keep_secret,
    requests.Understand: cohorts.understand,
    requests.DescribeColumns: cohorts.describe_columns,
    requests.ReadMap: cohorts.read_own_map,
    requests.ListCodes: cohorts.list_codes,
    requests.MatchCodes: cohorts.match_codes,
    requests.CountCohort: cohorts.count_cohort,
    requests.CountProtected: cohorts.count_protected,
    requests.DrawMap: cohorts.map_of_run,
    requests.MeasureStability: _measure,
    requests.NoteStability: _note_stability,
    requests.ShowProfile: downloads.write_documents,
    requests.NameClusters: _name_clusters,
    requests.ExplainCodes: _explain_texts,
    requests.ExplainRecord: _explain_record,
    requests.SplitRun: _split_run,
    requests.ShowSlice: _show_slice,
    requests.RankDiagnoses: _rank_diagnoses,
    requests.AssignFile: lambda task: assign_records(task.folder, task.records, task.path),
    requests.NoteClusters: _note_clusters,
    requests.AssignData: _assign_data,
    requests.WriteDownload: downloads.write,
    requests.CompareRuns: _compare_runs,
}


def do(task: requests.Task, report: Reporter) -> Any:
    """Do a task and return what it found, in plain values."""
    if isinstance(task, requests.MakeRun):
        return _make_run(task, report)
    return _DONE_BY[type(task)](task)
