"""Preparation: how records become the rows of a model, so that new records go the same way."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field, replace
from typing import Any

from comorb.errors import RecordsError
from comorb.records.cohort import Cohort, Interval, Period
from comorb.records.layouts.layout import Layout
from comorb.records.reading import read_records


@dataclass(frozen=True)
class Preparation:
    """How records are read, which of them are kept, and which codes are left out.

    Attributes
    ----------
    table, layout, unit, system, level
        As in `read_records`.
    having, without : tuple of str
        Keep the records with any of these codes, and those with none of these.
    age, sex, dates
        Keep the records within these bounds, as in `Cohort.where`.
    at_least : int, default=3
        Keep the records with so many distinct codes (the paper's rule).
    drop_codes : tuple of str
        Codes to leave out once the records are chosen.
    drop_rare : int, default=0
        Leave out the codes of fewer records than this.
    """

    table: str | None = None
    layout: Layout = field(default_factory=Layout)
    unit: str | None = None
    system: str | None = None
    level: tuple[str, ...] = ("category",)
    having: tuple[str, ...] = ()
    without: tuple[str, ...] = ()
    age: Interval | None = None
    sex: tuple[str, ...] = ()
    dates: Period | None = None
    at_least: int = 3
    drop_codes: tuple[str, ...] = ()
    drop_rare: int = 0

    def read(self, source: Any, memory: str | None = None) -> Cohort:
        """Read every record of a source, whatever the rules."""
        return read_records(
            source,
            table=self.table,
            layout=self.layout,
            unit=self.unit,
            system=self.system,
            level=self.level,
            memory=memory,
        )

    def select(self, cohort: Cohort) -> Cohort:
        """Keep the records that the rules ask for, with all their codes."""
        if self.having:
            cohort = cohort.having(*self.having)
        if self.without:
            cohort = cohort.without(*self.without)
        cohort = cohort.where(age=self.age, sex=self.sex or None, dates=self.dates)
        return cohort.at_least(self.at_least) if self.at_least > 1 else cohort

    def drop(self, cohort: Cohort) -> Cohort:
        """Leave out the codes that the rules name, and keep every record."""
        if self.drop_codes:
            cohort = cohort.drop_codes(*self.drop_codes)
        if self.drop_rare > 1:
            cohort = cohort.drop_rare(self.drop_rare)
        if not cohort.codes:
            raise RecordsError(
                f"No code is left of those that {len(cohort):,} records have; leave out fewer."
            )
        return cohort

    def cohort(self, source: Any, memory: str | None = None) -> Cohort:
        """Read, select and drop."""
        return self.drop(self.select(self.read(source, memory)))

    def for_new_records(self, system: str, reading: Preparation | None = None) -> Preparation:
        """Return how to prepare new records for a model of this preparation.

        They are in the model's coding system, whatever they look like, and need no weights.
        ``reading`` says in which table and layout they are, when it isn't the same.
        """
        layout = (reading or self).layout
        return replace(
            self,
            table=(reading or self).table,
            layout=replace(layout, weight=None),
            system=None if "+" in system else system,
        )

    def to_dict(self) -> dict[str, Any]:
        """Return what differs from the default, as plain lists and dictionaries, for JSON."""
        plain, usual = asdict(self), asdict(Preparation())
        plain["layout"] = {key: value for key, value in plain["layout"].items() if value}
        usual["layout"] = {}
        plain["dates"] = self.dates and [end and str(end) for end in self.dates]
        return {key: value for key, value in plain.items() if value != usual[key]}

    @classmethod
    def from_dict(cls, plain: dict[str, Any]) -> Preparation:
        """Return the preparation that ``to_dict`` made plain."""
        lists = {key: tuple(value) for key, value in plain.items() if isinstance(value, list)}
        layout = plain.get("layout", {})
        if "codes" in layout:
            layout = layout | {"codes": tuple(layout["codes"])}
        return replace(cls(), **plain | lists | {"layout": Layout(**layout)})
