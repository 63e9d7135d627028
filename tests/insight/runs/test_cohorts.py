"""Cohorts for runs: in memory and in files, the same codes and records."""

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from comorb.errors import RecordsError
from comorb.insight.runs.cohorts import is_cohort_file, open_cohort, stamps, workshop
from comorb.records.archive import CohortFile, load_cohort, save_cohort
from comorb.records.cohort import Cohort
from comorb.records.datasets import region, tertiary
from comorb.records.preparation import Preparation

RULES = Preparation(having=("585",), drop_codes=("428",), drop_rare=4)


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
    with open_cohort(tertiary(), Preparation(having=("585",))) as cohort:
        assert len(cohort) < len(tertiary())


def test_a_cohort_file_is_taken_as_it_stands_or_with_rules(cohort_file):
    whole = load_cohort(cohort_file)
    with open_cohort(cohort_file) as inside, open_cohort(cohort_file, memory="1GB") as outside:
        assert len(inside) == len(outside) == len(whole)
        assert inside.codes == outside.codes == whole.codes
    with open_cohort(cohort_file, Preparation(having=("250",))) as some:
        assert 0 < len(some) < len(whole)
    refused = pytest.raises(RecordsError, match=r"cohort\.parquet is a cohort file, and rules")
    with refused, open_cohort(cohort_file, Preparation(having=("250",)), memory="1GB"):
        pass


def test_what_is_no_cohort_file(visits, tmp_path):
    assert not is_cohort_file(visits)
    assert not is_cohort_file(tmp_path / "absent")
    assert not is_cohort_file(tmp_path)
    assert not is_cohort_file("postgresql://host/database")
    assert not is_cohort_file(pa.table({"a": [1]}))


def test_every_file_of_a_source_is_stamped(tmp_path):
    (tmp_path / "one.parquet").write_bytes(b"1")
    before = stamps(tmp_path), stamps(tmp_path / "*.parquet"), stamps(tmp_path / "one.parquet")
    assert all(len(each) == 1 for each in before)
    (tmp_path / "two.parquet").write_bytes(b"2")
    after = stamps(tmp_path), stamps(tmp_path / "*.parquet"), stamps(tmp_path / "one.parquet")
    assert [one == two for one, two in zip(before, after, strict=True)] == [False, False, True]
    assert stamps("postgresql://host/database") == [["postgresql://host/database"]]


def test_a_workshop_of_other_records_is_cleared(tmp_path):
    records = tmp_path / "records"
    records.mkdir()
    (records / "one.csv").write_text("id,dx1\na,428\n")

    def interrupted() -> None:
        with workshop(tmp_path / "run", records, RULES) as shop:
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
    with workshop(tmp_path / "run", records, RULES) as shop:
        assert not (shop / "journal").exists()
    assert not shop.exists()


def test_a_workshop_in_which_nothing_was_made_is_removed(tmp_path):
    with pytest.raises(RuntimeError), workshop(tmp_path / "run", "absent.csv", RULES):
        raise RuntimeError
    assert not list(tmp_path.iterdir())
