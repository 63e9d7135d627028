"""Tasks: what a worker does for each message."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np

from comorb.engines import open_engine
from comorb.errors import InputError
from comorb.insight.profile.asking import asked_codes
from comorb.insight.profile.compare import how_good
from comorb.insight.profile.further import plain_part
from comorb.insight.profile.profile import Profile
from comorb.insight.runs.arrivals import Asked, receive
from comorb.insight.runs.assign import assign_records
from comorb.insight.runs.by_hand import Revision, moved_records, row_of
from comorb.insight.runs.comparing import compare_runs
from comorb.insight.runs.folder import RunFolder, annotate, load_profile, rename
from comorb.insight.runs.progress import Progress
from comorb.insight.runs.run import DESCRIBED, Request, run
from comorb.insight.runs.splitting import SplitRecords
from comorb.insight.runs.stability import stability
from comorb.insight.views.diagnoses import translated
from comorb.insight.views.findings import page_json
from comorb.model.arrays import Floats
from comorb.storage import load_model, write_text
from comorb.web.worker import cohorts, documents, downloads, messages
from comorb.web.worker.cohorts import Plain
from comorb.web.worker.large import held

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
    if task.record or task.merge or task.split:
        tell(Progress("describing", "Describing the clusters"))
        before = RunFolder(task.parent or "")
        revision = Revision(before, held(cohort), task.groups, outcomes, secret)
        if task.merge:
            first, second = task.merge
            profile, groups = revision.merge((first, second), task.folder)
        elif task.split:
            number, parts = task.split
            profile = revision.split(number, parts, task.folder)
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
        "splits": cohorts.splits(cohort.sample(DESCRIBED)[0]),
    }


def _measure(task: messages.MeasureStability) -> tuple[float, ...] | None:
    """Return how stable each cluster of a run is, or None when there are too few records."""
    cohort, _ = cohorts.chosen_cohort(task.run).sample(DESCRIBED)
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


def _note_clusters(task: messages.NoteClusters) -> None:
    documents.renew(task.folder, annotate(task.folder, task.notes), task.min_cell)


def _assign_data(task: messages.AssignData) -> Plain:
    """Say how many records of some data each cluster gets, and what changed."""
    data, builtin = task.data, task.data.kind == "builtin"
    asked = Asked(
        worklist=Path(task.path) if task.path else None,
        least=task.min_cell,
        secret=cohorts.secret_of(task.workspace) if task.min_cell else b"",
        fewest=task.fewest,
    )
    records = cohorts.whole_cohort(data, {}) if builtin else data.source
    reading = None if builtin else cohorts.preparation(data, {})
    return asdict(receive(task.folder, records, reading, asked))


def _explain_record(task: messages.ExplainRecord) -> Plain:
    cohort = held(cohorts.chosen_cohort(task.run))
    row = row_of(cohort, task.record)
    ones = cohort.matrix.indices[slice(*cohort.matrix.indptr[row : row + 2])]
    codes = [cohort.codes[i] for i in ones]
    columns = cohort.features.columns() if cohort.features else {}
    values = {name: column[row] for name, column in columns.items()}
    known = [f"{name}={one}" for name, one in values.items() if one is not None and one == one]
    return _explained(load_profile(task.run.folder), [*codes, *known], task.language)


def _split_run(task: messages.SplitRun) -> Plain:
    """Return the shares of the clusters within slices, with intervals of standardised ones."""
    slices, half = _records(task).slices(task.by)
    return plain_part(slices) | {"half": _with_holes(half)}


def _show_slice(task: messages.ShowSlice) -> None:
    split = _records(task)
    outcomes = cohorts.outcomes(task.run.data, task.run.rules, split.cohort)
    made = split.profile(task.by, task.label, outcomes, task.groups)
    shown = made.protected(task.min_cell) if task.min_cell else made
    write_text(page_json(shown, task.language), task.path)


def _records(task: messages.SplitRun) -> SplitRecords:
    secret = cohorts.secret_of(task.run.workspace)
    cohort = held(cohorts.chosen_cohort(task.run))
    return SplitRecords(task.run.folder, cohort, secret, task.min_cell)


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
        "matches": [{"likeness": one, "word": how_good(one)} for one in comparison.likeness],
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


def _explain_texts(task: messages.ExplainCodes) -> Plain:
    """Explain a record by codes and words; of those that mean several codes, say which."""
    profile = documents.shown_profile(task)
    asked = asked_codes(profile, task.codes)
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
        raise InputError(
            "None of these is a diagnosis or a feature that the clusters know; give codes or names "
            "such as those in the charts above."
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
    if data.kind == "builtin" or task.within or task.merge or task.split:
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
    messages.MatchCodes: cohorts.match_codes,
    messages.CountCohort: cohorts.count_cohort,
    messages.CountProtected: cohorts.count_protected,
    messages.DrawMap: cohorts.map_of_run,
    messages.MeasureStability: _measure,
    messages.NoteStability: _note_stability,
    messages.ShowProfile: documents.write,
    messages.NameClusters: _name_clusters,
    messages.ExplainCodes: _explain_texts,
    messages.ExplainRecord: _explain_record,
    messages.SplitRun: _split_run,
    messages.ShowSlice: _show_slice,
    messages.RankDiagnoses: _rank_diagnoses,
    messages.AssignFile: lambda task: assign_records(task.folder, task.records, task.path),
    messages.NoteClusters: _note_clusters,
    messages.AssignData: _assign_data,
    messages.WriteDownload: downloads.write,
    messages.CompareRuns: _compare_runs,
}


def do(task: messages.Task, tell: Tell) -> Any:
    """Do a task and return what it found, in plain values."""
    if isinstance(task, messages.MakeRun):
        return _make_run(task, tell)
    return _DONE_BY[type(task)](task)
