"""Tasks: what the workers do. Plain values in, plain values out; files in the workspace."""

from __future__ import annotations

import shlex
import shutil
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from comorb.errors import InputError
from comorb.insight.profile.compare import compare
from comorb.insight.profile.profile import Profile
from comorb.insight.runs.assign import MODEL, assign_records
from comorb.insight.runs.folder import load_profile, places_of, rename, save_profile, write_text
from comorb.insight.runs.merging import grouped, merge
from comorb.insight.runs.run import Run, run
from comorb.insight.runs.stability import stability
from comorb.model.arrays import Floats
from comorb.model.estimator import BernoulliMixture
from comorb.records.cohort import Cohort
from comorb.records.preparation import Preparation
from comorb.storage import load_model
from comorb.web.worker import cohorts as reading
from comorb.web.worker import downloads, manual
from comorb.web.worker.cohorts import Plain
from comorb.web.worker.manual import BASE

Told = Callable[[Plain], None]
_SHOWN = "shown-{}.json"


def fit(task: Plain, told: Told) -> Plain:
    """Find the clusters of the records that a run asks for, and write its folder."""
    stages = iter(("reading", "finding", "describing"))
    told({"stage": "reading"})
    rules = reading.preparation(task["data"], task["rules"])
    cohort = reading.chosen_cohort(task)
    size = len(rules.select(cohort))
    reading.check_size(size, task["min_cell"])
    told({"records": size})
    if task["record"]:
        found, groups = manual.move(task), task["groups"]
    elif task["merge"]:
        found, groups = _merge(task, rules, cohort, told)
    else:
        groups = None
        found = run(
            cohort,
            task["k"],
            rules,
            title=task["title"],
            command=_command(task),
            outcomes=reading.outcomes(task["data"], cohort),
            repeats=0,
            earlier=[load_profile(folder) for folder in task["earlier"]],
            tell=lambda _: told({"stage": next(stages, "describing")}),
        )
    folder = Path(task["folder"])
    found.save(folder, force=True)
    _show(found.profile, folder, task["min_cell"])
    return {
        "records": found.profile.source.records,
        "features": found.profile.source.features,
        "clusters": found.profile.k,
        "groups": groups,
        "moved": len(manual.moves(folder)),
    }


def measure(task: Plain, _: Told) -> list[float] | None:
    """Return how stable each cluster of a run is, or None when there are too few records."""
    rules = reading.preparation(task["data"], task["rules"])
    cohort: Cohort = rules.drop(rules.select(reading.chosen_cohort(task)))
    mixture = load_model(Path(task["folder"]) / MODEL).mixture
    fitted = BernoulliMixture(mixture.n_components, init=mixture)
    fitted.fit(cohort.matrix, sample_weight=cohort.weights)
    try:
        found = stability(cohort.matrix, fitted, sample_weight=cohort.weights).jaccard
    except InputError:
        return None
    own = [0.0] * len(found)
    for place, value in zip(np.argsort(-mixture.weights, kind="stable"), found, strict=True):
        own[int(place)] = value
    return own


def note_stability(task: Plain, _: Told) -> None:
    """Write the stability of a run's clusters into its profile."""
    folder = Path(task["folder"])
    if task["stability"] is not None and folder.exists():
        about = load_profile(folder)
        about = about.with_stability(task["stability"])
        save_profile(about, folder)
        _show(about, folder, task["min_cell"])


def show(task: Plain, _: Told) -> None:
    """Write the profile of a run without small counts."""
    folder = Path(task["folder"])
    _show(load_profile(folder), folder, task["min_cell"])


def name_clusters(task: Plain, _: Told) -> None:
    """Give clusters of a run other names."""
    folder = Path(task["folder"])
    about = rename(folder, {int(number): name for number, name in task["names"].items()})
    _show(about, folder, task["min_cell"])


def explain(task: Plain, _: Told) -> Plain:
    """Say where a record with some codes belongs, and what each code says for each cluster."""
    full = load_profile(task["folder"])
    found = full.explain(task["codes"] or manual.codes_of(task))
    if not found.codes:
        raise InputError(
            "None of these is a diagnosis that the clusters know; give codes such as those in the "
            "charts above."
        )
    seen = ~np.isnan(full.suppressed(task["min_cell"]).means)
    places = [full.codes.index(code) for code in found.codes]
    return {
        "posterior": found.posterior.tolist(),
        "absent": [
            float(value) if all(seen[cluster, place] for place in places) else None
            for cluster, value in enumerate(found.base - found.base @ full.weights)
        ],
        "codes": [
            {
                "code": full.codes[place],
                "label": full.labels[place],
                "speaks": [
                    float(value) if seen[cluster, place] else None
                    for cluster, value in enumerate(found.contributions[row])
                ],
            }
            for row, place in enumerate(places)
        ],
        "unknown": list(found.unknown),
    }


def relevance(task: Plain, _: Told) -> list[Plain]:
    """Return the most relevant diagnoses of each cluster for a λ."""
    about = load_profile(task["folder"]).suppressed(task["min_cell"])
    return [
        {
            "cluster": cluster.number,
            "name": cluster.name,
            "diagnoses": [
                {
                    "code": about.codes[i],
                    "label": about.labels[i],
                    "share": float(about.prevalence[place, i]),
                    "lift": float(about.lift[place, i]),
                }
                for i in about.top(place, task["lambda"], task["n"])
            ],
        }
        for place, cluster in enumerate(about.clusters)
    ]


def assign_new(task: Plain, _: Told) -> None:
    """Write the cluster of each new record to a file."""
    assign_records(task["folder"], task["records"]).save(task["path"])


def compare_runs(task: Plain, _: Told) -> Plain:
    """Put two runs side by side; records that both have are followed from one to the other."""
    folders = [Path(folder) for folder in task["folders"]]
    one, two = (load_profile(folder).suppressed(task["min_cell"]) for folder in folders)
    labels = shared = None
    if task["same_data"]:
        tables = [reading.assignments(folder).select(["id", "cluster"]) for folder in folders]
        both = tables[0].join(tables[1], "id", join_type="inner", right_suffix=" b")
        shared = both.num_rows
        if shared >= max(task["min_cell"], 2):
            first, second = (both[name].to_numpy() for name in ("cluster", "cluster b"))
            labels = places_of(one, first), places_of(two, second)
    found = compare(one, two, labels)
    place = {code: column for column, code in enumerate(one.codes)}
    differences = np.nan_to_num(np.abs(found.differences))
    most = np.argsort(-differences.max(axis=0, initial=0), kind="stable")[:25]
    return {
        "pairs": [list(pair) for pair in found.pairs],
        "ari": found.ari,
        "shared": shared if labels is not None else None,
        "flows": None if found.flows is None else _holed(found.flows),
        "step": found.step,
        "codes": [
            {
                "code": found.codes[i],
                "label": one.labels[place[found.codes[i]]],
                "differences": _holed(found.differences[:, i]),
            }
            for i in most
        ],
    }


def _holed(values: Floats) -> Any:
    """Return numbers as plain lists, with None for those that are hidden."""
    plain = values.astype(object)
    plain[np.isnan(values)] = None
    return plain.tolist()


def _show(about: Profile, folder: Path, least: int) -> None:
    path = folder / _SHOWN.format(least)
    write_text(about.suppressed(least).to_json(), path)
    for other in set(folder.glob(_SHOWN.format("*"))) - {path}:
        other.unlink()


def _merge(
    task: Plain, rules: Preparation, cohort: Cohort, told: Told
) -> tuple[Run, Sequence[int]]:
    """Make two clusters of the run before one; the model as it was fitted goes along."""
    told({"stage": "describing"})
    before, folder = Path(task["parent"]), Path(task["folder"])
    base = before / BASE if (before / BASE).exists() else before / MODEL
    like = load_profile(before)
    groups = grouped(task["groups"] or like.numbers, tuple(task["merge"]))
    chosen = rules.drop(rules.select(cohort))
    found = merge(load_model(base), groups, chosen, like, reading.outcomes(task["data"], chosen))
    shutil.copyfile(base, folder / BASE)
    return found, groups


def _command(task: Plain) -> str:
    """Return the command that does the same, where there is one."""
    data, rules = task["data"], task["rules"]
    if data["kind"] == "builtin" or task["within"] or task["merge"]:
        return ""
    source = Path(data["source"])
    name = data["title"] + "".join(source.suffixes) if data["kind"] == "upload" else source.name
    words = ["comorb", "fit", name, "-k", str(task["k"])]
    for rule in ("level", "having", "without", "drop_codes"):
        words += [part for code in rules.get(rule, ()) for part in (_option(rule), code)]
    for rule in ("age", "dates"):
        if rules.get(rule):
            low, high = (
                "" if end is None else f"{end:g}" if rule == "age" else end for end in rules[rule]
            )
            words += ["--where", f"{rule}={low}:{high}"]
    if rules.get("sex"):
        words += ["--where", f"sex={','.join(rules['sex'])}"]
    words += ["--at-least", str(rules.get("at_least", 3))]
    return shlex.join(words)


def _option(rule: str) -> str:
    return f"--{rule.replace('_', '-')}"


TASKS: dict[str, Callable[[Plain, Told], Any]] = {
    "understand": lambda task, _: reading.understand(task),
    "codes": lambda task, _: reading.list_codes(task),
    "size": lambda task, _: reading.measure_size(task),
    "fit": fit,
    "measure": measure,
    "note_stability": note_stability,
    "show": show,
    "name_clusters": name_clusters,
    "explain": explain,
    "relevance": relevance,
    "assign": assign_new,
    "compare": compare_runs,
    "download": lambda task, _: downloads.write(task),
}
