"""Parquet: row groups, codes as text, and one flipped bit, which is never another cohort."""

import random
from functools import partial

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from comorb.errors import RecordsError
from comorb.records.read import read_records
from comorb.records.sources.duck import OpenedSource, connect
from comorb.records.sources.parquet import _walk_pages, is_partition
from tests.records.helpers import sets
from tests.records.sources.test_delta import Lake

write = partial(pq.write_table, write_page_checksum=True)


def test_partitions():
    assert [is_partition(name) for name in ("year=2020", "year=", "2020", "=1")] == [
        True,
        True,
        False,
        False,
    ]


def test_columns_that_only_some_files_have(tmp_path):
    write(pa.table({"visit_id": ["1"], "dx1": ["428.0"]}), tmp_path / "v_2009.parquet")
    later = {"visit_id": ["2"], "dx1": ["V58.61"], "dx2": ["250.00"]}
    write(pa.table(later), tmp_path / "v_2010.parquet")
    cohort = read_records(tmp_path)
    assert sets(cohort) == {"1": {"428"}, "2": {"V58", "250"}}
    assert cohort.ledger.notes == (
        f"{tmp_path.name}: 1 columns aren't in every one of its 2 files and are blank where they "
        "are missing: dx2",
    )


def test_codes_that_are_numbers_in_some_files(tmp_path):
    write(pa.table({"visit_id": ["1"], "dx1": [428]}), tmp_path / "v1.parquet")
    write(pa.table({"visit_id": ["2"], "dx1": ["038.9"]}), tmp_path / "v2.parquet")
    cohort = read_records(tmp_path, system="icd9cm", layout="wide")
    assert sets(cohort) == {"1": {"428"}, "2": {"038"}}
    assert cohort.ledger.notes == (
        f"{tmp_path.name}: columns are text in some of its files and numbers in others, so codes "
        "and ids may have lost zeros: dx1",
    )


def test_the_order_of_columns_does_not_matter(tmp_path):
    write(pa.table({"visit_id": ["1"], "dx1": ["I10"]}), tmp_path / "a.parquet")
    write(pa.table({"dx1": ["J44"], "visit_id": ["2"]}), tmp_path / "b.parquet")
    cohort = read_records(tmp_path)
    assert sets(cohort) == {"1": {"I10"}, "2": {"J44"}}
    assert cohort.ledger.notes == ()


def test_a_column_twice(tmp_path):
    table = pa.table([["1"], ["I10"], ["J44"]], ["id", "dx1", "DX1"])
    write(table, tmp_path / "a.parquet")
    with pytest.raises(RecordsError, match=r"a.parquet has the column 'dx1' 2 times"):
        read_records(tmp_path / "a.parquet")


def test_a_name_that_is_not_text(tmp_path):
    write(pa.table({"visit_id": ["1"], "dx_one": ["I10"]}), tmp_path / "a.parquet")
    data = (tmp_path / "a.parquet").read_bytes()
    (tmp_path / "a.parquet").write_bytes(data.replace(b"dx_one", b"dx_\xf3ne"))
    with pytest.raises(RecordsError, match=r"^a.parquet: text that isn't in the encoding of the"):
        read_records(tmp_path / "a.parquet")


FLIPS = 150
UNSEEN = "may be damaged unseen"
WAYS = {
    "packed": {},
    "plain": {"use_dictionary": False, "compression": "none"},
    "pages of version 2": {"data_page_version": "2.0", "compression": "zstd"},
    "many pages and groups": {"data_page_size": 64, "row_group_size": 20, "write_batch_size": 8},
}


def visits(seed, rows=60):
    picked = random.Random(seed)
    codes = ["428.0", "250.00", "401.9", "V58.61", "038.9", None]
    return pa.table(
        {
            "visit_id": [f"{i:05}" for i in picked.sample(range(rows), rows)],
            "dx1": picked.choices(codes[:5], k=rows),
            "dx2": picked.choices(codes, k=rows),
            "age": picked.choices(range(90), k=rows),
            "sex": picked.choices("MF", k=rows),
        }
    )


def flipped(data, seed):
    picked = random.Random(seed)
    damaged = bytearray(data)
    damaged[picked.randrange(len(data))] ^= 1 << picked.randrange(8)
    return bytes(damaged)


def contents(path):
    cohort = read_records(path)
    return sets(cohort), cohort.covariates.to_pydict()


@pytest.mark.parametrize("way", WAYS)
def test_a_flipped_bit_never_gives_another_cohort(way, tmp_path):
    path = tmp_path / "visits.parquet"
    pq.write_table(visits(way), path, write_page_checksum=True, **WAYS[way])
    data, expected = path.read_bytes(), contents(path)
    assert not any(UNSEEN in note for note in read_records(path).ledger.notes)
    refusals = 0
    for seed in range(FLIPS):
        path.write_bytes(flipped(data, seed))
        try:
            assert contents(path) == expected, seed
        except RecordsError as error:
            refusals += 1
            assert "\n" not in str(error)  # noqa: PT017
    assert refusals > FLIPS / 2


def test_without_checksums_there_is_a_note(tmp_path):
    pq.write_table(visits(1), tmp_path / "visits.parquet")
    note = f"visits.parquet {UNSEEN}: it has no checksums"
    assert note in read_records(tmp_path / "visits.parquet").ledger.notes


def test_the_note_counts_the_files(tmp_path):
    for number, summed in enumerate([True, False, False]):
        part = visits(1).slice(20 * number, 20)
        pq.write_table(part, tmp_path / f"part-{number}.parquet", write_page_checksum=summed)
    note = f"{tmp_path.name} {UNSEEN}: 2 of its 3 files have no checksums"
    assert note in read_records(tmp_path).ledger.notes


def test_a_page_of_another_file_is_seen(tmp_path):
    """Each page is whole, but the counts say that they aren't of one file."""
    options = {"write_page_checksum": True, "compression": "none", "use_dictionary": False}
    pq.write_table(visits(1), tmp_path / "one.parquet", **options)
    data = (tmp_path / "one.parquet").read_bytes()
    for rows in (59, 61):
        pq.write_table(visits(1, rows), tmp_path / "two.parquet", **options)
        other = (tmp_path / "two.parquet").read_bytes()
        (tmp_path / "mixed.parquet").write_bytes(other[: len(data) // 2] + data[len(data) // 2 :])
        with pytest.raises(RecordsError, match=r"^mixed.parquet is a damaged or cut-off Parquet"):
            read_records(tmp_path / "mixed.parquet")


def test_files_of_a_delta_table(tmp_path):
    lake = Lake(tmp_path / "visits")
    lake.commit(lake.write("a.parquet", [("1", "428.0"), ("2", "V58.61")]))
    assert f"visits {UNSEEN}: it has no checksums" in read_records(lake.folder).ledger.notes


def test_lists_and_structures_and_no_rows(tmp_path):
    """Values of a list are more than rows, and a file without rows has no pages."""
    lists = pa.table({"dx": [["428.0", "250.00"], []], "at": [{"ward": "a", "bed": 1}, None]})
    with connect(str(tmp_path), None) as connection:
        source = OpenedSource("files", connection)
        for name, table, carries in (("a", lists, True), ("b", lists.slice(0, 0), False)):
            pq.write_table(table, tmp_path / name, write_page_checksum=True)
            assert _walk_pages(source, tmp_path / name)[0] is carries
