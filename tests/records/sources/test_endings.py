import pytest

from comorb.records.sources.endings import ending_of, table_name


@pytest.mark.parametrize(
    ("file", "name", "ending"),
    [
        ("VISITS.csv.gz", "VISITS", ".csv.gz"),
        ("a.b.parquet", "a.b", ".parquet"),
        ("visits", "visits", ""),
        (".csv", ".csv", ".csv"),
        ("x.SAV", "x", ".sav"),
        ("notes.docx", "notes.docx", ""),
        ("visits.gz", "visits.gz", ""),
    ],
)
def test_a_name_is_that_of_a_table_and_an_ending(file, name, ending):
    assert (table_name(file), ending_of(file)) == (name, ending)
