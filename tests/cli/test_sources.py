"""Several sources at the command line: --with and --kinds, in every command that reads records."""

import json
import shlex
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from comorb.profiles.profile import Profile
from comorb.records.cohort_file import save_cohort
from comorb.records.read import read_records

ATC = ["A10BA02", "C07AB02", "C03CA01", "B01AA03"]


@pytest.fixture(scope="module")
def tables(tmp_path_factory):
    """Diagnoses, drugs and visits of 600 stays, two groups of them, in a folder."""
    folder = tmp_path_factory.mktemp("hospital")
    draw = np.random.default_rng(5)
    group = draw.integers(0, 2, 600)
    codes = [["4280", "5859", "2859", "4019"], ["25000", "2724", "2780", "4019"]]
    rows, drugs = [], []
    for stay in range(600):
        rows += [(stay, code) for code in codes[group[stay]] if draw.random() < 0.9]
        own = ATC[:2] if group[stay] else ATC[2:]
        drugs += [(stay, code) for code in own if draw.random() < 0.8]
    drugs.append((9999, ATC[0]))
    frames = {
        "diagnoses": pd.DataFrame(rows, columns=["hadm_id", "icd9_code"]),
        "medications": pd.DataFrame(drugs, columns=["hadm_id", "atc"]),
        "admissions": pd.DataFrame(
            {"hadm_id": range(600), "age": 50 + group, "died": draw.integers(0, 2, 600)}
        ),
    }
    for name, frame in frames.items():
        frame.to_csv(folder / f"{name}.csv", index=False)
    return folder


def sources(tables):
    drugs, visits = tables / "medications.csv", tables / "admissions.csv"
    return tables / "diagnoses.csv", "--with", f"drug={drugs}", "--with", f"visit={visits}"


@pytest.fixture
def fitted(comorb, tables):
    told = comorb("fit", *sources(tables), "-k", 2, "-o", "run", "--no-stability")
    assert told.exit_code == 0, told.output
    return told


def profile(folder):
    return Profile.from_json((Path(folder) / "profile.json").read_text("utf-8"))


def test_fit_joins_and_tells_how(fitted):
    found = profile("run")
    assert {"drug:A10B", "428"} <= set(found.codes)
    assert found.labels[found.codes.index("drug:C07A")] == "Beta blocking agents"
    assert {"age", "died"} <= {one.name for one in found.outcomes}
    told = "rows matched a record by visit id (hadm_id); 1 have none"
    assert any(told in note for note in found.source.notes)
    assert "note: visit: 600 of 600 rows matched" in fitted.stderr
    assert not any("blocking" in cluster.name for cluster in found.clusters)


@pytest.mark.parametrize("more", [(), ("--memory", "1GB"), ("--engine", "threads")])
def test_the_command_of_a_report_does_it_again(comorb, fitted, more):
    first = profile("run")
    words = shlex.split(first.source.command)[1:]
    told = comorb(*words, *more, "-o", "again", "--no-stability")
    assert told.exit_code == 0, told.output
    again = profile("again")
    assert again.source.digest == first.source.digest
    assert (again.means == first.means).all()
    assert again.source.notes == first.source.notes
    assert Path("again/assignments.csv").read_bytes() == Path("run/assignments.csv").read_bytes()


def test_new_records_need_the_kinds_of_the_model(comorb, fitted, tables):
    told = comorb("assign", "run", *sources(tables)[:3])
    assert told.exit_code == 0, told.output
    assert Path("assignments.csv").read_bytes() == Path("run/assignments.csv").read_bytes()
    told = comorb("assign", "run", tables / "diagnoses.csv", "--force")
    assert told.exit_code == 1
    assert told.stderr == (
        "comorb: A source of the kind 'drug' is expected; give it beside the records.\n"
    )


def test_rules_and_kinds_of_a_folder(comorb, tables):
    rules = ("--having", "drug:A10B", "--where", "age=51:", "--drop-codes", "drug:C07A")
    told = comorb("fit", *sources(tables), *rules, "-k", 1, "-o", "rules", "--no-stability")
    assert told.exit_code == 0, told.output
    found = profile("rules")
    assert "drug:C07A" not in found.codes
    assert found.totals[found.codes.index("drug:A10B")] == found.source.records
    kinds = ("--kinds", "diagnosis,drug,visit")
    told = comorb("fit", tables, *kinds, *rules, "-k", 1, "-o", "kinds", "--no-stability")
    assert told.exit_code == 0, told.output
    assert profile("kinds").source.digest == found.source.digest
    assert "--kinds diagnosis,drug,visit" in profile("kinds").source.command


def test_the_other_commands_join_too(comorb, tables):
    plain = json.loads(comorb("inspect", *sources(tables), "--json").stdout)
    assert plain["system"] == "icd9cm drug:atc"
    assert plain["records"] == 600
    named = ("--column", "drug.codes=atc", "--column", "drug.record=hadm_id")
    assert json.loads(comorb("inspect", *sources(tables), *named, "--json").stdout) == plain
    for words in (("choose", "-k", "1:2"), ("stability", "-k", "2", "--repeats", "1")):
        told = comorb(words[0], *sources(tables), *words[1:], "--json")
        assert told.exit_code == 0, told.output
        notes = json.loads(told.stdout)["notes"]
        assert any(note.startswith("drug: ") for note in notes)


def test_a_cohort_file_can_t_be_joined(comorb, tables):
    save_cohort(read_records(tables / "diagnoses.csv"), "cohort.parquet")
    told = comorb("fit", "cohort.parquet", *sources(tables)[1:3])
    assert told.exit_code == 1
    assert told.stderr == (
        "comorb: A cohort is read already, and nothing can be joined to it; give the records that "
        "it was made of.\n"
    )


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--with", "drug"), "expected KIND=FILE, such as drug=medications.csv, got 'drug'"),
        (("--with", "=x.csv"), "expected KIND=FILE, such as drug=medications.csv, got '=x.csv'"),
        (("--with", "drug=a", "--with", "drug=b"), "the kind 'drug' is given twice; give each"),
        (("--with", "diagnosis=a"), "the kind 'diagnosis' is that of RECORDS; give each source"),
    ],
)
def test_what_is_not_understood_is_told(comorb, tables, words, message):
    for command in (("fit",), ("inspect",), ("assign", "run")):
        told = comorb(*command, tables / "diagnoses.csv", *words)
        assert told.exit_code == 2
        assert message in " ".join(told.output.replace("│", "").split())
