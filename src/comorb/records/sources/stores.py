"""Stores: records by an address such as s3://bucket/claims become files on the disk."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from comorb.errors import RecordsError
from comorb.records.sources.delta import LOG
from comorb.records.sources.endings import ending_of
from comorb.remote import Remote, matching, place_of


def data_in(place: Path | Remote) -> dict[str, Remote]:
    """Return the data files of a file, a folder or a pattern in a store, by their relative names.

    The log of a Delta table is among them, as it tells which of the others count.
    """
    assert isinstance(place, Remote)  # noqa: S101 - nobody asks of paths
    root, found = matching(place)
    names = {one.uri[len(root.uri) + 1 :]: one for one in found}
    kept = {name: one for name, one in names.items() if _is_data(name.split("/"))}
    if not kept:
        raise RecordsError(f"There are no records at {place}; check the address.")
    return kept


def data_of(places: Sequence[str | Path | Remote]) -> dict[str, Remote]:
    """Return the data files of a list of places in a store, each in a folder of its own number."""
    files = [file for one in places for file in data_in(place_of(one)).values()]
    return {f"{number}/{file.name}": file for number, file in enumerate(files)}


def fetch_list(places: Sequence[str | Path | Remote], folder: Path) -> list[Path]:
    """Copy those of several places that are in a store to a folder, and return where all are."""
    found = []
    for number, one in enumerate(places):
        place = place_of(one)
        if isinstance(place, Remote):
            place = fetch_records(place, folder / str(number))
        found.append(place)
    return found


def fetch_records(place: Path | Remote, folder: Path) -> Path:
    """Copy records from a store to a folder, and return where they are, under the same name."""
    files = data_in(place)
    root = folder / place.name.replace("*", "all")
    if list(files) == [place.name]:
        files[place.name].fetch(root)
        return root
    for name, one in files.items():
        one.fetch(root / name)
    return root


def _is_data(steps: list[str]) -> bool:
    if LOG in steps:
        return True
    return not any(step.startswith((".", "_")) for step in steps) and bool(ending_of(steps[-1]))
