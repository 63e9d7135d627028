"""Which files of a store are records; what becomes of them is in tests/test_remote.py."""

import pytest

from comorb.errors import RecordsError
from comorb.records.sources import stores
from comorb.remote import Remote


def held(monkeypatch, *names):
    place = Remote("s3://bucket/claims")
    monkeypatch.setattr(stores, "matching", lambda _: (place, [place / name for name in names]))
    return place


def test_data_and_the_log_of_a_lake_are_records(monkeypatch):
    wanted = ["_delta_log/00000000000000000000.json", "year=2020/a.parquet", "b.csv.gz"]
    others = ["_SUCCESS", ".crc/a.parquet", "_temporary/0/a.parquet", "readme.pdf"]
    place = held(monkeypatch, *wanted, *others)
    assert list(stores.data_in(place)) == wanted


def test_no_data_is_refused(monkeypatch):
    with pytest.raises(RecordsError, match="There are no records at s3://bucket/claims; check"):
        stores.data_in(held(monkeypatch, "_SUCCESS"))
