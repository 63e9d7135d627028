"""Five million records with 10 outcomes and 3 predictors, related to clusters in bounded memory.

``python -m benchmarks relate_scale`` writes a cohort file, relates it in a process of its own and
prints the time and the largest memory that the process ever held.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import pyarrow as pa

from benchmarks.table import Figure, show
from comorb.model.blocks import workers
from comorb.model.mixture import Mixture
from comorb.records.cohort import Cohort
from comorb.records.cohort_file import CohortFile, as_table, header_of, write_parts
from comorb.records.ledger import Ledger
from comorb.runs.relate import Question, relate_cohort

RECORDS, CODES, CLUSTERS, PART = 5_000_000, 100, 5, 1 << 17
OUTCOMES = tuple(f"outcome_{at}" for at in range(10))
LEADING = ("age", "sex", "income")


def truth():
    rng = np.random.default_rng(1)
    base = rng.beta(0.5, 6, CODES)
    means = np.clip(base * rng.gamma(0.7, 1.5, (CLUSTERS, CODES)), 0.002, 0.9)
    return Mixture(np.full(CLUSTERS, 1 / CLUSTERS), means)


def part(model, size, seed):
    rng = np.random.default_rng(seed)
    matrix, labels = model.sample(size, rng)
    columns = {
        "age": rng.normal(60 + 3 * labels, 10),
        "sex": np.where(rng.random(size) < 0.4 + 0.05 * labels, "female", "male"),
        "income": rng.gamma(2.0, 1.0 + 0.1 * labels),
    }
    for at, name in enumerate(OUTCOMES):
        drawn = rng.normal(labels, 2.0) if at % 2 else rng.random(size) < 0.05 * (1 + labels)
        columns[name] = drawn
    codes = tuple(f"c{at}" for at in range(CODES))
    ids = pa.array([str(at) for at in range(size)])
    ledger = Ledger.start(size, CODES)
    return Cohort(matrix, ids, codes, codes, "opaque", "full", pa.table(columns), ledger)


def write(path, records):
    model = truth()
    sizes = [PART] * (records // PART) + ([records % PART] if records % PART else [])
    parts = (part(model, size, at) for at, size in enumerate(sizes))
    header = header_of(part(model, 1, 0)) | {"ledger": Ledger.start(records, CODES).to_dict()}
    write_parts((as_table(one) for one in parts), path, lambda: header)


def relate(path):
    """Relate the file, and print seconds and the most memory in GB, for the process above."""
    import resource

    started = time.perf_counter()
    with workers(-1) as executor:
        question = Question(outcomes=OUTCOMES, predictors=LEADING)
        found = relate_cohort(CohortFile.open(path), truth(), question, executor=executor)
    most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    naive, corrected = (
        getattr(found.outcomes[1].relation, name)[-1] for name in ("naive", "means")
    )
    figures = {"seconds": time.perf_counter() - started, "memory": most}
    print(json.dumps(figures | {"naive": float(naive), "corrected": float(corrected)}))


def main(records=RECORDS):
    """Print what the largest set takes."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "cohort.parquet"
        write(path, records)
        words = [sys.executable, "-m", "benchmarks.relate_scale", "relate", str(path)]
        done = subprocess.run(words, capture_output=True, text=True, check=True)
        found = json.loads(done.stdout)
        print(f"{records:,} records, {path.stat().st_size / 1e9:.2f} GB on the disk: {found}")
        figures = [Figure("memory", found["memory"], 2.0, False, " GB")]
        show("Relations at scale", figures)


if __name__ == "__main__":
    if sys.argv[1:2] == ["relate"]:
        relate(sys.argv[2])
    else:
        main(*map(int, sys.argv[1:2]))
