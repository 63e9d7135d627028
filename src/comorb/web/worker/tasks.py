"""Tasks about runs: make one, change one, explain records, slice and compare."""

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
from comorb.web.worker import cohorts, downloads
from comorb.web.worker.cohorts import Plain
from comorb.web.worker.requests import Counted, Data, RunRequest

_DIFFERENCES = 25  # diagnoses of a comparison that are sent


def make_run(request: RunRequest, report: Callable[[Progress | Counted], None]) -> Plain:
    """Find the clusters of the records that a run asks for, and write its folder."""
    report(Progress("reading", "Reading the records"))
    cohort = cohorts.chosen_cohort(request)
    secret = cohorts.secret_of(request.workspace)
    report(Counted(len(cohort)))
    groups, spec = None, request.spec
    outcomes = cohorts.outcomes(request.data, request.rules, cohort)
    if request.record or spec.merge or spec.split:
        report(Progress("describing", "Describing the clusters"))
        before = RunFolder(request.parent or "")
        revision = Revision(before, cohort.load(), request.groups, outcomes, secret)
        if spec.merge:
            profile, groups = revision.merge(spec.merge, request.folder)
        elif spec.split:
            profile = revision.split(*spec.split, request.folder)
        else:
            profile = revision.move(request.record, request.cluster or 0, request.folder)
            groups = request.groups
    else:
        full = replace(
            spec,
            preparation=cohorts.preparation(request.data, request.rules),
            command=_command(request),
            outcomes=outcomes,
            repeats=0,
            earlier=tuple(load_profile(folder) for folder in request.earlier),
            secret=secret,
        )
        with open_engine() as executor:
            profile = run(cohort, full, request.folder, executor, force=True, report=report)
    downloads.renew(request.folder, profile, request.min_cell)
    shown = profile.protected(request.min_cell)
    return {
        "records": profile.source.records,
        "protected_records": shown.source.records,
        "features": profile.source.features,
        "protected_features": shown.source.features,
        "clusters": profile.k,
        "groups": groups,
        "moved": len(load_moves(RunFolder(request.folder))),
        "splits": cohorts.splits(cohort.sample(MAX_DESCRIBED)[0]),
    }


def measure_stability(request: RunRequest) -> tuple[float, ...] | None:
    """Return how stable each cluster of a run is, or None when there are too few records."""
    cohort, _ = cohorts.chosen_cohort(request).sample(MAX_DESCRIBED)
    mixture = load_model(RunFolder(request.folder).model).mixture
    try:
        return stability(
            cohort.matrix, mixture, sample_weight=cohort.weights, features=cohort.features
        ).jaccard
    except InputError:
        return None


def note_stability(folder: str, min_cell: int, measured: tuple[float, ...]) -> None:
    """Write the stability of a run's clusters into its profile, unless the run was deleted."""
    if Path(folder).exists():
        profile = load_profile(folder).with_stability(measured)
        RunFolder(folder).save_profile(profile)
        downloads.renew(folder, profile, min_cell)


def name_clusters(folder: str, min_cell: int, names: dict[int, str]) -> None:
    """Give clusters other names, by their numbers."""
    downloads.renew(folder, rename(folder, names), min_cell)


def note_clusters(folder: str, min_cell: int, notes: dict[int, dict[str, str]]) -> None:
    """Write the note, owner and pathway of clusters, by their numbers."""
    downloads.renew(folder, annotate(folder, notes), min_cell)


def assign_file(folder: str, records: str, path: str) -> None:
    """Write the cluster of each record of a file to another file."""
    assign_records(folder, records, path)


def assign_data(
    folder: str, min_cell: int, data: Data, workspace: str, fewest: int, path: str = ""
) -> Plain:
    """Count the records of some data that each cluster gets, and what changed.

    Fewer records than ``fewest`` are refused; ``path`` is where a worklist goes.
    """
    builtin = data.kind == "builtin"
    request = NewRecordsRequest(
        worklist=Path(path) if path else None,
        min_cell=min_cell,
        secret=cohorts.secret_of(workspace) if min_cell else b"",
        fewest=fewest,
    )
    records = cohorts.whole_cohort(data, {}) if builtin else data.source
    reading = None if builtin else cohorts.preparation(data, {})
    return asdict(compare_new_records(folder, records, reading, request))


def explain_record(request: RunRequest, record: str, language: str = "en") -> Plain:
    """Explain where a record of a run belongs, by its id."""
    cohort = cohorts.chosen_cohort(request).load()
    row = row_of(cohort, record)
    ones = cohort.matrix.indices[slice(*cohort.matrix.indptr[row : row + 2])]
    codes = [cohort.codes[i] for i in ones]
    columns = cohort.features.columns() if cohort.features else {}
    values = {name: column[row] for name, column in columns.items()}
    known = [f"{name}={one}" for name, one in values.items() if one is not None and one == one]
    return _explain(load_profile(request.folder), [*codes, *known], language)


def split_run(request: RunRequest, least: int, by: str) -> Plain:
    """Return the shares of the clusters within slices, with intervals of standardised ones.

    Counts below ``least`` are suppressed, none with 0.
    """
    slices, half = _sliced_records(request, least).slices(by)
    return plain_part(slices) | {"notes": list(slices.notes), "half": _with_holes(half)}


def write_slice(
    request: RunRequest, least: int, by: str, label: str, path: str, language: str = "en"
) -> None:
    """Write the profile of one slice to a file."""
    split = _sliced_records(request, least)
    outcomes = cohorts.outcomes(request.data, request.rules, split.cohort)
    made = split.profile(by, label, outcomes, request.own_groups)
    if least:  # of the whole run, names are those that its protected counts give
        names = load_profile(request.folder).protected(least).cluster_names
        made = made.protected(least)
        shown = (place for place, cluster in enumerate(made.clusters) if cluster.size is not None)
        made = made.renamed({place: names[place] for place in shown})
    write_text(page_json(made, language), path)


def _sliced_records(request: RunRequest, least: int) -> SplitRecords:
    secret = cohorts.secret_of(request.workspace)
    return SplitRecords(request.folder, cohorts.chosen_cohort(request).load(), secret, least)


def rank_diagnoses(
    folder: str, least: int, lam: float, n: int, language: str = "en"
) -> list[Plain]:
    """Return the n most relevant diagnoses of each cluster for a λ."""
    profile = translated(downloads.shown_profile(folder, least), language)
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
                for i in profile.top(place, lam, n)
            ],
        }
        for place, cluster in enumerate(profile.clusters)
    ]


def compare(
    folders: tuple[str, str], least: int, follow: bool, workspace: str, language: str = "en"
) -> Plain:
    """Put two runs side by side, and ``follow`` the records of both."""
    compared = compare_runs(*folders, least, follow, cohorts.secret_of(workspace))
    comparison, one = compared.comparison, translated(compared.one, language)
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


def explain_texts(folder: str, least: int, texts: list[str], language: str = "en") -> Plain:
    """Explain where a record with some codes or words belongs; list the codes of unclear words."""
    profile = downloads.shown_profile(folder, least)
    found = resolve_codes(profile, texts)
    shown = translated(profile, language)
    choices = [
        {
            "text": text,
            "codes": [{"code": shown.codes[i], "label": shown.labels[i]} for i in places],
        }
        for text, places in found.choices
    ]
    if choices and not found.given:
        return {"posterior": None, "choices": choices}
    return _explain(profile, found.given, language) | {"choices": choices}


def _explain(profile: Profile, codes: Sequence[str], language: str) -> Plain:
    """Return where a record with some codes belongs, and the evidence of each for each cluster.

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
    """Return numbers as plain lists, with None for those that are suppressed."""
    plain = values.astype(object)
    plain[np.isnan(values)] = None
    return plain.tolist()


def _command(request: RunRequest) -> str:
    """Return the command that does the same, where there is one."""
    data = request.data
    if data.kind == "builtin" or request.within or request.spec.merge or request.spec.split:
        return ""
    source = Path(data.source)
    name = data.title + "".join(source.suffixes) if data.kind == "upload" else source.name
    outcomes = cohorts.chosen_outcomes(data, request.rules)
    return replace(
        request.spec,
        preparation=cohorts.preparation(data, request.rules),
        outcomes=None if outcomes is None else tuple(outcomes),
    ).words(name)
