"""The recipes of docs/records.md: each command runs, and its figures are those of the samples."""

import csv
import json
import re
import shlex
from pathlib import Path

import pytest

DATA = Path(__file__).parents[3] / "shared" / "data"
PAGE = (Path(__file__).parents[2] / "docs" / "records.md").read_text("utf-8")
RECIPES = re.findall(r"^\| (.+?) \| `comorb (fit .+?)` \| (.+) \|$", PAGE, re.MULTILINE)
SAMPLES = {
    "mimic": "zoo/mimic3demo",
    "omop": "zoo/eunomia",
    "fhir": "zoo/fhir",
    "mdcr.csv.gz": "zoo/mdcr.csv.gz",
    "nhds2010.csv.gz": "nhds2010.csv.gz",
    "synpuf_inpatient.csv.gz": "synpuf_inpatient.csv.gz",
}
CONDITIONS = [("44054006", "Diabetes"), ("38341003", "Hypertension"), ("13644009", "Lipids")]
DRUGS = [("860975", "Metformin 500 MG"), ("314076", "Lisinopril 10 MG")]


def write(path, header, rows):
    with path.open("w", newline="", encoding="utf-8") as file:
        csv.writer(file).writerows([header.split(","), *rows])


def write_eicu(folder):
    header = "diagnosisid,patientunitstayid,activeupondischarge,diagnosisoffset,diagnosisstring,"
    codes = ["518.81, J96.00", "428.0, I50.9", "", "585.9, N18.9", "250.00, E11.9"]
    rows = [
        (5 * stay + place, 141_000 + stay, "True", 7 * place, f"organ|part {place}", code, "Major")
        for stay in range(60)
        for place, code in enumerate(codes)
        if (stay + place) % 4
    ]
    write(folder / "diagnosis.csv", header + "icd9code,diagnosispriority", rows)


def write_synthea(folder):
    people, visits, conditions, drugs = [], [], [], []
    for one in range(60):
        person, visit = f"p-{one:04}-a", f"e-{one:04}-b"
        people.append((person, f"19{30 + one % 50}-03-01", "", "white", "F" if one % 2 else "M"))
        day = f"2019-05-{1 + one % 28:02}"
        visits.append((visit, f"{day}T08:00:00Z", person, "ambulatory", 120 + one))
        for place, (code, name) in enumerate(CONDITIONS):
            if (one + place) % 5:
                conditions.append((day, "", person, visit, code, name))
        drugs.append((f"{day}T09:00:00Z", "", person, visit, *DRUGS[one % 2], 10.5))
    write(folder / "patients.csv", "Id,BIRTHDATE,DEATHDATE,RACE,GENDER", people)
    header = "Id,START,PATIENT,ENCOUNTERCLASS,TOTAL_CLAIM_COST"
    write(folder / "encounters.csv", header, visits)
    write(folder / "conditions.csv", "START,STOP,PATIENT,ENCOUNTER,CODE,DESCRIPTION", conditions)
    header = "START,STOP,PATIENT,ENCOUNTER,CODE,DESCRIPTION,BASE_COST"
    write(folder / "medications.csv", header, drugs)


@pytest.fixture
def run(comorb, tmp_path):
    for name, sample in SAMPLES.items():
        if (DATA / sample).exists():
            Path(name).symlink_to(DATA / sample)
    write_eicu(tmp_path)
    write_synthea(tmp_path)

    def done(*words):
        result = comorb(*words)
        assert result.exit_code == 0, result.output
        return result.stdout

    return done


def test_there_is_a_recipe_for_each():
    named = " ".join(data for data, _, _ in RECIPES)
    wanted = ["MIMIC", "eICU", "OMOP", "Synthea", "FHIR", "NHDS", "HCUP", "SynPUF"]
    assert [name for name in wanted if name not in named] == []


@pytest.mark.parametrize(("data", "command", "reads"), RECIPES, ids=[one[0] for one in RECIPES])
def test_a_recipe(data, command, reads, run):
    _, source, *options = shlex.split(command)
    if not Path(source).exists():
        pytest.skip(f"{source} isn't at hand")
    run("fit", source, *options, "-k", 2, "--at-least", 1, "-o", "run", "--quiet")
    assert Path("run/report.html").is_file()
    if "--having" in options:
        options = []
    seen = json.loads(run("inspect", source, *options, "--json"))
    for records, features in re.findall(r"([\d,]+) \w+ × ([\d,]+)", reads):
        assert f"{seen['records']:,} {seen['features']:,}" == f"{records} {features}"
    if data == "Synthea":
        common = sorted(name for _, name, _ in seen["most_common"][:3])
        assert common == sorted(name for _, name in CONDITIONS)
        assert {"age", "sex", "date"} <= set(seen["covariates"])
    if data == "eICU":
        assert (seen["records"], seen["layout"]["codes"]) == (60, ["icd9code"])
