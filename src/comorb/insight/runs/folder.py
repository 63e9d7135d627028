"""Saved: what is done with the folder of a run: read, rename, report, compare."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv as pa_csv

from comorb.errors import InputError, StorageError
from comorb.insight.profile.compare import Comparison, compare
from comorb.insight.profile.profile import Profile
from comorb.insight.runs.assign import MODEL
from comorb.insight.views.pdf import report_pdf
from comorb.insight.views.report import report
from comorb.model.arrays import Ints
from comorb.storage import check_file, load_model, save_model, write_folder, write_whole

ASSIGNMENTS, PROFILE, REPORT = "assignments.csv", "profile.json", "report.html"


@dataclass(frozen=True, eq=False)
class Compared:
    """Two profiles and what sets them apart."""

    one: Profile
    two: Profile
    comparison: Comparison


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
    """Give clusters of a saved run other names, by their numbers, in all its files."""
    directory = Path(directory)
    about = load_profile(directory)
    about = about.renamed({place_of(about, number): name for number, name in names.items()})
    model = replace(load_model(directory / MODEL), clusters=names_of(about))
    with write_folder(directory, force=True) as folder:
        save_model(model, folder / MODEL)
        save_profile(about, folder)
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
        found = _shared_numbers(Path(one) / ASSIGNMENTS, Path(two) / ASSIGNMENTS)
        labels = found and (places_of(a, found[0]), places_of(b, found[1]))
    a, b = a.suppressed(min_cell), b.suppressed(min_cell)
    return Compared(a, b, compare(a, b, labels))


def _shared_numbers(one: Path, two: Path) -> tuple[Ints, Ints] | None:
    if not (one.is_file() and two.is_file()):
        return None
    types = pa_csv.ConvertOptions(column_types={"id": pa.string(), "cluster": pa.int64()})
    first, second = (
        pa_csv.read_csv(path, convert_options=types).sort_by("id") for path in (one, two)
    )
    if first["id"] != second["id"]:
        return None
    return first["cluster"].to_numpy(), second["cluster"].to_numpy()


def save_profile(about: Profile, folder: Path) -> None:
    """Write a profile and its report to a folder."""
    write_text(about.to_json(), folder / PROFILE)
    write_text(report(about), folder / REPORT)


def write_text(text: str, path: str | Path) -> None:
    """Write a text as UTF-8, whole or not at all."""
    with write_whole(path) as file:
        file.write(text.encode())


def names_of(about: Profile) -> tuple[str, ...]:
    """Return the names of the clusters."""
    return tuple(cluster.name for cluster in about.clusters)


def place_of(about: Profile, number: int) -> int:
    """Return the place of the cluster of a number."""
    if number not in about.numbers:
        known = ", ".join(map(str, about.numbers))
        raise InputError(f"expected one of the clusters {known}, got {number}")
    return about.numbers.index(number)


def places_of(about: Profile, numbers: Ints) -> Ints:
    """Return the places of the clusters of many numbers, all of them known."""
    return np.searchsorted(about.numbers, numbers)
