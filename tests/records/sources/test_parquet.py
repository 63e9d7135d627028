from functools import partial

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from comorb.errors import RecordsError
from comorb.records.reading import read_records
from comorb.records.sources.parquet import is_partition
from tests.records.helpers import sets

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
