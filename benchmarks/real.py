"""Real records for benchmarks: the discharge survey of 2010, SynPUF claims, and small tables."""

from __future__ import annotations

import csv
import gzip
from functools import cache, partial
from pathlib import Path

import numpy as np
from scipy import sparse

SHARED = Path(__file__).parents[2] / "shared" / "data"
FEWEST = 3  # different codes in a record
SUBSETS = {
    "heart failure": ("428",),
    "diabetes": ("250",),
    "COPD": ("491", "492", "496"),
    "stroke": ("434",),
    "births": tuple(f"V{n}" for n in range(30, 40)),
    "psychiatric": tuple(str(n) for n in range(290, 320)),
    "renal": ("585",),
}


def category(code):
    """Return the ICD-9 category of a code without dots: three characters, four after an E."""
    return code[: 4 if code.startswith("E") else 3]


@cache
def coded(name, prefix):
    """Return the codes of each record of a shared file, in the order they stand there."""
    with gzip.open(SHARED / f"{name}.csv.gz", "rt") as file:
        reader = csv.reader(file)
        header = next(reader)
        places = [i for i, title in enumerate(header) if title.startswith(prefix)]
        return [[category(row[i]) for i in places if row[i]] for row in reader]


def matrix_of(records, fewest=FEWEST):
    """Return the 0/1 matrix of records with enough different codes; a column is a code."""
    records = [sorted(set(record)) for record in records]
    records = [record for record in records if len(record) >= fewest]
    codes = sorted({code for record in records for code in record})
    place = {code: i for i, code in enumerate(codes)}
    indices = np.array([place[code] for record in records for code in record], dtype=np.int32)
    indptr = np.concatenate([[0], np.cumsum([len(record) for record in records])])
    ones = np.ones(indices.size)
    return sparse.csr_array((ones, indices, indptr), shape=(len(records), len(codes)))


def discharges(subset=None, first=None):
    """Return NHDS 2010: all, or those with a code of a subset; the ``first`` codes of each."""
    records = coded("nhds2010", "dx")
    if subset is not None:
        wanted = set(SUBSETS[subset])
        records = [record for record in records if not wanted.isdisjoint(record)]
    if first is not None:
        return matrix_of([record[:first] for record in records], fewest=1)
    return matrix_of(records)


def claims():
    """Return the inpatient claims of SynPUF."""
    return matrix_of(coded("synpuf_inpatient", "ICD9_DGNS_CD_"))


def vermont():
    """Return the discharges of Vermont."""
    return matrix_of(coded("zoo/vermont/vermont_dx", "DX"))


def admissions():
    """Return the admissions of Rio Grande do Sul, with two different codes or more."""
    records = coded("zoo/brazil_sih/RDRS2019", "DIAG")
    return matrix_of([[code for code in record if code != "000"] for record in records], fewest=2)


def long_table(name, person, code):
    """Return the records of a table with a row for each code of a person, 3 characters of it."""
    records = {}
    with gzip.open(SHARED / "zoo" / f"{name}.csv.gz", "rt") as file:
        for row in csv.DictReader(file):
            if row.get("dx", "1") == "1" and row.get("icdv", "9") == "9":
                records.setdefault(row[person], []).append(code(row))
    return matrix_of(list(records.values()))


# The numbers of the first four were looked at when the rules of the choice were made.
SEEN = {name: partial(discharges, name) for name in ("heart failure", "COPD", "births", "stroke")}
UNSEEN = {
    "renal": partial(discharges, "renal"),
    "diabetes": partial(discharges, "diabetes"),
    "SynPUF": claims,
    "Vermont": vermont,
    "Rio Grande do Sul": admissions,
    "eunomia": partial(
        long_table, "eunomia/CONDITION_ERA", "PERSON_ID", lambda row: row["CONDITION_CONCEPT_ID"]
    ),
}
SETS = SEEN | UNSEEN


def small_table(name, items):
    """Return a table of yes/no items, 2 for yes, as a 0/1 matrix."""
    with (SHARED / "lca" / f"{name}.csv").open() as file:
        rows = list(csv.reader(file))[1:]
    return np.array([[value == "2" for value in row[:items]] for row in rows], dtype=int)
