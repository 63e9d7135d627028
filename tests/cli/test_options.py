"""Options that several commands share: what a preparation writes is what the options read."""

import csv
import io
import json

import pytest
import typer
from hypothesis import given
from hypothesis import strategies as st
from typer.testing import CliRunner

from comorb.cli.options import Cohort, spec_options
from comorb.records.codes.code_map import read_map
from comorb.records.layouts.layout import Layout
from comorb.records.spec import CohortSpec

asked: list[CohortSpec] = []
app = typer.Typer()


@app.command()
@spec_options
def listen(preparation: Cohort) -> None:
    asked.append(preparation)


word = st.text("abcXYZ019 _-.,;:='\"/é", min_size=1, max_size=8).filter(
    lambda text: text.strip() == text and not text.startswith("-")
)
words = st.lists(word, max_size=3).map(tuple)
end = st.none() | st.floats(0, 120).map(lambda value: round(value, 3))
day = st.none() | st.dates().map(str)
preparations = st.builds(
    CohortSpec,
    table=st.none() | word,
    layout=st.builds(
        Layout,
        kind=st.sampled_from([None, "wide", "long", "delimited", "binary"]),
        codes=st.none() | st.lists(word, min_size=1, max_size=3).map(tuple),
        record=st.none() | word,
        patient=st.none() | word,
        separator=st.sampled_from([None, ";", ",", "|"]),
        age=st.none() | word,
        los=st.none() | word,
        died=st.none() | word,
        readmitted=st.none() | word,
        cost=st.none() | word,
        site=st.none() | word,
        category=words,
        number=words,
        ignored=words,
        weight=st.none() | word,
    ),
    unit=st.sampled_from([None, "visit", "patient"]),
    system=st.sampled_from([None, "icd9cm", "opaque", "icd9cm drug:atc"]),
    level=st.sampled_from([("category",), ("full",), ("group", "chapter"), ("common",)]),
    chronic=st.booleans(),
    scores=st.sampled_from([(), ("charlson",), ("charlson2011", "elixhauser")]),
    having=words,
    without=words,
    age=st.none() | st.tuples(end, end),
    sex=st.lists(word, max_size=2).map(tuple),
    dates=st.none() | st.tuples(day, day),
    at_least=st.integers(0, 9),
    drop_codes=words,
    drop_rare=st.integers(0, 9),
    kinds=st.sampled_from([(), ("diagnosis", "drug"), ("drug",)]),
    layouts=st.lists(
        st.tuples(
            st.sampled_from(["drug", "visit"]),
            st.builds(Layout, codes=st.lists(word, min_size=1, max_size=2).map(tuple), record=word),
        ),
        max_size=2,
        unique_by=lambda one: one[0],
    ).map(tuple),
)


@given(preparations)
def test_the_words_of_a_preparation_ask_for_it(preparation):
    told = CliRunner().invoke(app, preparation.words())
    assert told.exit_code == 0, told.output
    assert asked.pop() == preparation


def test_a_map_is_read_from_the_file_that_the_words_name(tmp_path):
    path = tmp_path / "my map.csv"
    path.write_text("428,hf\n")
    preparation = CohortSpec(code_map=read_map(path))
    assert preparation.words() == ["--map", str(path)]
    assert CliRunner().invoke(app, preparation.words()).exit_code == 0
    assert asked.pop() == preparation


def test_what_is_usual_needs_no_words():
    assert CohortSpec().words() == []


def test_code_columns_may_be_named_one_by_one_or_together():
    CliRunner().invoke(app, ["--column", "codes=dx1,dx2", "--column", 'codes="a,b"'])
    assert asked.pop().layout.codes == ("dx1", "dx2", "a,b")
    line = io.StringIO()
    csv.writer(line, lineterminator="").writerow(["a,b", 'say "so"'])
    CliRunner().invoke(app, ["--column", f"codes={line.getvalue()}"])
    assert asked.pop().layout.codes == ("a,b", 'say "so"')


def test_an_id_is_the_record_and_a_weight_is_named_in_two_ways():
    CliRunner().invoke(app, ["--column", "id=visit", "--column", "weight=copies"])
    assert asked.pop().layout == Layout(record="visit", weight="copies")
    CliRunner().invoke(app, ["--weights", "copies"])
    assert asked.pop().layout == Layout(weight="copies")


@pytest.mark.parametrize(
    ("option", "text", "message"),
    [
        ("--column", "shoe=size", "expected ROLE=NAME with a role out of codes, record"),
        ("--column", "age", "expected ROLE=NAME"),
        ("--column", "drug.shoe=size", "expected ROLE=NAME with a role out of codes, record"),
        ("--where", "age=old", "expected age=LOW:HIGH, sex=VALUE or dates=FIRST:LAST"),
        ("--where", "dates=2010-13-01:", "expected age=LOW:HIGH"),
        ("--where", "sex=", "expected age=LOW:HIGH"),
    ],
)
def test_what_is_not_understood_is_told(option, text, message):
    told = CliRunner().invoke(app, [option, text])
    assert told.exit_code == 2
    assert message in " ".join(told.output.replace("│", "").split())


def test_a_saved_cohort_is_taken_and_options_beside_it_count_more(tmp_path):
    rules = {"having": ["428"], "age": [65, None], "at_least": 2, "features": ["age=number"]}
    plain = {"format": "comorb-cohort", "version": 1, "name": "Heart", "rules": rules}
    (tmp_path / "heart.json").write_text(json.dumps(plain))
    (tmp_path / "codes.txt").write_text("585\nV*\n")
    told = CliRunner().invoke(app, ["--cohort", str(tmp_path / "heart.json")])
    assert told.exit_code == 0, told.output
    assert asked[-1] == CohortSpec.from_dict(rules)
    more = ["--having", f"@{tmp_path / 'codes.txt'}", "--where", "sex=F"]
    CliRunner().invoke(app, ["--cohort", str(tmp_path / "heart.json"), *more])
    assert (asked[-1].having, asked[-1].sex, asked[-1].age) == (("585", "V*"), ("F",), (65, None))


def test_a_set_of_codes_is_no_cohort(tmp_path):
    (tmp_path / "codes.txt").write_text("585\n")
    told = CliRunner().invoke(app, ["--cohort", str(tmp_path / "codes.txt")])
    assert told.exit_code == 2
    assert "is a set of codes" in told.output
