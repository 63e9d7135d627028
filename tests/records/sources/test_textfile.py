"""Text as spreadsheets and old systems write it."""

import pytest

from comorb.errors import RecordsError
from comorb.records.reading import read_records
from tests.records.helpers import sets

SETS = {"1": {"428", "250"}, "2": {"V58"}}
LINES = ["visit_id,dx1,dx2,town", "1,428.0,250.00,Logroño", "2,V58.61,,Vic"]


def written(folder, data):
    path = folder / "file.csv"
    path.write_bytes(data)
    return read_records(path)


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "latin-1"])
@pytest.mark.parametrize("ends", ["\n", "\r\n", "\r"])
def test_encodings_and_line_ends(encoding, ends, tmp_path):
    cohort = written(tmp_path, (ends.join(LINES) + ends).encode(encoding))
    assert sets(cohort) == SETS
    assert cohort.covariates["town"].to_pylist() == ["Logroño", "Vic"]
    doubtful = ["read as Windows-1252" in note for note in cohort.ledger.notes]
    assert any(doubtful) is (encoding == "latin-1")


@pytest.mark.parametrize("last", ["\r\n", "\n", "\n\n", "\r\n\r\n"])
def test_line_ends_of_old_macs_with_another_at_the_end(last, tmp_path):
    assert sets(written(tmp_path, ("\r".join(LINES) + last).encode())) == SETS


def test_line_ends_of_two_systems(tmp_path):
    data = "\r\n".join(LINES[:2]) + "\r\n" + LINES[2] + "\n"
    assert sets(written(tmp_path, data.encode())) == SETS


def test_windows_letters_with_a_note(tmp_path):
    cohort = written(tmp_path, "visit_id,dx1,pays\n1,I10,5 € “x”\n2,J44,œ\n".encode("cp1252"))
    assert cohort.covariates["pays"].to_pylist() == ["5 € “x”", "œ"]
    assert cohort.ledger.notes == (
        "file.csv isn't in UTF-8 and was read as Windows-1252: letters beyond A to Z are wrong if "
        "it was written in another encoding",
    )


@pytest.mark.parametrize("first", ["sep=;\n", '"sep=;"\r\n', "SEP=;\r\n", "\ufeffsep=; \r"])
def test_a_line_that_tells_the_delimiter(first, tmp_path):
    end = first[-2:] if first.endswith("\r\n") else first[-1]
    text = first + end.join(line.replace(",", ";") for line in LINES) + end
    assert sets(written(tmp_path, text.encode())) == SETS


def test_a_column_named_sep(tmp_path):
    cohort = written(tmp_path, b"id,sep=x,dx1,dx2\n1,a,428.0,250.00\n2,b,V58.61,\n")
    assert sets(cohort) == SETS


def test_cells_that_are_formulas_of_a_text(tmp_path):
    rows = b'="visit_id",dx1,"=""dx2"""\n="001",="428.0",="250.00"\n"=""002""",V58.61,\n'
    assert sets(written(tmp_path, rows)) == {"001": {"428", "250"}, "002": {"V58"}}


def test_a_copy_that_is_cut_off_names_the_file(tmp_path):
    with pytest.raises(RecordsError, match=r"^file.csv, row 3: 1 fields where the header has 2"):
        written(tmp_path, "id,dx1\n1,I10\n2\n".encode("utf-16"))
