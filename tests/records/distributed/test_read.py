"""Records that workers read give the cohort that they give in memory."""

import datetime
import secrets
from concurrent.futures import ProcessPoolExecutor
from itertools import pairwise
from multiprocessing import get_context

import numpy as np
import pyarrow as pa
import pyarrow.csv as pa_csv
import pyarrow.parquet as pq
import pytest

from comorb import read_dask
from comorb.engines import open_blocks, open_engine
from comorb.engines.block_files import MANIFEST, identity
from comorb.errors import EngineError, RecordsError, StorageError
from comorb.model.estimators import BernoulliMixture
from comorb.records import stream
from comorb.records.cohort_file import CohortFile, load_cohort
from comorb.records.datasets import region
from comorb.records.distributed import partitions, shuffle
from comorb.records.distributed import read as distributed_read
from comorb.records.distributed.read import distribute_cohort
from comorb.records.sources.duck import add_rows
from comorb.records.spec import CohortSpec
from comorb.records.stream import read_partition

RULES = CohortSpec(having=("585",), without=("250",), drop_codes=("428",), drop_rare=5)


@pytest.fixture(autouse=True)
def small_partitions(monkeypatch):
    monkeypatch.setattr(shuffle, "MIN_SLOTS", 7)
    monkeypatch.setattr(shuffle, "PARTITION_ROWS", 900)
    monkeypatch.setattr(partitions, "_TASK_ROWS", 1)


@pytest.fixture(autouse=True)
def rounds(monkeypatch):
    """Count the tasks of each round of workers, and end one that goes round for ever."""
    counts, run_tasks = [], distributed_read.run_tasks

    def counted(work, items, executor):
        if getattr(work, "func", None) is distributed_read._try_partition:
            counts.append(len(items))
            assert len(counts) < 20, "the rounds don't end"
        return run_tasks(work, items, executor)

    monkeypatch.setattr(distributed_read, "run_tasks", counted)
    return counts


def save(table, folder, files=3):
    """Write a table to files, unevenly."""
    folder.mkdir()
    ends = [0, *sorted(np.random.default_rng(files).integers(1, len(table), files - 1)), len(table)]
    for number, (start, stop) in enumerate(pairwise(ends)):
        path = folder / f"visits-{number}.parquet"
        pq.write_table(table.slice(start, stop - start), path, write_page_checksum=True)
    return folder


def same(source, folder, preparation, executor=None):
    distribute_cohort(source, folder, preparation, executor)
    whole, read = preparation.cohort(source), load_cohort(folder)
    assert read.codes == whole.codes
    assert read.names == whole.names
    assert (read.system, read.level, read.left_out) == (whole.system, whole.level, whole.left_out)
    order = [read.ids.to_pylist().index(one) for one in whole.ids.to_pylist()]
    assert sorted(order) == list(range(len(read)))
    assert (read.matrix[order] != whole.matrix).nnz == 0
    covariates = read.covariates.take(order) if read.covariates.num_columns else read.covariates
    assert covariates.to_pydict() == whole.covariates.to_pydict()
    for unit in ("rows", "codes", "records"):
        assert read.ledger.chain(unit) == whole.ledger.chain(unit)
    assert read.ledger.left("features") == whole.ledger.left("features")
    assert sorted(read.ledger.notes) == sorted(whole.ledger.notes)
    assert read.digest() == whole.digest() == CohortFile.open(folder).digest()
    return whole, read


@pytest.mark.parametrize("layout", ["wide", "long"])
def test_files_give_the_cohort_of_memory(layout, tmp_path):
    table = pa.Table.from_batches(region(1500, layout))
    for preparation in (CohortSpec(), RULES):
        with open_engine("threads") as engine:
            source = save(table, tmp_path / str(preparation.drop_rare))
            same(source, tmp_path / "c", preparation, engine)
    assert sorted({file.suffix for file in (tmp_path / "c").iterdir()}) == [".json", ".parquet"]


def test_the_number_of_files_changes_nothing_and_a_fit_has_the_bits_of_memory(tmp_path):
    table = pa.Table.from_batches(region(1500, "long"))
    folders = [save(table, tmp_path / f"f{files}", files) for files in (2, 9)]
    whole = CohortSpec().cohort(folders[0])
    inside = BernoulliMixture(3).fit(whole.matrix)
    for folder in folders:
        distribute_cohort(folder, tmp_path / f"{folder.name}.cohort", CohortSpec())
        read = tmp_path / f"{folder.name}.cohort"
        model = BernoulliMixture(3).fit_blocks(open_blocks(read))
        assert model.means_.tobytes() == inside.means_.tobytes()
        assert model.weights_.tobytes() == inside.weights_.tobytes()
    one, two = (load_cohort(tmp_path / f"f{files}.cohort") for files in (2, 9))
    assert one.ids.equals(two.ids)


DAYS = [datetime.date(2019, 1, 1) + datetime.timedelta(days=int(d)) for d in
        np.random.default_rng(1).integers(0, 400, 3000)]  # fmt: skip


def visits(n=1200, **more):
    """Visits of patients with days, stays and ends, three codes in each."""
    rng = np.random.default_rng(2)
    codes = ["4280", "25000", "4019", "5859", "V4581", "486", "x!"]
    columns = {
        "visit_id": [f"v{i:05}" for i in rng.permutation(n)],
        "patient_id": [None if i % 97 == 0 else f"p{i % 300}" for i in rng.integers(0, n, n)],
        "admission_date": [day.strftime("%d/%m/%Y") for day in DAYS[:n]],
        "age": [str(30 + i % 60) for i in range(n - 1)] + ["90+"],
        "sex": ["F", "M"] * (n // 2),
        "discharge_disposition": ["home", "expired", "home", "other"] * (n // 4),
        "ward": ["12"] * (n - 1) + ["east"],
        "cost": [f"{i % 91}.5" for i in range(n)],
    }
    columns |= {f"dx{j}": [codes[i] for i in rng.integers(0, len(codes), n)] for j in range(3)}
    return pa.table(columns | more)


def long(table):
    """The same visits with a row for each code, those of a record apart from each other."""
    parts = [
        table.drop_columns([f"dx{i}" for i in range(3) if i != j]).rename_columns({f"dx{j}": "icd"})
        for j in range(3)
    ]
    return pa.concat_tables(parts)


def rare(n=600, a_visit=4, **more):
    """A row for each code of visits, in no order: common codes, and some that a single row has."""
    rng = np.random.default_rng(8)
    codes = np.array(["I10", "E119", "J449", "I509", "N183"])[rng.integers(0, 5, n * a_visit)]
    codes[rng.choice(len(codes), 30, replace=False)] = [
        f"{letter}{number}" for letter in "CDGHKL" for number in range(50, 55)
    ]
    visit = rng.permutation(np.arange(n * a_visit) // a_visit)
    columns = {
        "visit_id": [f"v{i:04}" for i in visit],
        "icd10_code": codes,
        "ward": [f"ward {i % 5}" for i in visit],
        "cost": [f"{i % 37}.25" for i in visit],
        "referral_date": [str(DAYS[i]) for i in visit],
        "admission_date": [DAYS[i].strftime("%d/%m/%Y") for i in visit],
    }
    return pa.table(columns | {name: make(visit) for name, make in more.items()})


def differing(visit):
    """One visit out of all has two values."""
    return ["moved" if place == 7 else f"bed {i % 9}" for place, i in enumerate(visit)]


PAIRS = [f"v{i // 2}" for i in range(1000)]
KINDS = pa.array(["diagnosis", "procedure", "diagnosis"] * 1200)
ANSWERS = np.random.default_rng(5).integers(0, 2, (6, 1200)).astype(str)
MESSY = {
    "visits": (visits(), CohortSpec(at_least=1)),
    "patients": (visits(), CohortSpec(unit="patient", at_least=1)),
    "long visits": (long(visits()), CohortSpec(at_least=1)),
    "long patients": (
        long(visits()), CohortSpec(unit="patient", at_least=2, scores=("charlson",)),
    ),
    "features and weights": (
        visits(mass=[1.5, 2.0, 0.25] * 400),
        CohortSpec.from_dict(
            {"at_least": 1, "features": ["age", "sex"], "layout": {"weight": "mass"}}
        ),
    ),
    "rare codes": (rare(), CohortSpec()),
    "rare codes and a column that differs in one visit": (rare(bed=differing), CohortSpec()),
    "rare codes of patients": (
        rare(patient_id=lambda visit: [f"p{i % 150}" for i in visit], bed=differing),
        CohortSpec(unit="patient", drop_rare=3),
    ),
    "numbers as ids": (visits(visit_id=list(range(1200))), CohortSpec(at_least=1)),
    "no id": (visits().select(["dx0", "dx1", "dx2", "age"]), CohortSpec(at_least=1)),
    "patients that repeat": (visits().drop_columns(["visit_id"]), CohortSpec(at_least=1)),
    "a kind": (long(visits()).append_column("code_type", KINDS), CohortSpec(at_least=1)),
    "several codes in a cell": (
        pa.table({"visit_id": PAIRS,
                  "codes": ["4280;25000", "4019", "5859;486;V4581", "2859"] * 250}),
        CohortSpec(at_least=1),
    ),
    "own titles": (
        pa.table({"visit_id": PAIRS, "code": ["q-1", "q-2", "q-3", "q-4"] * 250,
                  "description": ["first thing", "second one", "a third", "fourth"] * 250}),
        CohortSpec(at_least=1),
    ),
    "editions by day": (
        pa.table({"visit_id": PAIRS, "icd_code": ["V10", "E8000", "V300", "E123"] * 250,
                  "admission_date": ["2010-01-02"] * 500 + ["2018-02-03"] * 500}),
        CohortSpec(at_least=1),
    ),
    "items": (
        pa.table({"id": [f"v{i}" for i in range(1200)],
                  **dict(zip("abcdef", ANSWERS, strict=True))}),
        CohortSpec(),
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", MESSY)
def test_messy_records_give_the_cohort_of_memory(name, tmp_path):
    table, preparation = MESSY[name]
    whole, read = same(save(table, tmp_path / "visits"), tmp_path / "cohort", preparation)
    assert len(whole) > 100
    if whole.weights is not None:
        assert sorted(read.weights) == sorted(whole.weights)


def test_codes_that_a_single_part_has_take_no_more_rounds(tmp_path, rounds):
    columns = ["visit_id", "icd10_code", "ward", "cost"]
    same(save(rare().select(columns), tmp_path / "visits", 4), tmp_path / "c", CohortSpec())
    assert len(rounds) == 2
    assert rounds[0] > 1


def test_what_is_asked_while_rows_are_read_is_answered_by_all_parts(tmp_path, monkeypatch, rounds):
    totals = []

    def curious(source, plan, *more):
        totals.append(
            source.query_whole(plan.table, f"SELECT count(*) FROM {plan.table.sql}", add_rows)
        )
        return read_partition(source, plan, *more)

    monkeypatch.setattr(stream, "read_partition", curious)
    table = rare().select(["visit_id", "icd10_code", "ward"])
    same(save(table, tmp_path / "visits"), tmp_path / "c", CohortSpec())
    assert len(rounds) == 3
    assert totals[rounds[1] :] == [[(len(table),)]] * rounds[2]


def test_workers_that_never_agree_are_an_error(tmp_path, monkeypatch):
    def alone(source, *more):
        source.answer_whole(secrets.token_hex(), lambda: [(1,)], add_rows)
        return read_partition(source, *more)

    monkeypatch.setattr(stream, "read_partition", alone)
    with pytest.raises(EngineError, match=r"don't agree on how to read .* or read without an engi"):
        distribute_cohort(save(rare(), tmp_path / "visits"), tmp_path / "c", CohortSpec())


def test_text_files_are_one_table(tmp_path):
    table = visits()
    for number in range(3):
        pa_csv.write_csv(table.slice(400 * number, 400), tmp_path / f"{number}.csv")
    pa_csv.write_csv(table, tmp_path / "all.csv_")
    distribute_cohort(tmp_path / "*.csv", tmp_path / "cohort", CohortSpec(at_least=1))
    whole = CohortSpec(at_least=1).cohort(tmp_path / "all.csv_")
    assert CohortFile.open(tmp_path / "cohort").digest() == whole.digest()


def test_other_processes_give_the_same(tmp_path):
    folder = save(visits(), tmp_path / "visits")
    items = save(MESSY["items"][0], tmp_path / "items")
    with ProcessPoolExecutor(2, get_context("spawn")) as pool:
        distribute_cohort(folder, tmp_path / "there", CohortSpec(), pool)
        distribute_cohort(items, tmp_path / "items there", CohortSpec(), pool)
    distribute_cohort(folder, tmp_path / "here", CohortSpec())
    assert load_cohort(tmp_path / "there").digest() == load_cohort(tmp_path / "here").digest()
    whole = CohortSpec().cohort(items)
    assert load_cohort(tmp_path / "items there").digest() == whole.digest()


def test_visits_of_several_patients_with_one_id_are_refused(tmp_path):
    table = visits(visit_id=[f"v{i % 600}" for i in range(1200)])
    message = r"visits: \d+ ids of column 'visit_id' stand for visits of several patients. Name"
    with pytest.raises(RecordsError, match=message):
        distribute_cohort(save(long(table), tmp_path / "visits"), tmp_path / "c", CohortSpec())


@pytest.mark.parametrize("layout", [visits, lambda: long(visits())])
def test_rows_without_a_patient_may_be_all_that_a_task_has(layout, tmp_path, monkeypatch):
    table = layout()
    ids = pa.array([None if i % 2 else f"p{i % 3}" for i in range(len(table))])
    table = table.set_column(1, "patient_id", ids)
    asked = CohortSpec(at_least=1, unit="patient")
    monkeypatch.setattr(shuffle, "MIN_SLOTS", 32)
    monkeypatch.setattr(shuffle, "PARTITION_ROWS", 650)
    whole, _ = same(save(table, tmp_path / "visits"), tmp_path / "c", asked)
    assert len(whole) == 3


def test_what_only_the_whole_table_tells_is_asked_for(tmp_path):
    keys = [f"key{i:05}" for i in np.tile(np.arange(1500), 3)]
    table = pa.table({"zz": keys, "icd_code": ["4280", "25000", "5859"] * 1500})
    with pytest.raises(RecordsError, match="only the whole table could tell; name the column"):
        distribute_cohort(save(table, tmp_path / "visits"), tmp_path / "c", CohortSpec())


def test_a_folder_is_sealed_and_says_what_is_gone(tmp_path):
    distribute_cohort(save(visits(), tmp_path / "visits"), tmp_path / "c", CohortSpec())
    distribute_cohort(tmp_path / "visits", tmp_path / "again", CohortSpec())
    assert identity(tmp_path / "c") == identity(tmp_path / "again")
    text = (tmp_path / "c" / MANIFEST).read_bytes()
    (tmp_path / "c" / MANIFEST).write_bytes(text.replace(b'"records": ', b'"records": 1'))
    with pytest.raises(StorageError, match=r"c is damaged: .* was altered. Write the cohort again"):
        CohortFile.open(tmp_path / "c")
    next((tmp_path / "again").glob("part-*")).unlink()
    with pytest.raises(StorageError, match="row group 0 is damaged or gone"):
        load_cohort(tmp_path / "again")


def test_small_files_are_read_together(tmp_path, monkeypatch):
    folder, counts = save(visits(), tmp_path / "visits", 5), []

    def counted(work, items, _):
        counts.append(len(items))
        return [work(item) for item in items]

    monkeypatch.setattr(partitions, "run_tasks", counted)
    for most in (1, 600, 1 << 20):
        monkeypatch.setattr(partitions, "_TASK_ROWS", most)
        distribute_cohort(folder, tmp_path / str(most), CohortSpec())
    assert counts[0] == 5
    assert counts[1] in (2, 3, 4)
    assert counts[2] == 1
    assert len({identity(tmp_path / str(most)) for most in (1, 600, 1 << 20)}) == 1


def test_what_was_brought_together_is_found_again(tmp_path, monkeypatch):
    folder = save(visits(), tmp_path / "visits")
    distribute_cohort(folder, tmp_path / "whole", CohortSpec())
    monkeypatch.setattr(distributed_read, "_read_partitions", lost)
    with pytest.raises(EngineError, match="lost"):
        distribute_cohort(folder, tmp_path / "c", CohortSpec())
    work = tmp_path / "c.draft"
    before = {file.name: file.stat().st_mtime_ns for file in work.iterdir()}
    assert len(before) == 6
    monkeypatch.undo()
    (work / "000001-of-a-lost-worker.arrow").write_bytes(b"cut off")
    seen = []
    read = partitions.FilePartition.batches
    monkeypatch.setattr(
        partitions.FilePartition, "batches", lambda *own: seen.append(own) or read(*own)
    )
    next(work.glob("000002-*.json")).unlink()
    monkeypatch.setattr(shuffle, "MIN_SLOTS", 7)
    monkeypatch.setattr(partitions, "_TASK_ROWS", 1)
    distribute_cohort(folder, tmp_path / "c", CohortSpec())
    assert [chunk.file.name for chunk, *_ in seen] == ["visits-2.parquet"]
    assert not work.exists()
    one, two = CohortFile.open(tmp_path / "c"), CohortFile.open(tmp_path / "whole")
    assert one.digest() == two.digest()


def lost(*_):
    raise EngineError("lost")


def test_a_dask_frame_needs_a_client(tmp_path, monkeypatch):
    distributed = pytest.importorskip("distributed")

    def none():
        raise ValueError("no client")

    monkeypatch.setattr(distributed, "get_client", none)
    with pytest.raises(EngineError, match="no Dask cluster is connected; start a"):
        read_dask(None, tmp_path / "c")
