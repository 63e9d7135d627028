"""Cohorts for runs, in memory and in files, and new records over a model's codes."""

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from comorb.errors import RecordsError
from comorb.model.blocks import move_row_columns
from comorb.records.cohort import Cohort
from comorb.records.cohort_file import CohortFile, load_cohort, save_cohort
from comorb.records.datasets import region, tertiary
from comorb.records.read import read_records
from comorb.records.spec import CohortSpec
from comorb.runs.cohorts import (
    Unknown,
    align,
    checkpoint_folder,
    file_signatures,
    is_cohort_file,
    open_cohort,
)

RULES = CohortSpec(having=("585",), drop_codes=("428",), drop_rare=4)


@pytest.fixture(scope="module")
def visits(tmp_path_factory):
    path = tmp_path_factory.mktemp("visits") / "visits.parquet"
    pq.write_table(pa.Table.from_batches(region(3_000)), path)
    return path


@pytest.fixture(scope="module")
def cohort_file(visits, tmp_path_factory):
    path = tmp_path_factory.mktemp("cohorts") / "cohort.parquet"
    save_cohort(RULES.cohort(visits), path)
    return path


def test_memory_and_file_offer_the_same(visits):
    with open_cohort(visits, RULES) as inside, open_cohort(visits, RULES, memory="1GB") as outside:
        assert isinstance(inside, Cohort)
        assert isinstance(outside, CohortFile)
        for name in ("codes", "names", "system", "level", "left_out"):
            assert getattr(inside, name) == getattr(outside, name)
        assert len(inside) == len(outside)
        assert inside.digest() == outside.digest()
        assert "428" in inside.left_out
        assert inside.ids_of(0, 0, len(inside)).equals(outside.ids_of(0, 0, len(inside)))
        some, step = outside.sample(100)
        assert (len(some), step) == (-(-len(inside) // step), -(-len(inside) // 100))
        assert inside.sample(100) == (inside, 1)
        assert some.ids.equals(inside.ids[::step])


def test_a_file_in_a_temporary_place_goes_when_it_is_no_longer_needed(visits):
    with open_cohort(visits, RULES, memory="1GB") as cohort:
        path = cohort.path
        assert path.exists()
    assert not path.exists()


def test_a_cohort_in_memory_is_chosen_from():
    with open_cohort(tertiary(), CohortSpec(having=("585",))) as cohort:
        assert len(cohort) < len(tertiary())


def test_a_cohort_file_is_taken_as_it_stands_or_with_rules(cohort_file):
    whole = load_cohort(cohort_file)
    with open_cohort(cohort_file) as inside, open_cohort(cohort_file, memory="1GB") as outside:
        assert len(inside) == len(outside) == len(whole)
        assert inside.codes == outside.codes == whole.codes
    with open_cohort(cohort_file, CohortSpec(having=("250",))) as some:
        assert 0 < len(some) < len(whole)
    refused = pytest.raises(RecordsError, match=r"cohort\.parquet is a cohort file, and rules")
    with refused, open_cohort(cohort_file, CohortSpec(having=("250",)), memory="1GB"):
        pass


def test_what_is_no_cohort_file(visits, tmp_path):
    assert not is_cohort_file(visits)
    assert not is_cohort_file(tmp_path / "absent")
    assert not is_cohort_file(tmp_path)
    assert not is_cohort_file("postgresql://host/database")
    assert not is_cohort_file(pa.table({"a": [1]}))


def test_every_file_of_a_source_is_stamped(tmp_path):
    (tmp_path / "one.parquet").write_bytes(b"1")
    before = (
        file_signatures(tmp_path),
        file_signatures(tmp_path / "*.parquet"),
        file_signatures(tmp_path / "one.parquet"),
    )
    assert all(len(each) == 1 for each in before)
    (tmp_path / "two.parquet").write_bytes(b"2")
    after = (
        file_signatures(tmp_path),
        file_signatures(tmp_path / "*.parquet"),
        file_signatures(tmp_path / "one.parquet"),
    )
    assert [one == two for one, two in zip(before, after, strict=True)] == [False, False, True]
    assert file_signatures("postgresql://host/database") == [["postgresql://host/database"]]


def test_a_workshop_of_other_records_is_cleared(tmp_path):
    records = tmp_path / "records"
    records.mkdir()
    (records / "one.csv").write_text("id,dx1\na,428\n")

    def interrupted() -> None:
        with checkpoint_folder(tmp_path / "run", records, RULES) as shop:
            nonlocal held
            held = (shop / "journal").exists()
            (shop / "journal").write_text("passes")
            raise KeyboardInterrupt

    for expected in (False, True):
        held = None
        with pytest.raises(KeyboardInterrupt):
            interrupted()
        assert held is expected
    (records / "two.csv").write_text("id,dx1\nb,428\n")
    with checkpoint_folder(tmp_path / "run", records, RULES) as shop:
        assert not (shop / "journal").exists()
    assert not shop.exists()


def test_a_workshop_in_which_nothing_was_made_is_removed(tmp_path):
    with pytest.raises(RuntimeError), checkpoint_folder(tmp_path / "run", "absent.csv", RULES):
        raise RuntimeError
    assert not list(tmp_path.iterdir())


RECORDS = pa.table(
    {
        "id": ["a", "b", "c"],
        "dx1": ["428.0", "250.00", "585.9"],
        "dx2": ["401.9", "585.9", "428.0"],
        "dx3": ["250.00", None, None],
    }
)
MODEL = ["428", "585", "491", "401"]


@pytest.fixture(params=["memory", "file"])
def cohort(request, tmp_path):
    read = read_records(RECORDS)
    if request.param == "memory":
        return read
    save_cohort(read, tmp_path / "cohort.parquet")
    return CohortFile.open(tmp_path / "cohort.parquet")


def test_the_columns_are_those_of_the_model_in_its_order(cohort):
    place, unknown = align(cohort, MODEL)
    (load,) = cohort.blocks().loaders
    rows = move_row_columns(place, len(MODEL), load())
    dense = np.zeros((3, 4), dtype=int)
    for row, (start, end) in enumerate(zip(rows.indptr, rows.indptr[1:], strict=False)):
        ones = rows.indices[start:end]
        assert (np.diff(ones) > 0).all()
        dense[row, ones] = 1
    assert dense.tolist() == [[1, 0, 0, 1], [0, 1, 0, 0], [1, 1, 0, 0]]
    assert unknown == (Unknown("250", "Diabetes mellitus", 2),)


def test_a_code_left_out_on_purpose_is_not_unknown(cohort):
    assert align(cohort, ["428", "585", "401"], {"250"})[1] == ()


def test_unknown_codes_come_most_common_first(cohort):
    _, unknown = align(cohort, ["428"])
    assert [(one.code, one.records) for one in unknown] == [("250", 2), ("585", 2), ("401", 1)]


def test_records_without_any_known_code_are_refused(cohort):
    with pytest.raises(
        RecordsError, match=r"knows none of the 4 codes of these records \(icd9cm, category\); are"
    ):
        align(cohort, ["I50"])
