"""The two cohorts of the paper's studies, from a public survey or, without it, built in."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv

from comorb.records import datasets
from comorb.records.cohort import Cohort
from comorb.records.read import read_records

SURVEY = "nhds2010.csv.gz"
WHERE = (
    "The National Hospital Discharge Survey 2010 is a public-use file of the US National Center "
    "for Health Statistics, with its documentation at https://www.cdc.gov/nchs/nhds.htm. Write it "
    "as a CSV file with the columns record_id, age_years, sex and dx1 to dx15, and name that file "
    "with --data."
)

# Reasons for a tertiary admission, as ICD-9-CM categories of the first-listed diagnosis.
TERTIARY: dict[str, tuple[str, ...]] = {
    "oncology": ("140-172", "174-208", "225"),
    "heart surgery and intervention": ("394-397", "411", "413-414", "424", "441", "745-747"),
    "myocardial infarct": ("410",),
    "acute ictus and neurosurgery": ("430-434", "436", "348"),
    "major trauma": ("800-806", "850-854", "860-869", "952", "958"),
    "sepsis": ("038",),
    "transplant and end-stage kidney disease": ("V42", "585", "403"),
}


@dataclass(frozen=True)
class PaperStudy:
    """A cohort to cluster, the number of clusters, and where it came from."""

    name: str
    k: int
    cohort: Cohort
    source: str


def expanded(spans: tuple[str, ...]) -> set[str]:
    """Return the categories of spans such as '140-172'.

    >>> sorted(expanded(("038", "394-396")))
    ['038', '394', '395', '396']
    """
    categories: set[str] = set()
    for span in spans:
        first, _, last = span.partition("-")
        categories |= {f"{n:03d}" for n in range(int(first), int(last) + 1)} if last else {first}
    return categories


def paper_studies(data: Path) -> list[PaperStudy]:
    """Return the heart-failure and the tertiary study: of the survey, or built in without it."""
    if not data.exists():
        built = "simulated after the paper's own table"
        return [
            PaperStudy("heart failure", 5, datasets.heart_failure(), built),
            PaperStudy("tertiary", 6, datasets.tertiary(), built),
        ]
    records = _survey(data)
    wanted = set().union(*(expanded(spans) for spans in TERTIARY.values()))
    first = pc.utf8_slice_codeunits(records["dx1"], 0, 3)
    chosen = records.filter(pc.is_in(first, pa.array(sorted(wanted))))
    survey = "National Hospital Discharge Survey 2010"
    heart = read_records(records, system="icd9cm").having("428").at_least(3)
    tertiary = read_records(chosen, system="icd9cm").at_least(3)
    return [
        PaperStudy("heart failure", 5, heart, f"{survey}: category 428 in any position"),
        PaperStudy("tertiary", 6, tertiary, f"{survey}: first-listed category in the list below"),
    ]


def _survey(data: Path) -> pa.Table:
    header = pyarrow.csv.open_csv(data).schema.names
    kept = [name for name in header if name.startswith("dx")]
    kept = [name for name in ("record_id", "age_years", "sex") if name in header] + kept
    types = {name: pa.string() for name in kept if name != "age_years"}
    options = pyarrow.csv.ConvertOptions(
        include_columns=kept, column_types=types, strings_can_be_null=True
    )
    return pyarrow.csv.read_csv(data, convert_options=options)
