"""The endings of the files that can be read; what a file is, its content says."""

from __future__ import annotations

import re

ENDINGS = (
    *("csv", "tsv", "txt", "tab", "dat", "psv", "parquet", "pq", "arrow", "feather", "ipc"),
    *("json", "ndjson", "jsonl", "xlsx", "xlsm", "xlsb", "xls", "ods"),
    *("sas7bdat", "xpt", "dta", "sav", "zsav", "por", "zip"),
)
_NAME = re.compile(
    rf"(?P<stem>.*)(?P<ending>\.({'|'.join(ENDINGS)})(\.gz|\.zst|\.gzip)?)$", re.IGNORECASE
)


def ending_of(file: str) -> str:
    """Return the ending of a file that can be read, such as '.csv.gz', in small letters, or ''."""
    name = _NAME.match(file)
    return name["ending"].lower() if name else ""


def table_name(file: str) -> str:
    """Return a file's name without its endings: 'VISITS.csv.gz' is the table 'VISITS'."""
    name = _NAME.match(file)
    return (name["stem"] if name else "") or file
