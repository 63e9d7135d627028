import zipfile

import openpyxl
import pytest

from comorb.records.sources.number_formats import shown_zeros


def formatted(path, **formats):
    workbook = openpyxl.Workbook()
    for place, shown in formats.items():
        workbook.active[place] = 38.5
        workbook.active[place].number_format = shown
    workbook.save(path)
    return path


def test_formats_that_keep_zeros(tmp_path):
    path = formatted(tmp_path / "a.xlsx", A1="0.00", C2="000", AB3="00000.0", B4="General", D5="0")
    assert shown_zeros(path, "Sheet") == {(0, 0): (1, 2), (1, 2): (3, 0), (2, 27): (5, 1)}


def test_other_sheets_files_and_formats(tmp_path):
    path = formatted(tmp_path / "a.xlsx", A1="0.00")
    assert shown_zeros(path, "absent") == {}
    assert shown_zeros(formatted(tmp_path / "b.xlsx", A1="#,##0"), "Sheet") == {}
    path.write_bytes(b"no archive")
    assert shown_zeros(path, "Sheet") == {}


@pytest.mark.parametrize("part", ["xl/styles.xml", "xl/workbook.xml"])
def test_entities_are_not_expanded(part, tmp_path):
    path = formatted(tmp_path / "a.xlsx", A1="0.00")
    with zipfile.ZipFile(path) as archive:
        parts = {name: archive.read(name) for name in archive.namelist()}
    parts[part] = b'<!DOCTYPE x [<!ENTITY a "aaa">]>' + parts[part].partition(b"?>")[2]
    with zipfile.ZipFile(path, "w") as archive:
        for name, data in parts.items():
            archive.writestr(name, data)
    assert shown_zeros(path, "Sheet") == {}
