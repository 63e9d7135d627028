"""A random cohort, written in any layout, language and kind of file, is read back equal.

COMORB_EXAMPLES says how many cohorts are tried in each layout and language, COMORB_DAMAGES how many
tables of each layout are damaged.
"""

import gzip
import json
import os
import random
import sqlite3
from collections import Counter

import duckdb
import openpyxl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from comorb.records.spec import CohortSpec
from tests.records.helpers import sets
from tests.records.sources.test_damage import read_or_refused

EXAMPLES = int(os.environ.get("COMORB_EXAMPLES", "3"))
DAMAGES = int(os.environ.get("COMORB_DAMAGES", "30"))
CODES = {
    "icd9cm": ["428.0", "250.00", "401.9", "V45.81", "E819.0", "038.9", "585.6", "V58.61", "311"],
    "icd9cm undotted": ["4280", "25000", "4019", "V4581", "E8190", "0389", "5856", "V5861", "311"],
    "icd10": ["I50.0", "E11.9", "I10", "Z95.5", "N18.4", "J44.1", "F32.9", "K21.0", "C50.9"],
}
# The record, the code, several codes, age and sex, as files call them.
HEADERS = {
    "en": ("visit_id", "icd_code", "dx{}", "age", "sex"),
    "de": ("Fallnummer", "ICD", "Diagnose {}", "Alter", "Geschlecht"),
    "fr": ("N° séjour", "Code CIM-10", "Diagnostic {}", "Âge", "Sexe"),
    "es": ("Id episodio", "CIE10", "Diagnóstico {}", "Edad", "Sexo"),
    "ca": ("Núm. episodi", "Codi diagnòstic", "diagnòstic_{}", "Edat", "sexe"),
    "it": ("codice ricovero", "Diagnosi", "Diagnosi{}", "Età", "Sesso"),
    "pt": ("ID_INTERNACAO", "CID10", "CID10_{}", "IDADE", "SEXO"),
    "nl": ("opnamenummer", "Diagnosecode", "Diagnose{}", "Leeftijd", "Geslacht"),
}
SEPARATORS = [",", ";", "\t", "|"]
PACKED = {"plain": bytes, "gzip": gzip.compress, "zstd": lambda data: _zstd(data)}


def _zstd(data):
    return pa.compress(data, "zstd", asbytes=True)


@st.composite
def cohorts(draw):
    """Records with their codes, ages and sexes; the codes are of one way of writing."""
    codes = draw(st.sampled_from(list(CODES.values())))
    ids = draw(st.lists(st.integers(1, 99_999), min_size=4, max_size=12, unique=True))
    width = draw(st.sampled_from(["{}", "{:05}", "A{}"]))
    some = st.lists(st.sampled_from(codes), min_size=2, max_size=5, unique=True)
    return {
        width.format(id_): (draw(some), draw(st.integers(0, 99)), draw(st.sampled_from("FM")))
        for id_ in ids
    }


def wide(cohort, headers):
    record, _, several, age, sex = headers
    width = max(len(codes) for codes, _, _ in cohort.values())
    columns = {
        several.format(place + 1): [
            codes[place] if place < len(codes) else None for codes, _, _ in cohort.values()
        ]
        for place in range(width)
    }
    return _beside(cohort, record, age, sex) | columns


def long(cohort, headers):
    record, code, _, age, sex = headers
    rows = [(id_, c, a, s) for id_, (codes, a, s) in cohort.items() for c in codes]
    names = (record, code, age, sex)
    return dict(zip(names, map(list, zip(*rows, strict=True)), strict=True))


def delimited(cohort, headers):
    record, code, _, age, sex = headers
    mark = random.Random(len(cohort)).choice(["; ", " ", "/"])
    texts = [mark.join(codes) for codes, _, _ in cohort.values()]
    return _beside(cohort, record, age, sex) | {code: texts}


def binary(cohort, headers):
    record, _, _, age, sex = headers
    every = sorted({code for codes, _, _ in cohort.values() for code in codes})
    flags = {code: [int(code in codes) for codes, _, _ in cohort.values()] for code in every}
    return _beside(cohort, record, age, sex) | flags


def _beside(cohort, record, age, sex):
    return {
        record: list(cohort),
        age: [years for _, years, _ in cohort.values()],
        sex: [one for _, _, one in cohort.values()],
    }


LAYOUTS = {"wide": wide, "long": long, "delimited": delimited, "binary": binary}


def mingled(columns, picked):
    """Return columns in another order, with others between them, of rows in another order."""
    rows = len(next(iter(columns.values())))
    noise = {
        "ward": [picked.choice(["north", "south"]) for _ in range(rows)],
        "total_cost": [f"{picked.uniform(10, 9999):.2f}" for _ in range(rows)],
        "los": [picked.randrange(1, 60) for _ in range(rows)],
        "discharged_to": [picked.randrange(1, 29) for _ in range(rows)],
        "remark": [picked.choice(["seen again", "no remark", None]) for _ in range(rows)],
        "row": list(range(rows)),
    }
    every = columns | {name: noise[name] for name in picked.sample(sorted(noise), 3)}
    names, order = list(every), list(range(rows))
    picked.shuffle(names)
    picked.shuffle(order)
    rename = picked.choice([str, str, str.upper, str.lower])
    return {rename(name): [every[name][row] for row in order] for name in names}


def as_text(columns, separator):
    def cell(value):
        text = "" if value is None else str(value)
        return f'"{text}"' if separator in text else text

    rows = [list(columns), *zip(*columns.values(), strict=True)]
    return "".join(separator.join(map(cell, row)) + "\n" for row in rows)


def arrow(table, path):
    with pa.ipc.new_file(path, table.schema) as writer:
        writer.write_table(table)


def ndjson(table, path):
    path.write_text("".join(json.dumps(row) + "\n" for row in table.to_pylist()))


def duck(table, path):
    with duckdb.connect(str(path)) as connection:
        connection.register("rows", table)
        connection.execute("CREATE TABLE visits AS FROM rows")


def sqlite(table, path):
    connection = sqlite3.connect(path)
    names = ", ".join(f'"{name}"' for name in table.column_names)
    connection.execute(f"CREATE TABLE visits ({names})")
    marks = ", ".join("?" for _ in table.column_names)
    rows = [tuple(row.values()) for row in table.to_pylist()]
    connection.executemany(f"INSERT INTO visits VALUES ({marks})", rows)
    connection.commit()
    connection.close()


def xlsx(table, path):
    book = openpyxl.Workbook()
    book.active.append(table.column_names)
    for row in table.to_pylist():
        book.active.append(list(row.values()))
    book.save(path)


KINDS = {
    "parquet": pq.write_table,
    "arrow": arrow,
    "ndjson": ndjson,
    "duckdb": duck,
    "sqlite": sqlite,
    "xlsx": xlsx,
}
TEXTS = [(separator, packing) for separator in SEPARATORS for packing in PACKED]


def check(source, cohort):
    """Compare what is read with what was written: codes, ages and sexes of each record."""
    read = CohortSpec(level=("full",), at_least=1).cohort(source)
    assert sets(read) == {
        id_: {code.replace(".", "") for code in codes} for id_, (codes, _, _) in cohort.items()
    }
    ids = read.ids.to_pylist()
    for name, place in (("age", 1), ("sex", 2)):
        values = dict(zip(ids, read.covariates[name].to_pylist(), strict=True))
        assert values == {id_: one[place] for id_, one in cohort.items()}
    assert read.ledger.adds_up


CALM = settings(
    max_examples=EXAMPLES,
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)


@pytest.mark.parametrize("language", HEADERS)
@pytest.mark.parametrize("layout", LAYOUTS)
@CALM
@given(cohort=cohorts(), way=st.sampled_from([*TEXTS, *KINDS]), seed=st.integers(0, 999))
def test_what_is_written_is_read_back(layout, language, cohort, way, seed, tmp_path):
    columns = LAYOUTS[layout](cohort, HEADERS[language])
    columns = mingled(columns, random.Random(seed)) if seed else columns
    path = tmp_path / "records.data"
    path.unlink(missing_ok=True)
    if isinstance(way, tuple):
        separator, packing = way
        path.write_bytes(PACKED[packing](as_text(columns, separator).encode()))
    else:
        KINDS[way](pa.table(columns), path)
    check(path, cohort)


def damaged_cells(text, separator, picked):
    """Damage a table as people do: cells lost, moved, doubled or filled with something else."""
    rows = [line.split(separator) for line in text.splitlines()]
    strange = ["", "NA", "?", "'", '"', "1e9", "-1", "\x00", "é", "I10;E11", "=1+1", "  ", "0" * 70]
    for _ in range(picked.choice([1, 1, 3, 20])):
        row = picked.choice(rows)
        if not row:
            continue
        place = picked.randrange(len(row))
        way = picked.randrange(7)
        if way == 0:
            del row[place]
        elif way == 1:
            row.insert(place, picked.choice(strange))
        elif way == 2:
            rows.remove(row)
            rows = rows or [[]]
        elif way == 3:
            rows.insert(picked.randrange(len(rows) + 1), list(row))
        elif way == 4:
            row[place] = picked.choice(strange)
        elif way == 5:
            for other in rows[1:]:
                if place < len(other):
                    other[place] = picked.choice(strange)
        else:
            row[:] = picked.choice(rows)
    return "".join(separator.join(row) + "\n" for row in rows)


def a_cohort(picked):
    codes = picked.choice(list(CODES.values()))
    return {
        str(id_): (picked.sample(codes, picked.randint(1, 5)), picked.randrange(99), "F")
        for id_ in picked.sample(range(1, 99_999), picked.randint(1, 30))
    }


@pytest.mark.parametrize("layout", LAYOUTS)
def test_damaged_tables_are_read_or_refused(layout, tmp_path):
    outcomes = Counter()
    for seed in range(DAMAGES):
        picked = random.Random(seed)
        columns = LAYOUTS[layout](a_cohort(picked), HEADERS[picked.choice(list(HEADERS))])
        separator = picked.choice(SEPARATORS)
        text = as_text(mingled(columns, picked), separator)
        path = tmp_path / "records.data"
        path.write_bytes(damaged_cells(text, separator, picked).encode())
        outcomes[read_or_refused(path)] += 1
    assert outcomes[True]
    assert outcomes[False] or DAMAGES < 10
