"""FHIR resources in NDJSON files."""

import json

import pytest

from comorb.errors import RecordsError
from comorb.records.read import inspect_records, read_records
from comorb.records.spec import CohortSpec
from comorb.records.stream import write_cohort
from tests.records.helpers import sets


def condition(patient, codings, encounter=None, status="confirmed", onset="2012-02-03"):
    return {
        "resourceType": "Condition",
        "id": "x",
        "subject": {"reference": f"Patient/{patient}"},
        **({"encounter": {"reference": f"Encounter/{encounter}"}} if encounter else {}),
        "code": {"coding": codings},
        "verificationStatus": {"coding": [{"code": status}]},
        "onsetDateTime": f"{onset}T10:00:00Z",
    }


def icd(code):
    return {"system": "http://hl7.org/fhir/sid/icd-10-cm", "code": code}


def snomed(code, display):
    return {"system": "http://snomed.info/sct", "code": code, "display": display}


def write_ndjson(path, resources):
    path.write_text("".join(json.dumps(resource) + "\n" for resource in resources))


@pytest.fixture
def bulk(tmp_path):
    write_ndjson(
        tmp_path / "Condition.000.ndjson",
        [
            condition("p1", [snomed("84114007", "Heart failure"), icd("I50.9")], "e1"),
            condition("p1", [icd("E11.9")], "e2", onset="2011-01-01"),
        ],
    )
    write_ndjson(
        tmp_path / "Condition.001.ndjson",
        [
            condition("p2", [icd("I50.1")], "e3"),
            condition("p2", [icd("C50.1")], "e3", status="refuted"),
            condition("p2", [snomed("1", "Only in the other system")], "e3"),
        ],
    )
    write_ndjson(
        tmp_path / "Patient.ndjson",
        [
            {"resourceType": "Patient", "id": "p1", "gender": "female", "birthDate": "1940-06-01"},
            {"resourceType": "Patient", "id": "p2", "gender": "male", "birthDate": "1950-01-01"},
        ],
    )
    return tmp_path


def test_fhir(bulk):
    found = inspect_records(bulk)
    assert (found.layout.kind, found.unit, found.system) == ("fhir", "patient", "icd10cm")
    cohort = read_records(bulk)
    assert sets(cohort) == {"p1": {"I50", "E11"}, "p2": {"I50"}}
    assert cohort.covariates["sex"].to_pylist() == ["female", "male"]
    assert cohort.covariates["age"].to_pylist() == [70.0, 62.0]
    assert [(line.rule, line.removed) for line in cohort.ledger.chain("rows")] == [
        ("read", 0),
        ("refuted or entered in error", 1),
        ("without a code", 1),
    ]
    assert sets(read_records(bulk, unit="visit")).keys() == {"e1", "e2", "e3"}


def test_fhir_in_one_file_with_names_of_its_own(tmp_path):
    write_ndjson(
        tmp_path / "export.ndjson", [condition("p1", [snomed("84114007", "Heart failure")])]
    )
    cohort = read_records(tmp_path / "export.ndjson")
    assert (cohort.codes, cohort.names, cohort.system) == (
        ("84114007",),
        ("Heart failure",),
        "opaque",
    )


def test_fhir_of_another_resource(tmp_path):
    write_ndjson(tmp_path / "export.ndjson", [{"resourceType": "Patient", "id": "p1"}])
    with pytest.raises(RecordsError, match=r"holds FHIR resources of type Patient; .* Condition"):
        read_records(tmp_path / "export.ndjson")


def test_fhir_dates_that_are_no_days_are_counted(tmp_path):
    resources = [condition(f"p{i}", [icd("I50.9")]) for i in range(3)]
    resources[2]["onsetDateTime"] = "2012"
    write_ndjson(tmp_path / "export.ndjson", resources)
    cohort = read_records(tmp_path / "export.ndjson")
    assert [str(day) for day in cohort.covariates["date"].to_pylist()] == [
        "2012-02-03",
        "2012-02-03",
        "None",
    ]
    assert cohort.ledger.notes == (
        "1 values of column 'date' can't be read as a date and are missing",
    )


RXNORM = "http://www.nlm.nih.gov/research/umls/rxnorm"
METFORMIN = {"coding": [{"system": RXNORM, "code": "860975", "display": "Metformin"}]}
ASPIRIN = {"coding": [{"system": RXNORM, "code": "1191", "display": "Aspirin"}]}


def request(patient, encounter, status="active", **what):
    return {
        "resourceType": "MedicationRequest",
        "id": f"{encounter}-{status}",
        "status": status,
        "subject": {"reference": f"Patient/{patient}"},
        "encounter": {"reference": f"Encounter/{encounter}"},
        "authoredOn": "2012-02-04",
        **what,
    }


def procedure(patient, encounter, status="completed"):
    return {
        "resourceType": "Procedure",
        "id": f"{patient}{status}",
        "status": status,
        "subject": {"reference": f"Patient/{patient}"},
        "encounter": {"reference": f"Encounter/{encounter}"},
        "code": {"coding": [snomed("19490002", "Ankle X-ray")]},
        "performedPeriod": {"start": "2012-02-04T10:00:00Z"},
    }


REQUESTS = [
    request("p1", "e1", medicationCodeableConcept=METFORMIN),
    request("p1", "e2", medicationReference={"reference": "Medication/m1"}),
    request("p2", "e3", medication={"concept": ASPIRIN}),
    request("p2", "e3", "cancelled", medicationCodeableConcept=METFORMIN),
    request("p3", "e9", medicationCodeableConcept=METFORMIN),
]
MEDICATIONS = [{"resourceType": "Medication", "id": "m1", "code": ASPIRIN}]
PROCEDURES = [procedure("p1", "e1"), procedure("p2", "e3", "not-done")]


@pytest.mark.parametrize("together", [False, True], ids=["bulk", "bundle"])
def test_all_kinds_of_fhir(bulk, together):
    more = {"MedicationRequest": REQUESTS, "Medication": MEDICATIONS, "Procedure": PROCEDURES}
    if together:
        entries = [{"resource": one} for some in more.values() for one in some]
        bundle = {"resourceType": "Bundle", "type": "collection", "entry": entries}
        (bulk / "more.json").write_text(json.dumps(bundle))
    else:
        for name, resources in more.items():
            write_ndjson(bulk / f"{name}.ndjson", resources)
    kinds = ("diagnosis", "drug", "procedure")
    cohort = read_records(bulk, kinds=kinds)
    assert sets(cohort) == {
        "p1": {"I50", "E11", "drug:860975", "drug:1191", "procedure:19490002"},
        "p2": {"I50", "drug:1191"},
    }
    names = dict(zip(cohort.codes, cohort.names, strict=True))
    assert (names["drug:1191"], names["procedure:19490002"]) == ("Aspirin", "Ankle X-ray")
    assert cohort.system == "icd10cm drug:opaque procedure:opaque"
    assert cohort.ledger.notes[-4:] == (
        "drug: 3 of 4 rows matched a record by patient id (patient); 1 have none",
        "drug: 1 rows cancelled or entered in error",
        "procedure: 1 of 1 rows matched a record by patient id (patient)",
        "procedure: 1 rows not done or entered in error",
    )
    by_visit = sets(read_records(bulk, kinds=kinds, unit="visit"))
    assert by_visit["e2"] == {"E11", "drug:1191"}


def test_fhir_of_drugs_alone(tmp_path):
    write_ndjson(tmp_path / "export.ndjson", REQUESTS)
    cohort = read_records({"drug": tmp_path / "export.ndjson"})
    assert sets(cohort) == {"p1": {"860975"}, "p2": {"1191"}, "p3": {"860975"}}


@pytest.mark.parametrize("parts", [False, True])
def test_visits_where_no_resource_names_an_encounter(parts, tmp_path):
    path = tmp_path / "export.ndjson"
    write_ndjson(path, [condition(f"p{i % 4}", [icd("I10")]) for i in range(12)])
    message = (
        r"^export.ndjson holds no row with an id of a visit; read with unit='patient', or name the "
        r"column that has it\.$"
    )
    preparation, out = CohortSpec(unit="visit", at_least=1), tmp_path / "cohort"
    with pytest.raises(RecordsError, match=message):
        write_cohort(path, out, preparation, "2GB") if parts else preparation.read(path)
    assert len(read_records(path, unit="patient")) == 4


def test_references_to_a_version_name_the_patient(tmp_path):
    resources = [condition(f"p{n}/_history/{n % 3 + 1}", [icd("E11.9")]) for n in range(5)]
    resources.append(condition("p0/_history/2", [icd("I10")]))
    write_ndjson(tmp_path / "Condition.ndjson", resources)
    found = sets(read_records(tmp_path / "Condition.ndjson"))
    assert found == {"p0": {"E11", "I10"}, **{f"p{n}": {"E11"} for n in range(1, 5)}}
