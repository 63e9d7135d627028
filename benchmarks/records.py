"""Reading records: time and memory beside what the engine itself needs, in one run.

``python -m benchmarks.records [rows of the long table, in millions]``
"""

from __future__ import annotations

import json
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import duckdb

from benchmarks.table import Figure, show

MILLION = 1_000_000
CODES_A_RECORD = 10


CODE = "printf('%03d%02d', 1 + k // 12, k % 12)"
RANK = "CAST(floor(pow(11988.0, random())) AS INTEGER) - 1"


def write_long(path: Path, millions: int) -> None:
    """Write rows of (id, code) in no order: ids as text, 11,988 codes with a long tail."""
    count = millions * MILLION
    with duckdb.connect() as connection:
        connection.execute(
            f"COPY (SELECT visit_id, {CODE} AS icd_code FROM (SELECT {RANK} AS k, "
            f"printf('%08d', hash(i) % {count // CODES_A_RECORD}) AS visit_id "
            f"FROM range({count}) AS t(i))) TO '{path}' (FORMAT parquet)"
        )


def write_wide(path: Path) -> None:
    """Write a million visits with one to ten codes each."""
    ranks = ", ".join(f"{RANK} AS k{j}" for j in range(1, 11))
    cells = ", ".join(
        f"CASE WHEN hash(i) % 10 >= {j - 1} THEN {CODE.replace('k ', f'k{j} ')} END AS dx{j}"
        for j in range(1, 11)
    )
    with duckdb.connect() as connection:
        connection.execute(
            f"COPY (SELECT printf('%08d', i) AS visit_id, {cells} FROM (SELECT i, {ranks} "
            f"FROM range({MILLION}) AS t(i))) TO '{path}' (FORMAT csv)"
        )


def write_claims(path: Path, bare: Path) -> None:
    """Write 1.3M rows of visits with patients, days and costs, and their ids and codes alone."""
    first, stay = "CAST(hash(v) % 1400 AS INTEGER)", "CAST(hash(v + 1) % 9 AS INTEGER)"
    days = "strftime(DATE '2018-01-01' + {}, '%Y-%m-%d') AS {}_date"
    with duckdb.connect() as connection:
        connection.execute(
            f"COPY (SELECT printf('%06d', v % 60000) AS patient_id, printf('%07d', v) AS visit_id, "
            f"{days.format(first, 'admission')}, {days.format(f'{first} + {stay}', 'discharge')}, "
            f"{CODE} AS icd_code, (hash(v + 2) % 5000) / 4 AS cost "
            f"FROM (SELECT i // 5 AS v, {RANK} AS k FROM range(1300000) AS t(i))) "
            f"TO '{path}' (FORMAT parquet)"
        )
        connection.execute(
            f"COPY (SELECT visit_id, icd_code FROM '{path}') TO '{bare}' (FORMAT parquet)"
        )


def engine_groups(path: str) -> None:
    with duckdb.connect() as connection:
        connection.sql(
            "SELECT count(*), sum(n) FROM (SELECT visit_id, icd_code, count(*) AS n "
            f"FROM read_parquet('{path}') GROUP BY ALL)"
        ).fetchall()


def engine_parses(path: str) -> None:
    names = ["visit_id", *(f"dx{j}" for j in range(1, 11))]
    columns = ", ".join(f"'{name}': 'VARCHAR'" for name in names)
    with duckdb.connect() as connection:
        connection.execute(
            f"CREATE TEMP TABLE parsed AS FROM read_csv('{path}', columns = {{{columns}}}, "
            "delim = ',', quote = '\"', escape = '\"', header = true, auto_detect = false)"
        )


def comorb_reads(path: str, memory: str | None = None) -> None:
    from comorb.records.read import read_records

    cohort = read_records(path, memory=memory)
    if not cohort.ledger.adds_up:
        sys.exit("the ledger doesn't add up")


def measure(name: str, *arguments: str) -> tuple[float, float]:
    """Run one task in a process of its own; return its seconds and its peak in GB."""
    done = subprocess.run(
        [sys.executable, "-m", "benchmarks.records", "task", name, *arguments],
        check=True,
        capture_output=True,
        text=True,
    )
    seconds, peak = json.loads(done.stdout)
    return seconds, peak


def task(name: str, arguments: list[str]) -> None:
    """Print the seconds and the peak of a task, the engine's and ours alike after the imports.

    A tiny table is read first, in either case; what is read for the first time here are the file
    and its codes.
    """
    import pyarrow as pa

    from comorb.records.read import read_records

    read_records(pa.table({"visit_id": ["a", "b"], "icd_code": ["42800", "25000"]}))
    start = time.perf_counter()
    {"groups": engine_groups, "parses": engine_parses, "reads": comorb_reads}[name](*arguments)
    seconds = time.perf_counter() - start
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    print(json.dumps([seconds, peak]))


def rows(millions: int = 50) -> list[Figure]:
    """Return (what, figure, target, met) for each target."""
    with tempfile.TemporaryDirectory(prefix="comorb-bench-") as folder:
        long, wide = Path(folder) / "long.parquet", Path(folder) / "wide.csv"
        write_wide(wide)
        turns = [
            (measure("parses", str(wide))[0], measure("reads", str(wide))[0]) for _ in range(7)
        ]
        parse, read = (min(seconds) for seconds in zip(*turns, strict=True))
        claims, bare = Path(folder) / "claims.parquet", Path(folder) / "bare.parquet"
        write_claims(claims, bare)
        turns = [
            (measure("reads", str(bare))[0], measure("reads", str(claims))[0]) for _ in range(3)
        ]
        codes, visits = (min(seconds) for seconds in zip(*turns, strict=True))
        write_long(long, millions)
        group, _ = measure("groups", str(long))
        ours, peak = measure("reads", str(long))
        _, limited = measure("reads", str(long), "2GB")
    figures = [
        (
            f"{millions}M rows: {ours:.1f} s, the engine's group and count {group:.1f} s",
            ours / group,
            2.0,
        ),
        (f"{millions}M rows: peak memory in GB", peak, 4.0),
        (f"{millions}M rows: peak memory in GB with memory='2GB'", limited, 2.0),
        (
            f"wide CSV of 1M visits: {read:.2f} s, the engine's parse {parse:.2f} s",
            read / parse,
            2.0,
        ),
        (
            f"1.3M rows of claims with visits: {visits:.2f} s, ids and codes alone {codes:.2f} s",
            visits / codes,
            5.0,
        ),
    ]
    return [Figure(what, figure, target, False, "") for what, figure, target in figures]


def main(*sizes: int) -> None:
    """Measure and print."""
    show("Records", rows(*sizes))


if __name__ == "__main__":
    if sys.argv[1:2] == ["task"]:
        task(sys.argv[2], sys.argv[3:])
    else:
        main(*map(int, sys.argv[1:]))
