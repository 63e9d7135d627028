"""The folder of a run: the names of its files, read and written in one place."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

import pyarrow as pa
import pyarrow.csv as pa_csv

from comorb.errors import StorageError
from comorb.insight.profile.profile import Profile
from comorb.insight.views.pdf import report_pdf
from comorb.insight.views.report import report
from comorb.records.export import export
from comorb.storage import (
    SavedModel,
    check_file,
    load_model,
    save_model,
    write_folder,
    write_text,
    write_whole,
)

PROFILE = "profile.json"


@dataclass(frozen=True)
class RunFolder:
    """Where the files of a run are.

    ``base`` is the model before clusters were merged by hand, ``moved`` the records that were
    moved by hand: both are there only where that was done.
    """

    path: Path

    @classmethod
    @contextmanager
    def write(cls, directory: str | Path, force: bool = False) -> Iterator[RunFolder]:
        """Yield a folder whose files move to ``directory`` when the block ends well."""
        with write_folder(directory, force) as draft:
            yield cls(draft)

    @property
    def model(self) -> Path:
        """The model file."""
        return self.path / "model.comorb"

    @property
    def base(self) -> Path:
        """The model file as it was fitted, before clusters were merged by hand."""
        return self.path / "base.comorb"

    @property
    def moved(self) -> Path:
        """The records that were moved by hand."""
        return self.path / "moved.csv"

    @property
    def assignments(self) -> Path:
        """The cluster of each record."""
        return self.path / "assignments.csv"

    @property
    def profile(self) -> Path:
        """The profile, as JSON."""
        return self.path / PROFILE

    @property
    def report(self) -> Path:
        """The report, as one HTML file."""
        return self.path / "report.html"

    def shown(self, min_cell: int) -> Path:
        """Return the profile without counts below ``min_cell``, as JSON."""
        return self.path / f"shown-{min_cell}.json"

    def all_shown(self) -> list[Path]:
        """Return every profile without small counts that is there, whatever the threshold."""
        return list(self.path.glob("shown-*.json"))

    def save_assignments(self, batches: Iterable[pa.RecordBatch]) -> None:
        """Write the cluster of each record, batch by batch."""
        export(batches, self.assignments)

    def save_model(self, model: SavedModel) -> None:
        """Write the model."""
        save_model(model, self.model)

    def save_profile(self, profile: Profile) -> None:
        """Write a profile and its report."""
        text = profile.to_json()
        write_text(text, self.profile)
        write_text(report(profile, text), self.report)

    def load_assignments(self) -> pa.Table:
        """Read the number of the cluster of each record, and its confidence."""
        types = {"id": pa.string(), "cluster": pa.int64(), "confidence": pa.float64()}
        options = pa_csv.ConvertOptions(column_types=types)
        return pa_csv.read_csv(self.assignments, convert_options=options)


def load_run_model(run: str | Path) -> SavedModel:
    """Read the model of a run, from its folder or from the file itself."""
    return load_model(RunFolder(Path(run)).model if Path(run).is_dir() else run)


def load_profile(run: str | Path) -> Profile:
    """Read the profile of a run, from its folder or from the file itself."""
    path = RunFolder(Path(run)).profile if Path(run).is_dir() else Path(run)
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
    profile = load_profile(directory)
    profile = profile.renamed({profile.place_of(number): name for number, name in names.items()})
    model = replace(load_run_model(directory), clusters=profile.cluster_names)
    with RunFolder.write(directory, force=True) as folder:
        folder.save_model(model)
        folder.save_profile(profile)
    return profile


def write_report(run: str | Path, path: str | Path, min_cell: int = 0, force: bool = False) -> None:
    """Write the report of a saved run to an HTML or PDF file, without counts under ``min_cell``."""
    path = Path(path)
    check_file(path, (".html", ".pdf"), force)
    profile = load_profile(run).suppressed(min_cell)
    if path.suffix.lower() == ".pdf":
        with write_whole(path) as file:
            report_pdf(profile, file)
    else:
        write_text(report(profile), path)
