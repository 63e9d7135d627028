"""Tables of OMOP that workers read give the cohort that they give in memory; see also test_read."""

from itertools import pairwise

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as pa_csv
import pyarrow.parquet as pq
import pytest

from comorb.engines import open_engine
from comorb.errors import RecordsError
from comorb.records.cohort_file import load_cohort
from comorb.records.distributed import partitions, shuffle
from comorb.records.distributed import read as distributed_read
from comorb.records.distributed.read import distribute_cohort
from comorb.records.layouts.layout import Layout
from comorb.records.spec import CohortSpec
from tests.records.distributed.test_read import same
from tests.records.test_join import need

ANY = CohortSpec(at_least=1)
VISITS = CohortSpec(at_least=1, unit="visit")


@pytest.fixture(autouse=True)
def small_partitions(monkeypatch):
    monkeypatch.setattr(shuffle, "MIN_SLOTS", 3)
    monkeypatch.setattr(shuffle, "PARTITION_ROWS", 900)
    monkeypatch.setattr(partitions, "_TASK_ROWS", 1)


@pytest.fixture(autouse=True)
def nothing_here(monkeypatch):
    """Refuse to read in the process that drives, as these tests are of the workers."""
    monkeypatch.setattr(distributed_read, "_write_locally", lambda *_: pytest.fail("read here"))


def cdm(n=1500, **columns):
    """The tables of a database; columns of the conditions may be others."""
    rng = np.random.default_rng(4)
    persons = rng.integers(1, 200, n)
    days = np.datetime64("2015-01-01") + rng.integers(0, 900, n)
    conditions = {
        "condition_occurrence_id": range(n),
        "person_id": persons,
        "condition_concept_id": rng.choice([316139, 201826, 320128, 4329847, 0, 77], n),
        "condition_start_date": pa.array(days.astype("datetime64[D]")),
        "visit_occurrence_id": pa.array(persons * 10 + rng.integers(0, 4, n)),
        "condition_source_value": rng.choice(["I50.9", "E11.9", "I10", "I21.0", "Z99"], n),
    }
    return {
        "condition_occurrence": pa.table(conditions | columns),
        "person": pa.table(
            {
                "person_id": rng.permutation(np.arange(1, 200)),
                "gender_concept_id": rng.choice([8507, 8532, 0], 199),
                "year_of_birth": rng.integers(1930, 2000, 199),
                "location": ["somewhere"] * 199,
            }
        ),
        "concept": pa.table(
            {
                "concept_id": rng.permutation(np.arange(315_000, 322_000)),
                "concept_name": [f"name {i}" for i in range(7000)],
                "domain_id": ["Condition"] * 7000,
            }
        ),
    }


def save(tables, folder, files=3):
    """Write each table to a folder of its own, in files of unlike sizes."""
    for seed, (name, table) in enumerate(tables.items()):
        (folder / name).mkdir(parents=True)
        cuts = np.random.default_rng(seed).integers(0, len(table) + 1, files - 1)
        for number, (start, stop) in enumerate(pairwise([0, *sorted(cuts), len(table)])):
            path = folder / name / f"part-{number:05}.parquet"
            pq.write_table(table.slice(start, stop - start), path, write_page_checksum=True)
    return folder


def changed(tables, name, **columns):
    table = tables[name]
    for column, values in columns.items():
        place = table.column_names.index(column)
        table = table.set_column(place, column, pa.array(values))
    return tables | {name: table}


def some(table, column, every, value=None):
    """Return a column in which every so many values are another."""
    values = table[column].to_pylist()
    return [value if i % every == 0 else one for i, one in enumerate(values)]


CDM = cdm()
CONDITIONS, PERSON, CONCEPT = CDM.values()
TWICE = pa.concat_tables(
    [PERSON, PERSON.slice(0, 40).set_column(2, "year_of_birth", pa.array([1901] * 40))]
)
TEXTS = [f"{one}" for one in PERSON["person_id"].to_pylist()]
NAMES = CONDITIONS.append_column("concept_name", pa.array(["a name", "another"] * 750))
CASES = {
    "as it is": (CDM, ANY),
    "visits": (CDM, VISITS),
    "rules": (CDM, CohortSpec(at_least=2, having=("316139",), drop_codes=("77",), age=(20, 70))),
    "no person": ({"condition_occurrence": CONDITIONS, "concept": CONCEPT}, ANY),
    "no concept": ({"condition_occurrence": CONDITIONS, "person": PERSON}, VISITS),
    "neither": ({"condition_occurrence": CONDITIONS, "note": PERSON}, ANY),
    "own names": ({"condition_occurrence": NAMES, "person": PERSON}, ANY),
    "eras": (
        {"condition_era": CONDITIONS.rename_columns(
            [one.replace("condition_start", "condition_era_start")
             for one in CONDITIONS.column_names]), "drug_era": CONCEPT}, ANY,
    ),
    "a kind": (CDM | {"drug_exposure": CONCEPT}, CohortSpec(at_least=1, kinds=("diagnosis",))),
    "a table": (
        {"drug_exposure": CONDITIONS.rename_columns(
            [one.replace("condition", "drug") for one in CONDITIONS.column_names]),
         "person": PERSON, "concept": CONCEPT},
        CohortSpec(at_least=1, table="DRUG_exposure"),
    ),
    "source values": (
        CDM, CohortSpec(at_least=1, layout=Layout("omop", codes=("condition_source_value",))),
    ),
    "persons twice": (CDM | {"person": TWICE}, ANY),
    "persons as text": (changed(CDM, "person", person_id=TEXTS), ANY),
    "persons of which some are unknown": (CDM | {"person": PERSON.slice(50)}, ANY),
    "no person known": (changed(CDM, "person", person_id=[f"p{i}" for i in range(199)]), ANY),
    "null persons": (
        changed(changed(CDM, "condition_occurrence", person_id=some(CONDITIONS, "person_id", 2)),
                "person", person_id=some(PERSON, "person_id", 9)), ANY,
    ),
    "numbers with a point": (
        changed(
            changed(CDM, "condition_occurrence", condition_concept_id=pc.cast(
                CONDITIONS["condition_concept_id"], pa.float64()).to_pylist()),
            "person", person_id=[f"{one}.0" for one in TEXTS],
            gender_concept_id=pc.cast(PERSON["gender_concept_id"], pa.float64()).to_pylist()),
        ANY,
    ),
    "null visits": (
        changed(CDM, "condition_occurrence",
                visit_occurrence_id=some(CONDITIONS, "visit_occurrence_id", 3)), VISITS,
    ),
    "null and odd years and genders": (
        changed(CDM, "person", year_of_birth=some(PERSON, "year_of_birth", 7),
                gender_concept_id=some(PERSON, "gender_concept_id", 5)), ANY,
    ),
    "no persons": (CDM | {"person": PERSON.slice(0, 0)}, ANY),
    "no concepts": (CDM | {"concept": CONCEPT.slice(0, 0)}, ANY),
    "concepts twice": (
        CDM | {"concept": pa.concat_tables(
            [CONCEPT, CONCEPT.set_column(1, "concept_name", pa.array(["a name"] * 7000))])}, ANY,
    ),
    "null concepts": (
        changed(CDM, "concept", concept_name=some(CONCEPT, "concept_name", 2)), ANY,
    ),
    "few persons": (
        changed(CDM, "condition_occurrence", person_id=[5, 6, None] * 500), ANY,
    ),
    "moments": (
        changed(CDM, "condition_occurrence", condition_start_date=pc.cast(
            CONDITIONS["condition_start_date"], pa.timestamp("us")).to_pylist()), ANY,
    ),
    "upper case": (
        {name.upper(): table.rename_columns([one.upper() for one in table.column_names])
         for name, table in CDM.items()}, VISITS,
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_tables_give_the_cohort_of_memory(name, tmp_path):
    tables, preparation = CASES[name]
    whole, _ = same(save(tables, tmp_path / "cdm"), tmp_path / "cohort", preparation)
    assert len(whole) > 1


def test_persons_that_are_not_known_are_noted(tmp_path):
    save(CDM | {"person": PERSON.slice(50)}, tmp_path / "cdm")
    distribute_cohort(tmp_path / "cdm", tmp_path / "cohort", ANY)
    (note,) = load_cohort(tmp_path / "cohort").ledger.notes
    lost = set(PERSON["person_id"].to_pylist()[:50])
    rows = sum(one in lost for one in CONDITIONS["person_id"].to_pylist())
    assert note == (
        f"{rows} rows of part-00000.parquet are of persons that aren't in part-00000.parquet"
    )


def test_whole_numbers_with_a_point_are_whole_numbers(tmp_path):
    tables, _ = CASES["numbers with a point"]
    one, two = (
        ANY.cohort(save(some, tmp_path / str(number))) for number, some in enumerate((CDM, tables))
    )
    assert (one.digest(), one.codes, one.names) == (two.digest(), two.codes, two.names)
    assert one.ids.equals(two.ids)
    assert one.covariates.equals(two.covariates)


@pytest.mark.parametrize("files", [1, 2, 9])
def test_the_number_of_files_and_the_order_of_rows_change_nothing(files, tmp_path):
    rng = np.random.default_rng(files)
    mixed = {name: one.take(pa.array(rng.permutation(len(one)))) for name, one in CDM.items()}
    with open_engine("threads") as engine:
        _, read = same(save(mixed, tmp_path / "cdm", files), tmp_path / "c", ANY, engine)
    distribute_cohort(save(CDM, tmp_path / "other"), tmp_path / "d", ANY)
    other = load_cohort(tmp_path / "d")
    assert read.ids.equals(other.ids)
    assert read.names == other.names


def test_eunomia(tmp_path, monkeypatch):
    monkeypatch.setattr(shuffle, "PARTITION_ROWS", 30_000)
    names = ("condition_era", "person", "concept")
    folder = need("eunomia")
    rng = np.random.default_rng(5)
    tables = {name: pa_csv.read_csv(folder / f"{name.upper()}.csv.gz") for name in names}
    tables = {name: one.take(pa.array(rng.permutation(len(one)))) for name, one in tables.items()}
    with open_engine("threads") as engine:
        whole, _ = same(folder, tmp_path / "text", CohortSpec(), engine)
        same(save(tables, tmp_path / "cdm", 5), tmp_path / "parts", CohortSpec(), engine)
    assert whole.digest() == load_cohort(tmp_path / "parts").digest()
    assert whole.names == load_cohort(tmp_path / "parts").names


@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_files_side_by_side_and_a_glob_of_them(ending, tmp_path):
    for name, table in CDM.items():
        path = tmp_path / f"{name.upper()}.{ending}"
        write = pa_csv.write_csv if ending == "csv" else pq.write_table
        write(table, path)
    for number, source in enumerate((tmp_path, tmp_path / f"*.{ending}")):
        same(source, tmp_path.with_name(f"{tmp_path.name}-{number}"), VISITS)


@pytest.mark.parametrize("where", ["{0}/part-{1}.csv", "{0}-{1}.csv"])
def test_numbered_text_files_are_one_table(where, tmp_path):
    save(CDM, tmp_path / "whole", 1)
    for name, table in CDM.items():
        for number in range(3):
            path = tmp_path / "cdm" / where.format(name, number)
            path.parent.mkdir(parents=True, exist_ok=True)
            start = number * len(table) // 3
            pa_csv.write_csv(table.slice(start, (number + 1) * len(table) // 3 - start), path)
    distribute_cohort(tmp_path / "cdm", tmp_path / "cohort", ANY)
    whole, read = ANY.cohort(tmp_path / "whole"), load_cohort(tmp_path / "cohort")
    assert (read.digest(), read.names) == (whole.digest(), whole.names)
    assert sorted(map(str, read.covariates.to_pylist())) == sorted(
        map(str, whole.covariates.to_pylist())
    )
    with pytest.raises(RecordsError, match=r"in more than one file; join them into one\. Numb"):
        ANY.cohort(tmp_path / "cdm")


def refused(source, folder, preparation=ANY):
    """Return what workers say of records that memory refuses, too, in the same words."""
    with pytest.raises(RecordsError) as inside:
        preparation.cohort(source)
    with pytest.raises(RecordsError) as outside:
        distribute_cohort(source, folder, preparation)
    assert str(outside.value) == str(inside.value)
    assert not folder.with_name(f"{folder.name}.draft").exists()
    return str(outside.value)


NULLS = pa.array([None] * 1500, pa.int64())
REFUSED = {
    "no rows": (CDM | {"condition_occurrence": CONDITIONS.slice(0, 0)}, ANY, "holds no rows"),
    "no person": (
        changed(CDM, "condition_occurrence", person_id=NULLS), ANY, "no row with an id of a pat",
    ),
    "no visit": (
        changed(CDM, "condition_occurrence", visit_occurrence_id=NULLS), VISITS,
        "no row with an id of a visit; read with unit='patient'",
    ),
    "no code": (
        changed(CDM, "condition_occurrence", condition_concept_id=[0] * 1500), ANY,
        "hold no usable code",
    ),
    "no birth": (CDM | {"person": PERSON.drop_columns(["year_of_birth"])}, ANY, "year_of_birth"),
    "no key": (CDM | {"person": PERSON.drop_columns(["person_id"])}, ANY, "person_id"),
    "no name": (CDM | {"concept": CONCEPT.drop_columns(["concept_name"])}, ANY, "concept_name"),
    "no such table": (CDM, CohortSpec(table="drug_era"), "has no table 'drug_era'; the nearest"),
    "no such kind": (CDM, CohortSpec(kinds=("drug",)), "no table that is called after the kind"),
    "no usual table": (
        {"person": PERSON, "concept": CONCEPT}, ANY, "holds 2 tables: concept, person. Say which",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSED)
def test_what_memory_refuses_is_refused_alike(name, tmp_path, monkeypatch):
    monkeypatch.undo()
    tables, preparation, message = REFUSED[name]
    assert message in refused(save(tables, tmp_path / "cdm"), tmp_path / "c", preparation)


@pytest.mark.parametrize("name", CDM)
def test_damaged_files_of_any_table_are_refused(name, tmp_path):
    source = save(CDM, tmp_path / "cdm")
    file = sorted((source / name).iterdir())[-1]
    content = bytearray(file.read_bytes())
    content[len(content) // 3] ^= 255
    file.write_bytes(content)
    message = "is a damaged or cut-off Parquet file|can't be read to its end"
    with pytest.raises(RecordsError, match=message):
        distribute_cohort(source, tmp_path / "c", ANY)
    file.write_bytes(content[: len(content) // 2])
    assert "is a damaged or cut-off Parquet file" in refused(source, tmp_path / "d")


def test_visits_of_several_persons_are_refused(tmp_path):
    tables = changed(CDM, "condition_occurrence", visit_occurrence_id=[1, 2, 3] * 500)
    with pytest.raises(RecordsError, match=r"\d+ ids of column 'visit_occurrence_id' stand for"):
        distribute_cohort(save(tables, tmp_path / "cdm"), tmp_path / "c", VISITS)


def test_only_what_is_needed_is_brought_together(tmp_path, monkeypatch):
    seen = []
    write = partitions._write_files

    def spy(how, item):
        seen.append((item[1][0].file.parent.name, how.keys, how.columns))
        return write(how, item)

    monkeypatch.setattr(partitions, "_write_files", spy)
    tables = CDM | {"drug_exposure": CONCEPT}
    distribute_cohort(save(tables, tmp_path / "cdm", 1), tmp_path / "c", VISITS)
    assert seen == [
        ("condition_occurrence", ("person_id", "visit_occurrence_id"), ()),
        ("person", ("person_id",), ("person_id", "year_of_birth", "gender_concept_id")),
        ("concept", ("concept_id",), ("concept_id", "concept_name")),
    ]
