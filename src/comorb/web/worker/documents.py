"""Documents: the profile of a run as its pages read it, in full or protected, kept as files.

The server asks where they are and the worker writes them, so what is heavy is imported there.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from comorb.web.worker.messages import OfRun, ShowProfile

if TYPE_CHECKING:
    from comorb.insight.profile.profile import Profile


def document(folder: str | Path, min_cell: int, language: str = "en") -> Path:
    """Return where a run's profile is, protected below a count, or in full with 0."""
    name = f"page-protected-{min_cell}" if min_cell else "page-full"
    return Path(folder) / (f"{name}.json" if language == "en" else f"{name}-{language}.json")


def shown_profile(task: OfRun) -> Profile:
    """Return the profile that a task may tell of; one that can't be protected is refused."""
    from comorb.insight.runs.folder import load_profile

    full = load_profile(task.folder)
    return full.protected(task.min_cell) if task.min_cell else full


def write(task: ShowProfile) -> None:
    """Write the document that a task asks for."""
    from comorb.insight.views.findings import page_json
    from comorb.storage import write_text

    text = page_json(shown_profile(task), task.language)
    write_text(text, document(task.folder, task.min_cell, task.language))


def renew(folder: str, profile: Profile, min_cell: int) -> None:
    """Write the documents of a profile that is new or changed, and remove others of the run.

    One that was described by an earlier version, without keys, has a full document alone.
    """
    from comorb.insight.views.findings import page_json
    from comorb.storage import write_text

    paths = [document(folder, 0)]
    write_text(page_json(profile), paths[0])
    if profile.cells is not None:
        paths.append(document(folder, min_cell))
        write_text(page_json(profile.protected(min_cell)), paths[1])
    for old in set(Path(folder).glob("page-*.json")) - set(paths):
        old.unlink()
