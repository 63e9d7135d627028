"""Roles: one table of what each column is, which never shows whom it is about."""

import pyarrow as pa
import pytest

from comorb.records import stream
from comorb.records.layouts.layout import Layout
from comorb.records.layouts.plan import ColumnRole
from comorb.records.read import inspect_records, read_records
from comorb.records.spec import CohortSpec

N = 40


def table(**more):
    columns = {
        "Fallnummer": [f"2020-{i:03d}" for i in range(N)],
        "Patient": [f"P{i // 2}" for i in range(N)],
        "Alter": ["70"] * 30 + ["71"] * 10,
        "Geschlecht": ["w"] * 20 + ["m"] * 20,
        "Aufnahmedatum": ["2020-01-05"] * N,
        "Entlassung": ["2020-01-09"] * N,
        "Verweildauer": ["4"] * 30 + ["5"] * 10,
        "verstorben": ["0"] * 25 + ["1"] * 15,
        "Wiederaufnahme": ["nein"] * 20 + ["ja"] * 20,
        "Kosten": [str(1000 + i) for i in range(N)],
        "Krankenhaus": ["Nord"] * 20 + ["Süd"] * 20,
        "Station": [f"S{i % 3}" for i in range(N)],
        "ICD1": ["I10"] * 20 + ["E11.9"] * 20,
        "ICD2": ["I50.9"] * 15 + ["N18.3"] * 15 + [None] * 10,
    }
    return pa.table(columns | more)


def roles(records, **given) -> dict[str, ColumnRole]:
    return {one.name: one for one in inspect_records(records, **given).columns}


def test_each_column_has_one_role():
    found = roles(table())
    assert {name: one.role for name, one in found.items()} == {
        "Fallnummer": "id",
        "Patient": "patient",
        "Alter": "age",
        "Geschlecht": "sex",
        "Aufnahmedatum": "date",
        "Entlassung": "category",
        "Verweildauer": "los",
        "verstorben": "died",
        "Wiederaufnahme": "readmitted",
        "Kosten": "cost",
        "Krankenhaus": "site",
        "Station": "category",
        "ICD1": "codes",
        "ICD2": "codes",
    }
    assert found["ICD2"].missing == 0.25
    assert found["ICD2"].values == ()
    assert roles(table().drop_columns(["Patient"]))["ICD2"].values == ("I50.9", "N18.3")


def test_ids_and_what_few_patients_have_are_never_shown():
    found = roles(table())
    assert found["Fallnummer"].values == found["Patient"].values == ()
    assert found["Alter"].values == ("70",)
    assert found["Verweildauer"].values == ("4",)
    assert found["Kosten"].values == ()
    assert found["Geschlecht"].values == ()
    alone = table().drop_columns(["Patient"])
    assert roles(alone)["Geschlecht"].values == ("m", "w")
    rare = pa.array(["a"] * 10 + ["b"] * 30)
    assert roles(alone.append_column("ward", rare))["ward"].values == ("b",)


def test_rows_of_one_patient_count_once():
    rows = pa.table(
        {
            "patient_id": ["one"] * 30 + [f"p{i}" for i in range(30)],
            "code": [f"I{10 + i}" for i in range(30)] + ["E11"] * 30,
            "site": ["rare"] * 30 + ["usual"] * 30,
        }
    )
    found = roles(rows, layout=Layout(patient="patient_id"))
    assert found["site"].values == ("usual",)
    assert found["code"].values == ("E11",)


def test_ids_that_are_not_known_as_such_are_not_shown():
    rows = pa.table(
        {
            "x": [str(17_000 + i // 15) for i in range(1500)],
            "y": ["ward", "ambulance", "home"] * 500,
            "dx1": ["I10"] * 1500,
            "dx2": ["E11"] * 1500,
        }
    )
    found = roles(rows)
    assert (found["x"].role, found["x"].values) == ("number", ())
    assert found["y"].values == ("ambulance", "home", "ward")


@pytest.mark.parametrize(
    ("values", "role", "reason"),
    [
        ([f"note {i}" for i in range(N)], "ignored", "every value differs"),
        (["same"] * N, "category", "one value only"),
        (["7"] * N, "number", "one value only"),
        (
            ["the patient was seen in the ward and went home " * 2, "b"] * 20,
            "ignored",
            "a long text",
        ),
        (["a long story of what the patient said and did, no. 1", "no. 2"] * 20, "category", ""),
        (
            [f"D{i % 10}" for i in range(N)],
            "category",
            "more than 8 different values: the most common are shown",
        ),
        (
            [f"2020-01-{1 + i % 28:02d}" for i in range(N)],
            "ignored",
            "a date beside that of the record",
        ),
        (
            [f"202001{1 + i % 28:02d}" for i in range(N)],
            "ignored",
            "a date beside that of the record",
        ),
        ([None] * N, "ignored", "it holds nothing"),
        (["NA", ""] * 20, "ignored", "it holds nothing"),
        (["1", "2"] * 20, "category", ""),
        ([str(i / 4) for i in range(N)], "number", ""),
    ],
)
def test_why_a_column_is_not_used(values, role, reason):
    found = roles(table(extra=pa.array(values, pa.string())))["extra"]
    assert (found.role, found.reason) == (role, reason)


def test_a_weight_is_only_guessed():
    weights = pa.array([str(1 + i / 7) for i in range(N)])
    records = table(survey_weight=weights)
    found = roles(records)["survey_weight"]
    assert (found.role, found.reason) == ("number", "it may be a weight: say so if it is")
    assert roles(records, layout=Layout(weight="survey_weight"))["survey_weight"].role == "weight"


def test_what_differs_within_a_record_is_said():
    rows = pa.table({"id": ["a", "a"] * 12, "code": ["I10", "E11"] * 12, "rank": ["1", "2"] * 12})
    assert roles(rows)["rank"] == ColumnRole(
        "rank", "ignored", (), 0.0, "it differs within a record"
    )


def test_a_share_that_is_missing_never_says_how_few():
    some = pa.array([None] + ["x"] * 299 + ["y"] * 300)
    records = pa.table({"dx1": ["I10"] * 600, "dx2": ["E11"] * 600, "ward": some})
    assert roles(records)["ward"].missing == 0.01
    most = pa.array(["x"] + [None] * 599)
    assert roles(records.set_column(2, "ward", most))["ward"].missing == 0.99


def test_items_show_no_values():
    items = pa.table({name: ["1", "0"] * 20 for name in ("asthma", "gout")} | {"sex": ["F"] * 40})
    found = roles(items)
    assert found["asthma"] == ColumnRole("asthma", "codes")
    assert found["sex"].values == ("F",)


def test_of_views_the_columns_are_those_that_are_read(tmp_path):
    (tmp_path / "condition_occurrence.csv").write_text(
        "person_id,condition_concept_id,condition_start_date\n"
        + "".join(f"{i},{201820 + i % 2},2020-01-01\n" for i in range(30))
    )
    found = roles(str(tmp_path))
    assert [one.role for one in found.values()] == ["id", "patient", "codes", "date"]
    assert found["code"].values == ("201820", "201821")


def test_roles_are_corrected():
    layout = Layout(
        los="Kosten", category=("verstorben",), number=("Station",), ignored=("Krankenhaus",)
    )
    found = roles(table(Station=[str(i % 3) for i in range(N)]), layout=layout)
    assert found["Kosten"].role == "los"
    assert found["verstorben"].role == "category"
    assert found["Station"].role == "number"
    assert (found["Krankenhaus"].role, found["Krankenhaus"].reason) == ("ignored", "as you said")
    assert found["Krankenhaus"].values == ()


def test_corrected_roles_are_covariates_of_that_name_and_kind():
    layout = Layout(
        los="Kosten", category=("Verweildauer",), number=("Station",), ignored=("Krankenhaus",)
    )
    station = pa.array(["1", "2", "unknown", "4"] * 10)
    cohort = read_records(table(Station=station), layout=layout)
    kinds = {field.name: str(field.type) for field in cohort.covariates.schema}
    assert kinds["los"] == "int64"
    assert kinds["Verweildauer"] == "string"
    assert kinds["Station"] == "double"
    assert "Krankenhaus" not in kinds
    assert {"died", "readmitted"} <= kinds.keys()
    assert cohort.covariates["Station"].null_count == 10


@pytest.mark.parametrize("shape", ["wide", "long"])
def test_parts_have_the_same_covariates_as_the_whole(shape, monkeypatch):
    monkeypatch.setattr(stream, "PART_ROWS", 7)
    records = table(
        Kosten=pa.array(["1.000,50", "12", "?", "none"] * 10),
        Station=pa.array(["1", "x", "3", "4"] * 10),
        Entlassung=pa.array(["20200109", "20191231"] * 20),
    ).sort_by("Fallnummer")
    if shape == "long":
        codes = [
            records.drop_columns(["ICD1", "ICD2"]).append_column("ICD", records[name])
            for name in ("ICD1", "ICD2")
        ]
        records = pa.concat_tables(codes)
    said = Layout(category=("Verweildauer",), number=("Station",), ignored=("Krankenhaus",))
    asked = CohortSpec(layout=said)
    whole = asked.read(records).covariates
    with stream.open_parts(records, asked) as pieces:
        joined = pa.concat_tables([piece.covariates for piece in pieces])
    assert joined.schema == whole.schema
    assert joined.to_pylist() == whole.to_pylist()
    assert (
        str(whole.schema.field("cost").type) == str(whole.schema.field("Station").type) == "double"
    )
    assert str(whole.schema.field("Entlassung").type) == "date32[day]"
    assert whole["cost"].to_pylist()[:3] == [1000.5, 12, None]


def test_a_table_that_no_reader_understands_has_columns_too():
    strange = table().select(["Fallnummer", "Alter", "Station"])
    found = {one.name: one.role for one in CohortSpec().columns(strange)}
    assert found == {"Fallnummer": "id", "Alter": "age", "Station": "category"}
    assert CohortSpec().columns(strange.slice(0, 10)) == ()


def test_a_hospital_with_many_values_is_never_silently_dropped(tmp_path):
    lines = [f"{i},428,585,401,H{i // 2},{470 + i % 30}" for i in range(400)]
    path = tmp_path / "visits.csv"
    path.write_text("\n".join(["visit_id,dx1,dx2,dx3,PRVDR_NUM,CLM_DRG_CD", *lines, ""]))
    read = CohortSpec().open(path, least=11)
    roles = {column.name: (column.role, column.reason) for column in read.columns}
    assert roles["PRVDR_NUM"] == ("category", "it may be the hospital: say so if it is")
    assert roles["CLM_DRG_CD"][0] in ("category", "number")
    assert {"PRVDR_NUM", "CLM_DRG_CD"} <= set(read.cohort.covariates.column_names)
    said = CohortSpec(layout=Layout(site="PRVDR_NUM")).open(path, least=11)
    assert "site" in said.cohort.covariates.column_names
