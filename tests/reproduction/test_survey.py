import gzip

import pytest

from comorb_reproduction.survey import TERTIARY, expanded, paper_studies


@pytest.fixture
def survey(tmp_path):
    path = tmp_path / "nhds2010.csv.gz"
    rows = [
        "record_id,age_years,sex,drg,dx1,dx2,dx3,dx4",
        "1,70,female,1,4280,25000,40190,2724",
        "2,71,male,1,0389,5849,42832,",
        "3,72,male,1,1970,1629,2859,",
        "4,30,female,1,65001,V270,V3000,",
        "5,80,female,1,41401,4019,,",
    ]
    path.write_bytes(gzip.compress("\n".join(rows).encode()))
    return path


def test_cohorts_are_chosen_by_code(survey):
    heart, tertiary = paper_studies(survey)
    assert heart.cohort.ids.to_pylist() == ["1", "2"]
    assert tertiary.cohort.ids.to_pylist() == ["2", "3"]
    assert "038" in tertiary.cohort.codes
    assert (heart.k, tertiary.k) == (5, 6)


def test_without_the_file_the_cohorts_are_built_in(tmp_path):
    heart, tertiary = paper_studies(tmp_path / "missing.csv")
    assert (len(heart.cohort), len(tertiary.cohort)) == (23_154, 16_311)


def test_spans_cover_the_papers_list():
    codes = {name: expanded(spans) for name, spans in TERTIARY.items()}
    assert {"154", "162", "197"} <= codes["oncology"]
    assert "173" not in codes["oncology"]
    assert codes["sepsis"] == {"038"}
