"""How each coding system cleans, groups and titles its codes."""

import csv
import gzip
from importlib import resources
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from comorb.errors import RecordsError
from comorb.records.codes import vocabulary as codes
from comorb.records.codes.code_map import CodeMap, Line
from comorb.records.codes.recognition import recognise
from comorb.records.codes.system import LEVELS
from comorb.records.codes.systems import SYSTEMS, coding_system
from comorb.records.codes.tables import read_official_titles

SHARED = Path(__file__).parents[4] / "shared/data"
systems = st.sampled_from(list(SYSTEMS))
code_like = st.one_of(
    st.text(max_size=12),
    st.from_regex(r"\A[ \xa0]?[A-Za-z0-9]{0,4}[.,]?[A-Z0-9]{0,4}[-+*! ]{0,2}\Z"),
    st.floats(allow_nan=True).map(str),
)


@pytest.mark.parametrize(
    ("raw", "code", "state"),
    [
        ("250.00", "25000", "ok"),
        ("25000", "25000", "ok"),
        ("001.0", "0010", "ok"),
        ("250.0", "2500", "ok"),
        ("v45.81", "V4581", "ok"),
        ("E849.0", "E8490", "ok"),
        ("\xa0401.9 ", "4019", "ok"),
        ("250--", "250", "ok"),
        ("250 -", "250", "ok"),
        ("250.", "250", "ok"),
        ("'0389", "0389", "ok"),
        ("38", "038", "repaired"),
        ("8", "008", "repaired"),
        ("38.9", "0389", "repaired"),
        ("4280.0", "4280", "repaired"),
        ("", "", "missing"),
        (" ? ", "", "missing"),
        ("NULL", "", "missing"),
        ("n/a", "", "missing"),
        ("nan", "", "missing"),
        ("---", "", "missing"),
        ("1E11", "", "malformed"),
        ("000", "", "malformed"),
        ("25.000", "", "malformed"),
        ("250 401", "", "malformed"),
        ("E119", "", "malformed"),
        ("V00", "", "malformed"),
        ("２５０", "", "malformed"),
    ],
)
def test_icd9_codes_are_normalised(raw, code, state):
    assert coding_system("icd9cm").normalise(raw) == (code, state)


@pytest.mark.parametrize(
    ("raw", "european", "american"),
    [
        ("I10", "I10", "I10"),
        ("e11.9", "E119", "E119"),
        ("E11,9", "E119", "E119"),
        ("C34.1+", "C341", "C341"),
        ("A00.9*", "A009", "A009"),
        ("A17.0†", "A170", "A170"),
        ("I10.-", "I10", "I10"),
        ("I10X", "I10", "I10"),
        ("G01XA", "G01", "G01XA"),
        ("A170D", "A170", "A170D"),
        ("T36.0X1A", "", "T360X1A"),
        ("M1A.00X0", "", "M1A00X0"),
        ("QA0", "", "QA0"),
        ("1E11", "", ""),
        ("250.00", "", ""),
    ],
)
def test_icd10_codes_are_normalised(raw, european, american):
    assert coding_system("icd10").normalise(raw).code == european
    assert coding_system("icd10cm").normalise(raw).code == american


def test_opaque_codes_keep_all_but_their_padding():
    assert coding_system("opaque").normalise(" a.1E11 ") == ("a.1E11", "ok")
    assert coding_system("opaque").normalise("44054006.0", floats=True) == ("44054006", "repaired")


@given(code_like, systems)
def test_normalising_twice_changes_nothing(raw, system):
    code, state = coding_system(system).normalise(raw)
    assert bool(code) == (state in ("ok", "repaired"))
    if code:
        assert coding_system(system).normalise(code) == (code, "ok")


@given(code_like, st.sampled_from(["icd9cm", "icd10cm", "icd10"]))
def test_a_canonical_code_is_made_of_the_letters_that_were_written(raw, system):
    code, state = coding_system(system).normalise(raw)
    written = raw.upper()
    assert code.isalnum() or not code
    assert state != "ok" or all(letter in written for letter in code)


@given(code_like, systems, st.sampled_from(LEVELS))
def test_every_well_formed_code_rolls_up_and_has_a_name(raw, system, level):
    code = coding_system(system).normalise(raw).code
    if code:
        feature = coding_system(system).roll_up(code, level)
        assert feature
        assert coding_system(system).name(feature)
        assert coding_system(system).roll_up(code, level) == feature
        assert coding_system(system).roll_up(feature, level) == feature


@pytest.mark.parametrize("system", ["icd9cm", "icd10cm", "icd9proc", "icd10pcs"])
def test_every_listed_code_normalises_to_itself_and_rolls_up_once(system):
    coding = coding_system(system)
    for code in sorted(coding.listed())[::7]:
        assert coding.normalise(code) == (code, "ok")
        for level in LEVELS:
            feature = coding.roll_up(code, level)
            assert coding.roll_up(feature, level) == feature


@pytest.mark.parametrize(
    ("code", "system", "category", "group", "chapter"),
    [
        ("42823", "icd9cm", "428", "CCS108", "390-459"),
        ("001", "icd9cm", "001", "CCS135", "001-139"),
        ("E8490", "icd9cm", "E849", "CCS2621", "E000-E999"),
        ("V4581", "icd9cm", "V45", "CCS101", "V01-V91"),
        ("428", "icd9cm", "428", "CCS108", "390-459"),
        ("250", "icd9cm", "250", "250", "240-279"),
        ("I509", "icd10cm", "I50", "CIR019", "I00-I99"),
        ("I489", "icd10", "I48", "CIR017", "I00-I99"),
        ("D49", "icd10cm", "D49", "NEO072", "C00-D49"),
        ("D50", "icd10cm", "D50", "BLD001", "D50-D89"),
        ("E11", "icd10", "E11", "E11", "E00-E90"),
        ("3893", "icd9proc", "38", "38", "35-39"),
        ("00", "icd9proc", "00", "00", "00-00"),
        ("02HV33Z", "icd10pcs", "02H", "02", "0"),
        ("B2111ZZ", "icd10pcs", "B21", "B2", "B"),
        ("A10BA02", "atc", "A10B", "A10", "A"),
        ("N06", "atc", "N06", "N06", "N"),
    ],
)
def test_codes_roll_up(code, system, category, group, chapter):
    assert coding_system(system).roll_up(code, "full") == code
    assert coding_system(system).roll_up(code, "category") == category
    assert coding_system(system).roll_up(code, "group") == group
    assert coding_system(system).roll_up(code, "chapter") == chapter


@pytest.mark.parametrize(
    ("code", "system", "title"),
    [
        ("428", "icd9cm", "Heart failure"),
        ("42823", "icd9cm", "Acute on chronic systolic heart failure"),
        ("42899", "icd9cm", "Heart failure"),
        ("E849", "icd9cm", "Place of occurrence"),
        ("CCS108", "icd9cm", "Congestive heart failure; nonhypertensive"),
        ("390-459", "icd9cm", "Diseases of the circulatory system"),
        ("38600", "icd9cm", "Ménière's disease, unspecified"),
        ("I50", "icd10cm", "Heart failure"),
        ("I489", "icd10", "Unspecified atrial fibrillation and atrial flutter"),
        ("I5099", "icd10", "Heart failure"),
        ("CIR019", "icd10cm", "Heart failure"),
        ("I00-I99", "icd10", "Diseases of the circulatory system"),
        ("019", "icd9cm", "019"),
        ("X99Z", "icd10cm", "Assault by sharp object"),
        ("73211009", "opaque", "73211009"),
        ("CCS108", "icd10", "Congestive heart failure; nonhypertensive"),
        ("3893", "icd9proc", "Venous catheterization, not elsewhere classified"),
        ("389", "icd9proc", "Incision, excision and occlusion of vessels"),
        ("35-39", "icd9proc", "Operations on the cardiovascular system"),
        ("02H", "icd10pcs", "Insertion: heart and great vessels"),
        ("02", "icd10pcs", "Medical and surgical: heart and great vessels"),
        ("0", "icd10pcs", "Medical and surgical"),
        ("02ZZZZZ", "icd10pcs", "02ZZZZZ"),
        ("A10BA02", "atc", "Blood glucose lowering drugs, except insulins"),
        ("A10", "atc", "Drugs used in diabetes"),
        ("A", "atc", "Alimentary tract and metabolism"),
        ("N03AX", "atc", "Antiepileptics"),
    ],
)
def test_names(code, system, title):
    assert coding_system(system).name(code) == title


def test_features_at_several_levels():
    found = codes.featurise(
        ["428.0", "38", "250", "486", "zzz", "NA"], "icd9cm", ["full", "category", "group"]
    )
    assert found.of == {
        "428.0": ("4280", "428", "CCS108"),
        "38": ("038", "CCS2"),
        "250": ("250",),
        "486": ("486", "CCS122"),
        "zzz": (),
        "NA": (),
    }
    assert set(found.repaired) == {"38"}
    assert set(found.malformed) == {"zzz"}
    assert set(found.missing) == {"NA"}
    assert set(found.mixed) == {"250"}


def test_a_column_written_as_numbers_loses_its_decimals():
    assert codes.featurise(["250.0", "8.0", "V27"], "icd9cm", ["full"]).of == {
        "250.0": ("250",),
        "8.0": ("008",),
        "V27": ("V27",),
    }
    assert codes.featurise(["250.0", "401.9"], "icd9cm", ["full"]).of["250.0"] == ("2500",)
    assert codes.featurise(["001.0", "002.0"], "icd9cm", ["full"]).of["001.0"] == ("0010",)


def test_codes_that_share_groups_and_those_that_do_not():
    found = codes.featurise(["428.0", "250", "V85"], "icd9cm", ["common", "category"])
    assert found.of == {
        "428.0": ("CCS108", "428"),
        "250": ("icd9cm:250", "250"),
        "V85": ("icd9cm:V85", "V85"),
    }
    assert found.unshared == {"250", "V85"}
    assert found.names["CCS108"] == "Congestive heart failure; nonhypertensive"
    assert found.names["icd9cm:250"] == "Diabetes mellitus"
    assert "428" not in found.names
    assert codes.featurise(["C07AB02"], "atc", ["common"]).of == {"C07AB02": ("C07A",)}


def test_codes_that_are_not_chronic_are_left_out():
    found = codes.featurise(["428.0", "486", "070", "zz"], "icd9cm", ["category"], chronic=True)
    assert found.of == {"428.0": ("428",), "486": (), "070": (), "zz": ()}
    assert found.left_out == {
        codes.NOT_CHRONIC: {"486"},
        codes.NOT_DETERMINED: {"070"},
    }
    assert found.malformed == {"zz"}


def test_groups_of_a_map_take_the_place_of_levels():
    lines = (Line("428", "hf"), Line("428.2", "systolic"), Line("401", "bp"), Line("4019", "ht"))
    code_map = CodeMap("m.csv", "0", (*lines, Line("XX1", "own")), (("hf", "Heart failure"),))
    raws = ["428.0", "428.21", "401.9", "250", "xx1", "?"]
    found = codes.featurise(raws, "icd9cm", ["category"], code_map=code_map)
    assert found.of == {
        "428.0": ("hf",),
        "428.21": ("systolic",),
        "401.9": ("ht",),
        "250": (),
        "xx1": ("own",),
        "?": (),
    }
    assert found.left_out == {codes.NOT_MAPPED: {"250"}}
    assert found.covered == {"428.21", "401.9"}
    assert not found.malformed
    assert found.names["hf"] == "Heart failure"


def test_an_unknown_system_or_level_is_refused():
    with pytest.raises(RecordsError, match="system out of icd9cm, icd10cm, icd10, icd9proc, icd10"):
        coding_system("icd11").normalise("428")
    with pytest.raises(RecordsError, match="category, full, group, chapter, common; got 'x'"):
        coding_system("icd9cm").roll_up("428", "x")


def billable(system):
    files = {
        "icd9cm": "ICD_9_CM_v32_master_descriptions/CMS32_DESC_LONG_DX.txt",
        "icd10cm": "ICD_10_CM_2024_release/icd10cm-codes-2024.txt",
    }
    return read_official_titles(files[system])


def _own_categories():
    table = resources.files("comorb.records.codes").joinpath("icd9_categories.csv")
    return list(csv.DictReader(table.read_text(encoding="utf-8").splitlines()))


def test_the_icd9_table_holds_every_category_once_with_its_chapter():
    rows = _own_categories()
    every = {coding_system("icd9cm").roll_up(code, "category") for code in billable("icd9cm")}
    assert [row["code"] for row in rows] == sorted(every)
    assert len(rows) == 1234
    for row in rows:
        assert row["title"]
        assert row["chapter"] == coding_system("icd9cm").roll_up(row["code"], "chapter")


def test_the_groups_within_255_categories_differ():
    categories = [row["code"] for row in _own_categories()]
    assert len(codes.featurise(categories, "icd9cm", ["group"]).mixed) == 255


def test_categories_without_subdivisions_have_the_official_title():
    official = billable("icd9cm")
    undivided = {row["code"]: row["title"] for row in _own_categories() if row["code"] in official}
    assert len(undivided) == 137
    assert undivided == {code: official[code] for code in undivided}


@pytest.mark.parametrize("system", ["icd9cm", "icd10cm"])
def test_every_group_has_a_title(system):
    groups = {group for code in billable(system) if (group := coding_system(system).group_of(code))}
    assert len(groups) > 250
    for group in groups:
        assert coding_system(system).name(group) != group


@pytest.mark.parametrize(
    ("file", "column", "categories"),
    [("nhds2010.csv.gz", "dx", 1116), ("synpuf_inpatient.csv.gz", "ICD9_DGNS_CD", 715)],
)
def test_every_category_of_real_files_has_a_title(file, column, categories):
    if not (SHARED / file).exists():
        pytest.skip(f"{file} is not in ../shared/data")
    with gzip.open(SHARED / file, "rt", encoding="utf-8") as lines:
        raw = {
            value
            for row in csv.DictReader(lines)
            for name, value in row.items()
            if name.startswith(column)
        }
    found = codes.featurise(raw, "icd9cm", ["category"])
    features = {feature for features in found.of.values() for feature in features}
    assert recognise(raw).system == "icd9cm"
    assert not found.malformed
    assert len(features) == categories
    assert all(coding_system("icd9cm").name(feature) != feature for feature in features)
