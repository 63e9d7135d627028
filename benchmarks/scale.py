"""Scale: engines against memory, cost per record, and a run larger than memory.

``python -m benchmarks scale`` compares engines in one run; ``python -m benchmarks.scale large
50000000`` writes a simulated region to a temporary folder and makes the whole run on it;
``assign 10000000`` scores one; ``cluster 10000000 spark://HOST:7077`` fits one on an engine.
"""

from __future__ import annotations

import os
import resource
import sys
import tempfile
import time
from collections.abc import Iterator
from concurrent.futures import Executor, ProcessPoolExecutor
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from multiprocessing import get_context
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq

from benchmarks.table import Figure, best_of, show
from comorb.engines import open_blocks, open_engine
from comorb.engines.spark_engine import SparkEngine
from comorb.model.blocks import Blocks, from_csr, workers
from comorb.model.em import expect
from comorb.model.mixture import Mixture
from comorb.records.cohort_file import load_cohort
from comorb.records.datasets import region
from comorb.records.stream import write_cohort

CLUSTERS = 11
RECORDS = 2_000_000


def write_region(path: Path, n: int) -> None:
    """Write n records of a simulated region, block by block."""
    batches = region(n)
    first = next(batches)
    with pq.ParquetWriter(path, first.schema, compression="zstd") as writer:
        writer.write_batch(first)
        for batch in batches:
            writer.write_batch(batch)


def cohort_of(folder: Path, n: int) -> Path:
    source, path = folder / f"region-{n}.parquet", folder / f"cohort-{n}.parquet"
    write_region(source, n)
    write_cohort(source, path, memory="2GB")
    source.unlink()
    return path


def mixture(d: int) -> Mixture:
    rng = np.random.default_rng(0)
    weights = rng.dirichlet(np.full(CLUSTERS, 5.0))
    return Mixture(weights, rng.uniform(0.001, 0.05, (CLUSTERS, d)))


def seconds(blocks: Blocks, executor: Executor | None, repeats: int = 3) -> float:
    """Return the time of one pass: an E-step over all rows."""
    model = mixture(blocks.n_columns)
    return best_of(lambda: expect(model, blocks, executor), repeats)


def read(blocks: Blocks) -> None:
    for load in blocks.loaders:
        load()


@contextmanager
def processes(count: int) -> Iterator[Executor]:
    with ProcessPoolExecutor(count, get_context("spawn")) as pool:
        yield pool


def engines(path: Path) -> list[Figure]:
    """Compare the engines on one file, each figure a ratio in this run."""
    blocks = open_blocks(path)
    held = load_cohort(path)
    matrix = held.matrix
    inside = from_csr(matrix.indptr, matrix.indices, matrix.shape[1])
    million = blocks.n_rows / 1e6
    with workers(2) as pool:
        memory, file = seconds(inside, pool), seconds(blocks, pool)
    bare = best_of(lambda: read(blocks), 3) / 2
    figures = [
        Figure(
            f"a pass from the file ({file / million:.2f} s a million) to memory + read",
            file / (memory + bare),
            1.5,
            at_least=False,
        ),
        *scaling("threads", blocks, seconds(blocks, None), seconds(half(blocks), None), file),
    ]
    with processes(1) as one, processes(2) as two:
        both = seconds(blocks, two)
        alone, part = seconds(blocks, one), seconds(half(blocks), one)
        figures += scaling("processes", blocks, alone, part, both)
    figures.append(overhead("processes", both, file, million))
    with open_engine("dask") as engine:
        figures.append(overhead("dask", seconds(blocks, engine), file, million))
    return figures + (spark_figures(path, file) if _has_spark() else [])


def spark_figures(path: Path, file: float) -> list[Figure]:
    """Compare a pass on Spark with two threads, and with one of MLlib's k-means on cached rows.

    Both are in one session whose Java compiles as it does by itself: MLlib computes there.
    """
    from pyspark.ml.clustering import KMeans
    from pyspark.ml.linalg import Vectors, VectorUDT
    from pyspark.sql import functions as f

    def kmeans(passes: int) -> KMeans:
        return KMeans(k=CLUSTERS, maxIter=passes, tol=0.0, seed=0, initMode="random")

    blocks = open_blocks(path)
    million, d = blocks.n_rows / 1e6, blocks.n_columns
    os.environ["SPARK_SUBMIT_OPTS"] = ""
    with open_engine("local[2,4]") as engine:
        assert isinstance(engine, SparkEngine)
        taken = seconds(blocks, engine)
        before = engine.received
        expect(mixture(d), blocks, engine)
        print(f"{engine.received - before:,} bytes came back from a pass on Spark")
        vector = VectorUDT()
        sparse = f.udf(
            lambda ones: Vectors.sparse(d, ones, [1.0] * len(ones)), vector, useArrow=False
        )
        frame = engine.session.read.parquet(str(path))
        rows = frame.select(sparse("`comorb.codes`").alias("features")).cache()
        rows.count()
        few, many = (best_of(partial(kmeans(n).fit, rows), 3) for n in (1, 6))
        taken = min(taken, seconds(blocks, engine))
    one = (many - few) / 5
    return [
        overhead("local[2,4]", taken, file, million),
        Figure("a pass on Spark to one of MLlib KMeans", taken / one, 1, False),
    ]


def scaling(name: str, blocks: Blocks, alone: float, part: float, both: float) -> list[Figure]:
    """Compare two workers with one on the same rows, and with one on half of them."""
    share = len(half(blocks).loaders) / len(blocks.loaders)
    return [
        Figure(f"strong scaling: 2 {name} against 1 on the same rows", alone / both, 1.5),
        Figure(
            f"weak scaling: 1 of the {name} on half of the rows against 2 on all",
            part / (2 * share) / both,
            0.75,
        ),
    ]


def overhead(name: str, taken: float, file: float, million: float) -> Figure:
    label = f"2 workers of {name} ({taken / million:.2f} s a million) to 2 threads"
    return Figure(label, taken / file, 3.0, at_least=False)


def half(blocks: Blocks) -> Blocks:
    return replace(blocks, loaders=blocks.loaders[: len(blocks.loaders) // 2])


def flat(folder: Path, sizes: tuple[int, ...]) -> list[Figure]:
    """Compare the time per record of a pass over files of several sizes."""
    each = {}
    with workers(2) as pool:
        for n in sizes:
            path = cohort_of(folder, n)
            each[n] = seconds(open_blocks(path), pool) / n
            path.unlink()
    first = each[sizes[0]]
    return [
        Figure(
            f"time per record of a pass, {n:,} records to {sizes[0]:,}", each[n] / first, 1.2, False
        )
        for n in sizes[1:]
    ]


def large(n: int, memory: str = "2GB") -> None:
    """Write a region of n records, make the whole run on it, and print what it took."""
    from comorb.runs.progress import Progress
    from comorb.runs.run import Request, fit_records
    from comorb.storage import load_model

    with tempfile.TemporaryDirectory(prefix="comorb-bench-") as name:
        folder = Path(name)
        write_region(folder / "region.parquet", n)
        began = time.perf_counter()

        def report(progress: Progress) -> None:
            spent = time.perf_counter() - began
            print(f"{spent:8.1f} s {_peak():5.2f} GB  {progress.text}", flush=True)

        request = Request(CLUSTERS, repeats=0)
        fit_records(
            folder / "region.parquet", folder / "run", request, memory=memory, report=report
        )
        report(Progress("writing", "done"))
        print(load_model(folder / "run" / "model.comorb").run)


def assign(n: int, memory: str = "1GB") -> None:
    """Write a region of n records, score it in parts, and print what it took."""
    from comorb.runs.assign import assign_records
    from comorb.runs.run import Request, fit_records

    with tempfile.TemporaryDirectory(prefix="comorb-bench-") as name:
        folder = Path(name)
        write_region(folder / "some.parquet", 50_000)
        fit_records(folder / "some.parquet", folder / "run", Request(5, repeats=0))
        write_region(folder / "all.parquet", n)
        began = time.perf_counter()
        out = folder / "out.parquet"
        assign_records(folder / "run", folder / "all.parquet", out, memory=memory)
        print(f"{n:,} records: {time.perf_counter() - began:.1f} s, peak {_peak():.2f} GB")


def cluster(n: int, engine: str = "spark") -> None:
    """Fit n records here and on an engine; print what comes back of each pass, and both hashes."""
    from hashlib import sha256

    from comorb import BernoulliMixture
    from comorb.engines import FileJournal

    class Watched(FileJournal):
        def begin(self) -> None:
            super().begin()
            self.began, self.before = time.perf_counter(), getattr(executor, "received", 0)

        def keep(self, key: bytes, result: object) -> None:
            super().keep(key, result)
            spent = time.perf_counter() - self.began
            came = getattr(executor, "received", 0) - self.before
            print(
                f"{name}: pass {self.passes}, {spent:.1f} s, {came:,} bytes came back", flush=True
            )

    with tempfile.TemporaryDirectory(prefix="comorb-bench-") as folder:
        path = cohort_of(Path(folder), n)
        for name in ("threads", engine):
            with open_engine(name) as executor:
                model = BernoulliMixture(CLUSTERS).fit_blocks(
                    open_blocks(path, Watched()), executor
                )
            bits = sha256(model.weights_.tobytes() + model.means_.tobytes()).hexdigest()
            print(f"{name}: {bits[:16]}, peak {_peak():.2f} GB")


def _peak() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20


def _has_spark() -> bool:
    import importlib.util
    import shutil

    return importlib.util.find_spec("pyspark") is not None and shutil.which("java") is not None


def main(n: int = RECORDS) -> None:
    """Measure and print."""
    with tempfile.TemporaryDirectory(prefix="comorb-bench-") as name:
        folder = Path(name)
        figures = engines(cohort_of(folder, n))
        figures += flat(folder, (100_000, 1_000_000, 10_000_000) if n >= RECORDS else (n // 2, n))
    show("Scale", figures)


if __name__ == "__main__":
    parts = {"large": large, "assign": assign, "cluster": cluster}
    if (part := parts.get("".join(sys.argv[1:2]))) is not None:
        part(*map(int, sys.argv[2:3]), *sys.argv[3:4])
    else:
        main(*map(int, sys.argv[1:2]))
