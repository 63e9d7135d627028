"""Estimate how common each ICD-9 category is from the National Hospital Discharge Survey.

Writes the table behind the built-in cohorts, aggregates only:
``python -m benchmarks.background_rates nhds2010.csv.gz``
"""

import csv
import gzip
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from comorb.records.codes import vocabulary as codes

TABLE = Path(__file__).parents[1] / "src/comorb/records/datasets/background_rates.csv"
SUPPRESSED_BELOW = 11
MATERNITY = {str(number) for number in range(630, 680)} | {f"V{n}" for n in range(22, 40)}


def main(survey: str) -> None:
    groups = {"adults": Counter[str](), "heart_failure": Counter[str]()}
    sizes = dict.fromkeys(groups, 0)
    for record, age in _records(survey):
        adult = age >= 18 and not record & MATERNITY
        failing = "428" in record and len(record) >= 3
        for group, inside in (("adults", adult), ("heart_failure", failing)):
            if inside:
                sizes[group] += 1
                groups[group].update(record)
    kept = {
        group: {code: count for code, count in counts.items() if count >= SUPPRESSED_BELOW}
        for group, counts in groups.items()
    }
    with TABLE.open("w", newline="", encoding="utf-8") as file:
        table = csv.writer(file, lineterminator="\n")
        table.writerow(["code", *groups])
        for code in sorted(set().union(*kept.values())):
            rates = [kept[group].get(code, 0) / sizes[group] for group in groups]
            table.writerow([code, *(f"{rate:.3g}" if rate else "" for rate in rates)])
    print(f"{TABLE.name}: {len(kept['adults'])} categories from {sizes} records")


def _records(survey: str) -> Iterator[tuple[set[str], int]]:
    with gzip.open(survey, "rt", encoding="utf-8") as file:
        for row in csv.DictReader(file):
            raw = [value for column, value in row.items() if column.startswith("dx") and value]
            features = codes.featurise(raw, "icd9cm", ["category"])
            yield {code for found in features.of.values() for code in found}, int(row["age_years"])


if __name__ == "__main__":
    main(sys.argv[1])
