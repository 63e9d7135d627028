"""Burden, slices and rules of very many records: memory of the whole run, in a process of its own.

``python -m benchmarks.burden``: 5 million records with ten outcomes in a cohort file, fitted,
assigned, added up and sliced.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
import pyarrow as pa

from benchmarks.table import Figure, show
from comorb.model.mixture import Mixture
from comorb.records.cohort import Cohort
from comorb.records.cohort_file import as_table, header_of, write_parts
from comorb.records.ledger import Ledger

RECORDS, PART, CODES = 5_000_000, 100_000, 60
FIT = """
import resource, sys
from comorb.runs.run import Request, fit_records
made = fit_records(sys.argv[1], sys.argv[2], Request(3, repeats=0, secret=bytes(32)), memory="2GB")
assert made.burden.records[-1] == int(sys.argv[3])
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20)
"""


def part(number):
    """Return some simulated records with eight amounts and two answers of yes or no."""
    rng = np.random.default_rng(number)
    means = np.where(np.random.default_rng(0).random((3, CODES)) < 0.15, 0.4, 0.04)
    matrix, labels = Mixture(np.array([0.5, 0.3, 0.2]), means).sample(PART, number)
    sites = np.array([f"h{place}" for place in range(12)])
    columns = {
        "age": rng.integers(0, 95, PART).astype(float),
        "sex": np.where(rng.random(PART) < 0.5, "female", "male"),
        "site": sites[rng.integers(0, 12, PART)],
        "date": pa.array(rng.integers(14_000, 15_800, PART), pa.int32()).cast(pa.date32()),
        "los": rng.poisson(4 + 2 * labels).astype(float),
        "cost": rng.lognormal(8 + labels / 3, 1, PART),
        "died": rng.random(PART) < 0.02 * (1 + labels),
        "readmitted": rng.random(PART) < 0.1,
        **{f"charges_{place}": rng.lognormal(5, 1, PART) for place in range(6)},
    }
    codes = tuple(f"c{place}" for place in range(CODES))
    ids = pa.array([f"p{number * PART + row}" for row in range(PART)])
    ledger = Ledger.start(PART, CODES)
    return Cohort(matrix, ids, codes, codes, "opaque", "full", pa.table(columns), ledger)


def main():
    """Print the peak memory of a run over the file."""
    with tempfile.TemporaryDirectory() as folder:
        path, run = Path(folder) / "cohort.parquet", Path(folder) / "run"
        header = header_of(part(0)) | {"ledger": Ledger.start(RECORDS, CODES).to_dict()}
        parts = (as_table(part(number)) for number in range(RECORDS // PART))
        write_parts(parts, path, lambda: header)
        words = [sys.executable, "-c", FIT, str(path), str(run), str(RECORDS)]
        peak = float(subprocess.run(words, check=True, capture_output=True, text=True).stdout)
    name = "5 million records with ten outcomes, fitted, added up and sliced: memory"
    show("Burden", [Figure(name, peak, 2.0, False, " GB")])


if __name__ == "__main__":
    main()
