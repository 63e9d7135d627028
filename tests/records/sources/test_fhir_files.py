"""FHIR Bundles, lists and mixed lines give the cohort of a bulk export."""

import gzip
import json
import random
from pathlib import Path

import pytest

from comorb.errors import RecordsError
from comorb.records.read import inspect_records, read_records
from tests.records.helpers import sets
from tests.records.layouts.test_fhir import condition, icd

ZOO = Path(__file__).parents[4] / "shared" / "data" / "zoo" / "fhir"


def numbered(*resources):
    return [{**resource, "id": f"r{i}"} for i, resource in enumerate(resources)]


CONDITIONS = numbered(
    condition("p1", [icd("I50.9")], "e1"),
    condition("p1", [icd("E11.9")], "e2", onset="2011-01-01"),
    condition("p2", [icd("I50.1")], "e3"),
    condition("p2", [icd("C50.1")], "e3", status="refuted"),
)
PATIENTS = [
    {"resourceType": "Patient", "id": "p1", "gender": "female", "birthDate": "1940-06-01"},
    {"resourceType": "Patient", "id": "p2", "gender": "male", "birthDate": "1950-01-01"},
]
OTHERS = [
    {"resourceType": "Observation", "id": "o1", "code": {"coding": [icd("Z99.9")]}},
    {"resourceType": "Procedure", "id": "o2", "code": {"coding": [icd("Z98.9")]}},
]
EVERY = [*PATIENTS, *CONDITIONS, *OTHERS]


def bundle(resources, **more):
    entries = [{"fullUrl": f"urn:uuid:{r['id']}", "resource": r} for r in resources]
    return {"resourceType": "Bundle", "type": "collection", **more, "entry": entries}


def lines(resources):
    return "".join(json.dumps(resource) + "\n" for resource in resources)


def shuffled(resources):
    return random.Random(5).sample(resources, len(resources))


def write(path, text):
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(gzip.compress(text.encode()) if path.suffix == ".gz" else text.encode())
    return path


def one_each(folder):
    for i, resource in enumerate(EVERY):
        write(folder / f"{i}.json", json.dumps(resource, indent=1))
    return folder


def two_bundles(folder):
    write(folder / "a.json", json.dumps(bundle(EVERY[::2])))
    write(folder / "b.json", json.dumps(bundle(EVERY[1::2]), indent=2))
    return folder


def bulk_and_bundle(folder):
    write(folder / "Condition.000.ndjson", lines(CONDITIONS))
    write(folder / "Patient.000.ndjson.gz", lines(PATIENTS))
    write(folder / "bundle.json", json.dumps(bundle(EVERY[:4])))
    return folder


WAYS = {
    "a bundle": lambda f: write(f / "a.json", json.dumps(bundle(EVERY), indent=2)),
    "a bundle in one line": lambda f: write(f / "a.json", json.dumps(bundle(EVERY))),
    "a packed bundle": lambda f: write(f / "a.json.gz", json.dumps(bundle(shuffled(EVERY)))),
    "a byte order mark": lambda f: write(f / "a.json", "\ufeff" + json.dumps(bundle(EVERY))),
    "a list": lambda f: write(f / "a.json", json.dumps(shuffled(EVERY), indent=1)),
    "a list of bundles": lambda f: write(
        f / "a.json", json.dumps([bundle(EVERY[:3]), bundle(EVERY[3:])])
    ),
    "lines": lambda f: write(f / "a.ndjson", lines(shuffled(EVERY))),
    "lines by type": lambda f: write(f / "a.ndjson", lines(EVERY)),
    "lines of bundles": lambda f: write(
        f / "a.ndjson", lines([bundle(EVERY[:3]), bundle(EVERY[3:])])
    ),
    "a file each": one_each,
    "two bundles": two_bundles,
    "a bulk export and a bundle": bulk_and_bundle,
}


@pytest.mark.parametrize("way", WAYS)
def test_every_way_gives_the_same_cohort(way, tmp_path):
    cohort = read_records(WAYS[way](tmp_path / "data"))
    assert sets(cohort) == {"p1": {"I50", "E11"}, "p2": {"I50"}}
    assert cohort.covariates["sex"].to_pylist() == ["female", "male"]
    assert cohort.covariates["age"].to_pylist() == [70.0, 62.0]
    assert ("refuted or entered in error", 1) in [
        (line.rule, line.removed) for line in cohort.ledger.chain("rows")
    ]
    repeated = "4 FHIR resources are there twice; the last of each was kept"
    assert cohort.ledger.notes == ((repeated,) if way == "a bulk export and a bundle" else ())


def test_references_to_the_urls_of_entries(tmp_path):
    patient = {key: value for key, value in PATIENTS[0].items() if key != "id"}
    entries = [
        {"fullUrl": "urn:uuid:p1", "resource": patient},
        {"resource": {**CONDITIONS[0], "subject": {"reference": "urn:uuid:p1"}}},
    ]
    path = write(tmp_path / "a.json", json.dumps({"resourceType": "Bundle", "entry": entries}))
    assert read_records(path).covariates["age"].to_pylist() == [71.0]


def test_a_page_of_a_search(tmp_path):
    link = [{"relation": "self", "url": "x"}, {"relation": "next", "url": "y"}]
    path = write(tmp_path / "a.json", json.dumps(bundle(EVERY, link=link)))
    assert read_records(path).ledger.notes == (
        "the Bundles name a next page that isn't here, so records may be missing",
    )
    write(tmp_path / "b.json", json.dumps(bundle([{**OTHERS[0], "id": "o3"}], link=link[:1])))
    assert read_records(tmp_path).ledger.notes == ()


def test_tables_by_type(tmp_path):
    path = write(tmp_path / "a.json", json.dumps(bundle(EVERY)))
    with pytest.raises(RecordsError, match=r"has no table 'Observation'; the nearest are cond"):
        read_records(path, table="Observation")
    with pytest.raises(RecordsError, match=r"a.json holds no row with an id"):
        read_records(path, table="Procedure")
    named = {**OTHERS[1], "subject": {"reference": "Patient/p1"}}
    path = write(tmp_path / "a.json", json.dumps(bundle([*PATIENTS, *CONDITIONS, named])))
    assert read_records(path, table="Procedure").ids.to_pylist() == ["p1"]


def test_what_holds_no_conditions(tmp_path):
    path = write(tmp_path / "a.json", json.dumps(bundle(OTHERS[:1])))
    with pytest.raises(RecordsError, match=r"a.json holds FHIR resources of type Observation; rec"):
        read_records(path)
    path = write(tmp_path / "a.json", json.dumps(bundle([])))
    with pytest.raises(RecordsError, match=r"a.json holds FHIR resources of type no type at all"):
        read_records(path)


def test_conditions_of_nobody(tmp_path):
    entries = [1, {"resource": None}, {"resource": {"resourceType": "Condition"}}]
    path = write(tmp_path / "a.json", json.dumps({"resourceType": "Bundle", "entry": entries}))
    with pytest.raises(RecordsError, match=r"a.json holds no row with an id"):
        read_records(path)


def test_a_bundle_that_is_cut_off(tmp_path):
    path = write(tmp_path / "a.json", json.dumps(bundle(EVERY), indent=1)[:-300])
    with pytest.raises(RecordsError, match=r"a.json.*: not a JSON object; .* if it is cut off"):
        read_records(path)


def test_plain_objects_in_a_list(tmp_path):
    rows = [{"id": "007", "codes": ["428.0", "250.00"]}, {"id": "008", "codes": ["001.0"]}]
    path = write(tmp_path / "export.json", json.dumps(rows, indent=2))
    assert sets(read_records(path)) == {"007": {"428", "250"}, "008": {"001"}}


def test_the_zoo():
    if not ZOO.is_dir():
        pytest.skip("needs ../shared/data/zoo beside the project, which is absent")
    with gzip.open(ZOO / "Condition.000.ndjson.gz", "rt") as stream:
        subjects = {json.loads(line)["subject"]["reference"] for line in stream}
    entries = json.loads((ZOO / "bundle.json").read_text())["entry"]
    found = [e["resource"] for e in entries if e["resource"]["resourceType"] == "Condition"]
    codes = {c["code"]["coding"][0]["code"] for c in found}
    seen = inspect_records(ZOO / "bundle.json")
    assert (seen.records, seen.features) == (1, len(codes))
    assert inspect_records(ZOO).records == len(
        {s.rpartition("/")[2] for s in subjects}
        | {c["subject"]["reference"].replace(":", "/").rpartition("/")[2] for c in found}
    )
