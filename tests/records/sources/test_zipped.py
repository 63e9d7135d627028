import io
import random
import zipfile

import pytest

from comorb.errors import RecordsError
from comorb.records.reading import read_records
from tests.records.helpers import sets

TEXT = "visit_id,dx1,dx2\n007,428.0,250.00\n8,V58.61,\n"
SETS = {"007": {"428", "250"}, "8": {"V58"}}


def archive(path, **members):
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as out:
        for name, data in members.items():
            out.writestr(name.replace("__", "/"), data)
    return path


def test_one_table(tmp_path):
    path = archive(tmp_path / "a.zip", **{"export__visits.csv": TEXT, "export__.DS_Store": b"x"})
    assert sets(read_records(path)) == SETS


def test_several_tables(tmp_path):
    path = archive(tmp_path / "a.zip", **{"Visits.csv": TEXT, "towns.csv": "id,town\n1,Vic\n"})
    with pytest.raises(RecordsError, match=r"a.zip holds 2 tables: Visits, towns\. Say which one"):
        read_records(path)
    assert sets(read_records(path, table="visits")) == SETS


def test_names_that_lead_out_stay_inside(tmp_path):
    path = tmp_path / "a.zip"
    with zipfile.ZipFile(path, "w") as out:
        out.writestr("../../visits.csv", TEXT)
    assert sets(read_records(path)) == SETS
    assert not (tmp_path.parent / "visits.csv").exists()


def test_what_is_refused(tmp_path, monkeypatch):
    inner = io.BytesIO()
    with zipfile.ZipFile(inner, "w") as out:
        out.writestr("a.csv", TEXT)
    with pytest.raises(RecordsError, match=r"b.zip holds zip archives; unpack them"):
        read_records(archive(tmp_path / "b.zip", **{"a.zip": inner.getvalue()}))
    with pytest.raises(RecordsError, match=r"c.zip is a zip archive that holds no data"):
        read_records(archive(tmp_path / "c.zip", **{".hidden": "x"}))
    path = archive(tmp_path / "d.zip", **{"a.csv": TEXT})
    data = bytearray(path.read_bytes())
    data[6] |= 1
    data[data.index(b"PK\x01\x02") + 8] |= 1
    path.write_bytes(bytes(data))
    with pytest.raises(RecordsError, match=r"d.zip is a zip archive with a password"):
        read_records(path)
    path = archive(tmp_path / "e.zip", **{"a.csv": TEXT})
    monkeypatch.setattr("comorb.records.sources.zipped._SPARE", 1 << 60)
    with pytest.raises(RecordsError, match=r"e.zip unpacks to 0.0 GB, and .* GB are free"):
        read_records(path)


def test_a_damaged_member(tmp_path):
    picked = random.Random(1)
    body = "".join(f"{i},{picked.choice(['4280', '25000'])},\n" for i in range(900))
    path = archive(tmp_path / "a.zip", **{"a.csv": "visit_id,dx1,dx2\n" + body})
    data = bytearray(path.read_bytes())
    data[200] ^= 0xFF
    path.write_bytes(bytes(data))
    with pytest.raises(RecordsError, match=r"a.zip is a damaged or cut-off zip archive; copy it"):
        read_records(path)
