"""CohortSpec: rules in their order, and all that follows from a field's declaration."""

import json
from dataclasses import dataclass, fields
from inspect import signature
from typing import Annotated

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import typer
from pydantic import BaseModel, ValidationError
from typer.testing import CliRunner

from comorb.cli.options import spec_options
from comorb.errors import EmptyCohortError, RecordsError
from comorb.fields import Bounds, Form, Texts, declare, question_of, rules_of
from comorb.records.codes.code_map import CodeMap, Line
from comorb.records.cohort_file import CohortFile, load_cohort
from comorb.records.definitions import RULES
from comorb.records.distributed.read import distribute_cohort, read_dask, read_spark
from comorb.records.features import FeatureSpec
from comorb.records.layouts.layout import Layout
from comorb.records.read import count_left, inspect_records, read_records
from comorb.records.spec import READING, CohortSpec, Preparation
from comorb.records.stream import write_cohort
from comorb.web.server.data_api import takes

RECORDS = pa.table(
    {
        "id": ["a", "b", "c", "d", "e"],
        "dx1": ["428.0", "428.1", "250.00", "428.0", "428.9"],
        "dx2": ["401.9", "401.1", "401.9", "428.9", "585.9"],
        "dx3": ["585.9", None, "272.4", None, "250.00"],
        "age": [70, 80, 60, 50, 40],
        "sex": ["F", "M", "F", "F", "M"],
        "admission_date": ["2010-01-05", "2010-02-05", "2010-03-05", "2010-04-05", "2010-05-05"],
        "copies": [1.0, 2.0, 3.0, 4.0, 5.0],
    }
)


def ids(preparation: CohortSpec) -> list[str]:
    return preparation.cohort(RECORDS).ids.to_pylist()


def test_by_default_the_paper_s_rule_holds():
    assert ids(CohortSpec()) == ["a", "c", "e"]


@pytest.mark.parametrize(
    ("rules", "kept"),
    [
        ({"at_least": 1}, ["a", "b", "c", "d", "e"]),
        ({"at_least": 2}, ["a", "b", "c", "e"]),
        ({"having": ("428",)}, ["a", "e"]),
        ({"having": ("272", "250")}, ["c", "e"]),
        ({"without": ("401",)}, ["e"]),
        ({"age": (50, None)}, ["a", "c"]),
        ({"sex": ("m",)}, ["e"]),
        ({"dates": ("2010-02-01", "2010-04-01")}, ["c"]),
    ],
)
def test_each_rule_keeps_what_it_says(rules, kept):
    assert ids(CohortSpec(**rules)) == kept


def test_codes_are_dropped_after_the_records_are_chosen():
    cohort = CohortSpec(having=("428",), drop_codes=("428",)).cohort(RECORDS)
    assert cohort.ids.to_pylist() == ["a", "e"]
    assert cohort.codes == ("250", "401", "585")
    assert CohortSpec(at_least=1, drop_rare=3).cohort(RECORDS).codes == ("401", "428")


def test_the_layout_and_the_level_reach_the_reader():
    asked = CohortSpec(layout=Layout(weight="copies"), level=("category", "full"))
    cohort = asked.cohort(RECORDS)
    assert cohort.weights.tolist() == [1.0, 2.0, 3.0, 4.0, 5.0]
    assert {"428", "4280"} <= {code.replace(".", "") for code in cohort.codes}


def test_nothing_left_is_an_error():
    with pytest.raises(RecordsError, match="No record is left after the rule 'at least 9 codes'"):
        CohortSpec(at_least=9).cohort(RECORDS)
    with pytest.raises(RecordsError, match="No code is left of those that the records have; leave"):
        CohortSpec(drop_rare=9).cohort(RECORDS)


def test_what_is_refused_tells_nothing_of_the_records_that_are_kept():
    nobody = {"having": ("272",), "age": (70, None), "at_least": 1}
    with pytest.raises(EmptyCohortError, match="No record is left"):
        CohortSpec(**nobody).cohort(RECORDS)
    for wrong, said in (
        ({"without": ("273",)}, "nearest are 272"),
        ({"drop_codes": ("273",)}, "nearest are 272"),
        ({"layout": Layout(ignored=("sex",)), "sex": ("F",)}, "no covariate 'sex'"),
    ):
        for rules in (nobody | wrong, {"at_least": 1} | wrong):
            with pytest.raises(RecordsError, match=said):
                CohortSpec(**rules).cohort(RECORDS)


def test_a_code_that_only_others_have_matches_nothing():
    asked = CohortSpec(having=("272",), without=("428",), drop_codes=("585",), at_least=1)
    cohort = asked.cohort(RECORDS)
    assert cohort.ids.to_pylist() == ["c"]
    assert cohort.codes == ("250", "272", "401")
    with pytest.raises(EmptyCohortError):
        CohortSpec(having=("272",), at_least=1).cohort(RECORDS).having("428")


def test_the_default_is_said_by_silence():
    assert CohortSpec().to_dict() == {}
    assert CohortSpec.from_dict({}) == CohortSpec()


def test_a_preparation_survives_json():
    asked = CohortSpec(
        table="diagnoses",
        layout=Layout(
            kind="wide", codes=("dx1", "dx2"), weight="copies", los="stay", ignored=("a", "b")
        ),
        unit="patient",
        system="icd9cm",
        level=("category", "chapter"),
        having=("428",),
        without=("V27",),
        age=(18, None),
        sex=("F",),
        dates=("2010-01-01", None),
        at_least=2,
        drop_codes=("428",),
        drop_rare=5,
        code_map=CodeMap("m.csv", "abc", (Line("428", "hf", "icd9cm", True),), (("hf", "HF"),)),
        chronic=True,
        scores=("charlson",),
        kinds=("diagnosis", "drug"),
        layouts=(("drug", Layout(codes=("ndc",), record="stay")),),
    )
    plain = json.loads(json.dumps(asked.to_dict()))
    assert CohortSpec.from_dict(plain) == asked


def test_new_records_get_the_model_s_map_and_no_scores():
    code_map = CodeMap("m.csv", "abc", (Line("428", "hf"),))
    asked = CohortSpec(code_map=code_map, chronic=True, scores=("charlson",), at_least=2)
    for every in (False, True):
        new = asked.for_new_records("icd9cm", CohortSpec(table="new"), every)
        assert (new.code_map, new.chronic, new.scores) == (code_map, True, ())
        assert new.system is None


def test_new_records_are_in_the_model_s_system_unless_it_has_several():
    assert CohortSpec().for_new_records("icd9cm").system == "icd9cm"
    assert CohortSpec(level=("common",)).for_new_records("icd9cm").system is None
    assert CohortSpec().for_new_records("icd10cm+icd9cm").system is None


def test_new_records_have_the_model_s_kinds_and_systems():
    drugs, visits = ("drug", Layout(codes=("ndc",))), ("visit", Layout(date="came"))
    asked = CohortSpec(kinds=("diagnosis", "drug"), layouts=(drugs, visits))
    new = asked.for_new_records("icd9cm drug:atc")
    assert (new.system, new.kinds, new.layouts) == ("icd9cm drug:atc", asked.kinds, (drugs,))
    new = asked.for_new_records("icd10cm+icd9cm drug:atc", CohortSpec(table="new"))
    assert (new.system, new.layouts, new.table) == ("drug:atc", (drugs,), "new")
    assert new.own_system is None
    other = CohortSpec(layouts=(visits,))
    assert asked.for_new_records("icd9cm", other).layouts == (visits,)


@dataclass(frozen=True, kw_only=True)
class Widened(CohortSpec):
    """The specification with a rule more: one field, and nothing else."""

    wards: tuple[str, ...] = declare((), Texts(), "Keep these wards. Repeatable.", "--ward NAME")
    colour: str | None = declare(
        None, Form(), "A colour.", "--colour NAME", harmless=True, saved=False
    )
    stays: tuple[float | None, float | None] | None = declare(
        None, Bounds(), "stays=1:9", "--where stays=FROM:TO"
    )


WIDENED = Widened(wards=("A", "B"), stays=(None, 3.5), having=("428",))


def test_a_field_becomes_an_option_of_the_command_line():
    found = []

    @spec_options
    def command(cohort: Annotated[Widened, ()]) -> None:
        found.append(cohort)

    app = typer.Typer()
    app.command()(command)
    assert CliRunner().invoke(app, WIDENED.words()).exit_code == 0
    assert found == [WIDENED]
    told = " ".join(CliRunner().invoke(app, ["--help"]).output.replace("│", "").split())
    assert "--ward NAME Keep these wards." in told
    assert "dates=2010-01-01:2010-06-30 or stays=1:9. Repeatable." in told
    told = CliRunner().invoke(app, ["--where", "stays=long"])
    assert told.exit_code == 2
    assert "stays=FROM:TO, got" in " ".join(told.output.replace("│", "").split())


def test_a_field_becomes_words_json_and_a_part_of_the_fingerprint():
    words = ["--having", "428", "--ward", "A", "--ward", "B", "--where", "stays=:3.5"]
    assert sorted(WIDENED.words()) == sorted(words)
    plain = json.loads(json.dumps(WIDENED.to_dict()))
    assert plain == {"having": ["428"], "wards": ["A", "B"], "stays": [None, 3.5]}
    assert Widened.from_dict(plain) == WIDENED
    assert WIDENED.fingerprint() != Widened(having=("428",)).fingerprint()
    assert WIDENED.fingerprint() == Widened.from_dict(plain).fingerprint()


def test_a_field_becomes_a_part_of_a_request_within_bounds():
    @takes(Widened)
    class Body(BaseModel):
        """Rules."""

    fields = Body.model_json_schema()["properties"]
    assert fields["wards"]["maxItems"] == 200
    assert fields["wards"]["items"]["maxLength"] == 40
    assert {"colour", "stays", "having", "level"} <= set(fields)
    assert not {"table", "layout", "unit"} & set(fields)
    sent = Body(wards=["A"], stays=[1, None]).model_dump(exclude_defaults=True)
    assert sent == {"wards": ["A"], "stays": (1.0, None)}
    for wrong in ({"wards": ["x" * 41]}, {"wards": ["A\0"]}, {"stays": [1]}, {"at_least": 0}):
        with pytest.raises(ValidationError):
            Body(**wrong)


def test_a_rule_that_is_not_declared_harmless_costs_a_question():
    free = {"colour": "red", "drop_codes": ["401"], "drop_rare": 3, "scores": ["x"], "features": []}
    assert question_of(Widened, {"having": ["b", "a", "b"]} | free) == {"having": ["a", "b"]}
    for rule in rules_of(Widened):
        asked = question_of(Widened, {rule.name: ["1", "2"]})
        assert asked == ({} if rule.name in free else {rule.name: ["1", "2"]}), rule.name
    assert rules_of(Widened)[-1].saved
    assert set(RULES) == {
        *("having", "without", "age", "sex", "dates", "at_least", "level"),
        *("drop_codes", "drop_rare", "chronic", "scores", "features"),
    }


EVERY = {
    "having": ("428",),
    "without": ("V27",),
    "age": (18.0, None),
    "sex": ("F", "a,b"),
    "dates": ("2010-01-01", None),
    "at_least": 0,
    "drop_codes": ("428", "V*"),
    "drop_rare": 5,
    "level": ("category", "chapter"),
    "unit": "patient",
    "system": "icd9cm drug:atc",
    "code_map": CodeMap("m.csv", "abc", (Line("428", "hf", "icd9cm", True),), (("hf", "HF"),)),
    "chronic": True,
    "scores": ("charlson",),
    "features": (FeatureSpec("age"), FeatureSpec("los", "number", "log")),
    "layout": Layout(kind="wide", codes=("dx1", "dx2"), weight="copies", ignored=("a", "b")),
    "kinds": ("diagnosis", "drug"),
    "table": "diagnoses",
    "layouts": (("drug", Layout(codes=("ndc",), record="stay")),),
}


def test_every_field_has_its_round_trip():
    assert set(EVERY) == {rule.name for rule in rules_of(CohortSpec)}
    assert set(EVERY) == {one.name for one in fields(CohortSpec)}


@pytest.mark.parametrize("name", EVERY)
def test_every_field_round_trips(name):
    spec = CohortSpec(**{name: EVERY[name]})
    assert spec.words()
    plain = json.loads(json.dumps(spec.to_dict()))
    assert set(plain) == {name}
    assert CohortSpec.from_dict(plain) == spec
    assert spec.fingerprint() != CohortSpec().fingerprint()


def test_python_takes_what_is_short_for_a_value():
    spec = CohortSpec.of(
        level="full",
        scores="charlson",
        features={"age": "number"},
        layout={"diagnosis": Layout(kind="long"), "drug": Layout(codes=("ndc",))},
    )
    assert (spec.level, spec.scores, spec.layout.kind) == (("full",), ("charlson",), "long")
    assert spec.features == (FeatureSpec("age", "number"),)
    assert spec.layouts == (("drug", Layout(codes=("ndc",))),)


@pytest.mark.parametrize("function", [read_records, inspect_records, read_spark, read_dask])
def test_functions_take_their_parameters_from_the_declarations(function):
    own = signature(function).parameters
    reading = {rule.name for rule in rules_of(CohortSpec) if rule.part in READING and rule.type}
    assert reading - set(own) == (set() if "source" in own else {"kinds"})
    assert own["level"].default == ("category",)
    assert "level : str or sequence of str\n        'category', 'full'" in function.__doc__
    assert "{options}" not in function.__doc__
    with pytest.raises(TypeError, match="lvel"):
        function(*[None] * (1 if "source" in own else 2), lvel="full")
    with pytest.raises(TypeError, match="having"):
        function(*[None] * (1 if "source" in own else 2), having="428")


def test_the_old_name_is_there_for_one_version_more():
    assert Preparation is CohortSpec


def test_what_another_version_wrote_is_read():
    old = {
        "table": "diagnoses",
        "layout": {"kind": "wide", "codes": ["dx1"], "weight": "copies"},
        "level": ["category", "full"],
        "dates": ["2010-01-01", None],
        "age": [65, None],
        "drop_rare": 5,
        "layouts": {"drug": {"codes": ["ndc"]}},
        "features": [{"name": "age", "transform": "none", "told": True}],
    }
    spec = CohortSpec.from_dict(old)
    assert json.loads(json.dumps(spec.to_dict())) == old


def short_records(rows=120):
    """Visits of which one in three has three codes, half have two, and the others one."""
    codes = ["I50", "E11", "N18"]
    shorter = [1 + (row % 2) + (row % 6 in (1, 3)) for row in range(rows)]
    columns = {
        f"dx{place + 1}": [codes[place] if n > place else None for n in shorter]
        for place in range(3)
    }
    return pa.table({"visit_id": [f"v{row:03d}" for row in range(rows)], **columns}), shorter


def test_the_least_number_of_codes_relaxes_in_memory_in_parts_and_on_workers(tmp_path):
    table, lengths = short_records()
    kept = sum(n > 1 for n in lengths)
    pq.write_table(table, tmp_path / "visits.parquet")
    whole = CohortSpec().apply(read_records(table))
    write_cohort(table, tmp_path / "cohort.parquet", CohortSpec(), "1GB")
    distribute_cohort(tmp_path / "visits.parquet", tmp_path / "folder", CohortSpec())
    files = load_cohort(tmp_path / "cohort.parquet"), CohortFile.open(tmp_path / "folder")
    found = (whole, *files)
    for one in found:
        assert (one.ledger.left("records"), one.least_codes) == (kept, 2)
        assert any("2 codes or more were kept" in str(note) for note in one.ledger.notes)
        assert one.ledger.adds_up
    assert count_left(read_records(table), CohortSpec())[0] == kept
    asked = CohortSpec(at_least=3).apply(read_records(table))
    assert len(asked) == sum(n > 2 for n in lengths)
