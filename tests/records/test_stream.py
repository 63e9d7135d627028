"""Records read in parts give the cohort that they give in memory."""

import numpy as np
import pyarrow as pa
import pyarrow.csv as pa_csv
import pyarrow.parquet as pq
import pytest

from comorb.errors import RecordsError, StorageError
from comorb.records import stream
from comorb.records.cohort_file import load_cohort
from comorb.records.datasets import region
from comorb.records.distributed.read import distribute_cohort
from comorb.records.layouts.layout import Layout
from comorb.records.spec import CohortSpec
from comorb.records.stream import open_parts, write_cohort

RULES = CohortSpec(having=("585",), without=("250",), drop_codes=("428",), drop_rare=5)
ELDERLY = CohortSpec(age=(70, None), sex=("female",), at_least=4)


@pytest.fixture(autouse=True)
def small_parts(monkeypatch):
    monkeypatch.setattr(stream, "PART_ROWS", 2048)


@pytest.fixture(scope="module", params=["wide.parquet", "wide.csv", "long.parquet", "long.csv"])
def source(request, tmp_path_factory):
    path = tmp_path_factory.mktemp("region") / request.param
    table = pa.Table.from_batches(region(5000, path.stem))
    (pq.write_table if path.suffix == ".parquet" else pa_csv.write_csv)(table, path)
    return path


def same(source, path, preparation):
    write_cohort(source, path, preparation, "1GB")
    whole, read = preparation.cohort(source), load_cohort(path)
    assert read.codes == whole.codes
    assert read.names == whole.names
    assert (read.system, read.level) == (whole.system, whole.level)
    assert read.ids.equals(whole.ids)
    assert np.array_equal(read.matrix.indptr, whole.matrix.indptr)
    assert np.array_equal(read.matrix.indices, whole.matrix.indices)
    assert read.covariates.column_names == whole.covariates.column_names
    for unit in ("rows", "codes", "records"):
        assert read.ledger.chain(unit) == whole.ledger.chain(unit)
    assert read.ledger.adds_up
    assert read.ledger.left("features") == whole.ledger.left("features")
    assert read.ledger.notes == whole.ledger.notes
    return whole, read


@pytest.mark.parametrize("preparation", [CohortSpec(), RULES], ids=["plain", "rules"])
def test_parts_give_the_cohort_of_memory(source, tmp_path, preparation):
    same(source, tmp_path / "cohort.parquet", preparation)
    assert [file.name for file in tmp_path.iterdir()] == ["cohort.parquet"]


def test_covariates_choose_and_come_along(tmp_path):
    path = tmp_path / "wide.csv"
    pa_csv.write_csv(pa.Table.from_batches(region(4000)), path)
    whole, read = same(path, tmp_path / "cohort.parquet", ELDERLY)
    assert read.covariates["sex"].to_pylist() == whole.covariates["sex"].to_pylist()
    stays = read.covariates["los"].to_pylist()
    assert [int(stay) for stay in stays] == whole.covariates["los"].to_pylist()


def table(**columns):
    return pa.table(columns)


MESSY = {
    "patients united": (
        table(patient_id=[str(i % 700) for i in range(3000)], dx1=["4280"] * 3000,
              dx2=["25000", "4019", "5859"] * 1000, dx3=["2859", "E9999"] * 1500),
        CohortSpec(unit="patient", at_least=1),
    ),
    "no id": (
        table(dx1=["4280"] * 3000, dx2=["25000", "4019", None] * 1000), CohortSpec(at_least=1),
    ),
    "rows without an id": (
        table(id=[None if i % 50 == 0 else f"v{i}" for i in range(3000)],
              dx1=["4280"] * 3000, dx2=["25000", "4019", "x!"] * 1000),
        CohortSpec(at_least=1),
    ),
    "weights": (
        table(id=[f"v{i}" for i in range(3000)], dx1=["4280"] * 3000,
              dx2=["25000", "4019", None] * 1000, mass=[1.5, 2.0, 0.25] * 1000),
        CohortSpec(at_least=1, layout=Layout(weight="mass")),
    ),
    "long without an id": (
        table(visit_id=[None if i % 50 == 0 else i // 3 for i in range(3000)],
              icd_code=["42800", "25000", "4019", "5859", "?", "2859"] * 500),
        CohortSpec(at_least=2),
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", MESSY)
def test_messy_records_give_the_cohort_of_memory(name, tmp_path):
    source, preparation = MESSY[name]
    whole, read = same(source, tmp_path / "cohort.parquet", preparation)
    if whole.weights is not None:
        assert np.asarray(read.weights).tolist() == whole.weights.tolist()


@pytest.mark.parametrize("where", [0, -1])
def test_a_column_that_differs_within_a_record_of_one_part_is_no_covariate(where, tmp_path):
    visits = np.arange(9000) // 3
    wards = [f"ward {visit % 4}" for visit in visits]
    wards[where] = "moved"
    source = table(
        visit_id=[f"v{visit:05}" for visit in visits],
        icd_code=["4280", "25000", "5859"] * 3000,
        ward=wards,
        team=[f"t{visit % 2}" for visit in visits],
    )
    whole, _ = same(source, tmp_path / "cohort.parquet", CohortSpec(at_least=1))
    assert whole.covariates.column_names == ["team"]


def test_patients_some_of_whom_are_unknown_are_visits_by_row(tmp_path):
    ids = [None if i % 50 == 0 else f"p{i}" for i in range(3000)]
    source = table(patient_id=ids, dx1=["4280"] * 3000, dx2=["25000", "4019", "585"] * 1000)
    whole, _ = same(source, tmp_path / "cohort.parquet", CohortSpec(at_least=1))
    assert len(whole) == 3000


def test_records_that_all_lack_an_id_are_refused(tmp_path):
    ids = pa.nulls(300, pa.string())
    source = table(visit_id=ids, dx1=["4280"] * 300, dx2=["25000"] * 300, dx3=["585"] * 300)
    file = tmp_path / "visits.parquet"
    pq.write_table(source, file)
    message = "holds no row with an id of a visit; read with unit='patient', or name the column"
    for write in (write_cohort, distribute_cohort):
        with pytest.raises(RecordsError, match=message):
            write(file, tmp_path / "cohort.parquet", CohortSpec(at_least=1))
    with pytest.raises(RecordsError, match=message):
        CohortSpec(at_least=1).cohort(file)


def oddities(last):
    """A column whose last value, in the last part, is unlike the others."""
    return {
        "age": ["70"] * 2999 + ["90+"],
        "admission_date": ["03/04/2009"] * 2999 + ["25/12/2009"],
        "ward": ["12"] * 2999 + [last],
    }


@pytest.mark.parametrize("last", ["7", "1.5", "east"])
@pytest.mark.parametrize("codes", [{"dx1": "4280", "dx2": "585"}, {"icd_code": "4280"}])
def test_types_are_those_of_the_whole_whatever_a_part_holds(last, codes, tmp_path):
    ids = [f"v{i:04}" for i in range(3000)]
    columns = {name: [code] * 3000 for name, code in codes.items()}
    source = table(visit_id=ids, **oddities(last), **columns)
    rules = CohortSpec(at_least=1, age=(70, None), dates=("2009-04-03", None))
    whole, _ = same(source, tmp_path / "cohort.parquet", rules)
    assert len(whole) == 3000
    with open_parts(source, rules) as found:
        for part in found:
            assert part.covariates.schema == whole.covariates.schema


def test_ids_that_repeat_are_refused(tmp_path):
    source = table(visit_id=["a", "b", "a"], dx1=["4280", "25000", "4019"], dx2=["585"] * 3)
    message = "1 rows repeat an id of column 'visit_id', which must be unique when records are read"
    with pytest.raises(RecordsError, match=message):
        write_cohort(source, tmp_path / "cohort.parquet", CohortSpec(layout=Layout(kind="wide")))


@pytest.mark.parametrize(
    ("preparation", "message"),
    [
        (CohortSpec(having=("585",), without=("585",)), "No record is left after the rules"),
        (CohortSpec(at_least=1, drop_rare=9999), "No code is left of those that the records"),
        (CohortSpec(having=("888",)), "No record has the code '888'"),
    ],
)
def test_rules_that_leave_nothing_are_refused(preparation, message, tmp_path):
    source = pa.Table.from_batches(region(4000))
    with pytest.raises(RecordsError, match=message):
        write_cohort(source, tmp_path / "cohort.parquet", preparation)
    assert not list(tmp_path.iterdir())


def test_records_without_a_usable_code_are_refused(tmp_path):
    source = table(visit_id=["a", "b"], icd_code=["?", "-"])
    layout = Layout(kind="long", codes=("icd_code",), record="visit_id")
    rules = CohortSpec(system="icd9cm", layout=layout)
    with pytest.raises(RecordsError, match="hold no usable code of"):
        write_cohort(source, tmp_path / "cohort.parquet", rules)


def test_a_full_disk_leaves_nothing_half_written(tmp_path, monkeypatch):
    written = []

    def full(writer, group, **_):
        written.append(group)
        if len(written) == 2:
            raise OSError(28, "No space left on device")

    monkeypatch.setattr("comorb.engines.block_files.ROWS_A_GROUP", 1000)
    monkeypatch.setattr(pq.ParquetWriter, "write_table", full)
    with pytest.raises(StorageError, match="can't be written: No space left on device"):
        write_cohort(pa.Table.from_batches(region(4000)), tmp_path / "cohort.parquet")
    assert len(written) == 2
    assert not list(tmp_path.iterdir())


def test_all_rows_of_a_record_are_in_one_part():
    source = table(visit_id=[i // 7 for i in range(5000)], icd_code=["4280", "25000"] * 2500)
    with open_parts(source, CohortSpec()) as found:
        ids = [part.ids.to_pylist() for part in found]
    assert len(ids) == 3
    assert [one for part in ids for one in part] == [str(i) for i in range(715)]
