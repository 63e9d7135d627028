"""One flipped bit in a Parquet file: with checksums never another cohort, without them a note."""

import random

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from comorb.errors import RecordsError
from comorb.records.reading import read_records
from comorb.records.sources.duck import OpenedSource, connect
from comorb.records.sources.pages import _walk
from tests.records.helpers import sets
from tests.records.sources.test_delta import Lake

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
            assert _walk(source, tmp_path / name).summed is carries
