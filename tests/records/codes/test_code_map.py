"""A map of one's own: however it is written, read whole or refused."""

import json

import pytest

from comorb.errors import RecordsError
from comorb.records.codes.code_map import CodeMap, Line, open_map, read_map
from comorb.records.codes.systems import coding_system

EXPECTED = (Line("428", "hf"), Line("E11.9", "dm"), Line("E11.9", "any"))


def written(tmp_path, text, encoding="utf-8"):
    path = tmp_path / "groups.csv"
    path.write_bytes(text.encode(encoding))
    return path


@pytest.mark.parametrize(
    "text",
    [
        "428,hf\nE11.9,dm\nE11.9,any\n",
        "code,group\n428,hf\nE11.9,dm\nE11.9,any\n",
        "Group;ICD10\nhf;428\ndm;E11.9\nany;E11.9\n",
        "condition\tprefix\nhf\t428\n\ndm\tE11.9\nany\tE11.9\n",
        "icd_code|phecode\r\n428|hf\r\nE11.9|dm\r\nE11.9|any\r\n",
        '"ICD-9-CM CODE","CCS CATEGORY"\n" 428 ","hf"\n"E11.9","dm"\n"E11.9","any"\n',
        "'ICD-9-CM CODE','CCS CATEGORY'\n'428  ','hf'\n'E11.9','dm'\n'E11.9','any'\n",
        "\ufeffcode,group\n428,hf\n428,hf\nE11.9,dm\nE11.9,any\n",
    ],
)
def test_ways_to_write_a_map(tmp_path, text):
    read = read_map(written(tmp_path, text))
    assert read.lines == EXPECTED
    assert read.names == read.notes == ()
    assert read.titles == {"hf": "hf", "dm": "dm", "any": "any"}


def test_names_systems_and_other_columns(tmp_path):
    text = "ICD,ICD String,vocabulary_id,PheCode,Phenotype\nV58,x,ICD9CM,1,Après\nV58,y,,2,\n"
    for encoding in ("utf-8", "latin-1"):
        read = read_map(written(tmp_path, text, encoding))
        assert read.lines == (Line("V58", "1", "icd9cm"), Line("V58", "2"))
        assert read.names == (("1", "Après"),)
        assert read.titles == {"1": "Après", "2": "2"}


def test_without_a_header_the_third_column_is_the_name(tmp_path):
    read = read_map(written(tmp_path, "428,hf,Heart failure\n429,hf,\n"))
    assert read.names == (("hf", "Heart failure"),)


def test_lines_without_a_group_are_counted(tmp_path):
    read = read_map(written(tmp_path, "code,group\n428,hf\n429,\n,x\n"))
    assert read.notes == ("2 lines of the map groups.csv have no code or no group",)


def test_spans_and_open_lines(tmp_path):
    read = read_map(written(tmp_path, "I20-I22,ihd\nI20.0–I20.1,angina\nI2*,heart\n"))
    assert read.lines == (
        Line("I20", "ihd"),
        Line("I21", "ihd"),
        Line("I22", "ihd"),
        Line("I200", "angina"),
        Line("I201", "angina"),
        Line("I2", "heart", open=True),
    )


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "groups.csv has no two columns"),
        ("428\n429\n", "has no two columns; write code, group"),
        ('"428,1"\n"429,1"\n', "has no two columns; write code, group"),
        ("code,group\n", "holds no line with a code and a group"),
        ("a,b,c,d\n1,2,3,4\n", "has 4 columns, and their names don't tell which are which"),
        ("icd9,icd10,x,group\n1,2,3,4\n", "has 4 columns, and their names don't tell"),
        ("428,hf\n429,h,f\n", "line 2: expected 2 columns as in the first line, got 3; put quotes"),
        ("428,hf,One\n429,hf,Two\n", "line 2: a group has another name here than before"),
        ("code,group,system\n428,hf,klingon\n", "line 2: the coding system isn't known"),
        ("A10-B20,x\n", "line 1: .* nor a span such as I20-I25; write a line for each code"),
        ("428,hf\n*,x\n", "line 2: .* neither a code"),
        ("428,hf\0\n", "groups.csv is no text; save it as CSV in UTF-8"),
    ],
)
def test_what_is_refused(tmp_path, text, message):
    with pytest.raises(RecordsError, match=message):
        read_map(written(tmp_path, text))


def test_a_file_that_is_not_there(tmp_path):
    with pytest.raises(RecordsError, match=r"none.csv can't be read: No such file"):
        read_map(tmp_path / "none.csv")


def test_to_json_and_back(tmp_path):
    read = read_map(written(tmp_path, "code,group,name,system\n428*,hf,Failure,9\n,x,,\n"))
    assert CodeMap.from_dict(json.loads(json.dumps(read.to_dict()))) == read
    assert read.name == "groups.csv"
    assert len(read.digest) == 16
    assert open_map(read) is read
    assert open_map(None) is None
    assert open_map(read.file) == read


def groups(lines, system, code):
    return CodeMap("m", "", lines).index(coding_system(system)).groups(code)


@pytest.mark.parametrize(
    ("line", "system", "code", "has"),
    [
        ("428", "icd9cm", "42823", True),
        ("428.x", "icd9cm", "42823", True),
        ("428.2", "icd9cm", "42823", True),
        ("428.-", "icd9cm", "4280", True),
        ("428.2", "icd9cm", "4280", False),
        ("8.45", "icd9cm", "00845", True),
        ("38", "icd9cm", "3804", True),
        ("38", "icd9cm", "0380", False),
        ("e11", "icd10", "E119", True),
        ("I10X", "icd10", "I10", True),
        ("T36.0X", "icd10cm", "T360X1A", True),
        ("C", "icd10", "C509", True),
        ("73211009", "opaque", "73211009", True),
        ("7321", "opaque", "73211009", False),
        ("K7", "opaque", "K74", True),
        ("G30..", "opaque", "g30..", False),
    ],
)
def test_a_line_stands_for_what_begins_with_it(line, system, code, has):
    assert groups((Line(line, "g"),), system, code) == (("g",) if has else ())


def test_the_nearest_line_counts_and_open_ones_beside_it():
    lines = (Line("I25", "ihd"), Line("I25.5", "hf"), Line("I", "heart", open=True))
    assert groups(lines, "icd10", "I251") == ("heart", "ihd")
    assert groups(lines, "icd10", "I255") == ("heart", "hf")
    index = CodeMap("m", "", lines).index(coding_system("icd10"))
    assert index.is_covered("I255")
    assert not index.is_covered("I251")
    assert not index.is_covered("A00")


def test_lines_of_a_system_speak_of_its_family():
    lines = (Line("V58", "nine", "icd9cm"), Line("V58", "ten", "icd10cm"))
    assert groups(lines, "icd9cm", "V5861") == ("nine",)
    assert groups(lines, "icd10", "V58") == ("ten",)
    assert groups(lines, "opaque", "V58") == ()
