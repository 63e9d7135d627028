"""Places: in which file of a cohort each row group is, and how many records it has."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

from comorb.errors import StorageError
from comorb.remote import Remote, opened, place_of


def places_of(path: str | Path | Remote, header: dict[str, Any]) -> list[tuple[str, int]]:
    """Return the file and the number there of each row group of a cohort."""
    sizes = sizes_of(path, header)
    return [(file, number) for file, groups in sizes.items() for number in range(len(groups))]


def sizes_of(path: str | Path | Remote, header: dict[str, Any]) -> dict[str, list[int]]:
    """Return how many records are in each row group of each file of a cohort."""
    path = place_of(path).resolve()
    try:
        if "parts" in header:
            sizes = {str(path / part["file"]): part["groups"] for part in header["parts"]}
        else:
            with opened(path) as source:
                file = pq.read_metadata(source)
            sizes = {str(path): [file.row_group(i).num_rows for i in range(file.num_row_groups)]}
        if sum(map(sum, sizes.values())) != header["records"]:
            raise ValueError("it doesn't hold the records it says")
    except StorageError:
        raise
    except (KeyError, TypeError, ValueError) as error:
        raise StorageError(f"{path.name} is damaged: {error}. Write the cohort again.") from None
    return sizes
