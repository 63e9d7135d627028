"""Preparation: how records become the rows of a model, so that new records go the same way."""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any

from comorb.errors import RecordsError
from comorb.records.cohort import Cohort, Interval, Period
from comorb.records.layouts.layout import Layout
from comorb.records.reading import Reading, open_records


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
    at_least : int, optional
        Keep the records with so many distinct codes; by default 3 (the paper's rule), and none
        where a table has a column for each item. With 0, records without a code are read, too.
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
    at_least: int | None = None
    drop_codes: tuple[str, ...] = ()
    drop_rare: int = 0

    def read(self, source: Any, memory: str | None = None) -> Cohort:
        """Read every record of a source, whatever the rules."""
        return self.open(source, memory).cohort

    def open(self, source: Any, memory: str | None = None) -> Reading:
        """Read every record of a source, with what was understood of it."""
        return open_records(
            source,
            table=self.table,
            layout=self.layout,
            unit=self.unit,
            system=self.system,
            level=self.level,
            memory=memory,
            keep_empty=self.at_least == 0,
        )

    def select(self, cohort: Cohort) -> Cohort:
        """Keep the records that the rules ask for, with all their codes."""
        if self.having:
            cohort = cohort.having(*self.having)
        if self.without:
            cohort = cohort.without(*self.without)
        cohort = cohort.where(age=self.age, sex=self.sex or None, dates=self.dates)
        least = cohort.least_codes if self.at_least is None else self.at_least
        return cohort.at_least(least) if least > min(cohort.least_codes, 1) else cohort

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

    def apply(self, cohort: Cohort) -> Cohort:
        """Select and drop."""
        return self.drop(self.select(cohort))

    def cohort(self, source: Any, memory: str | None = None) -> Cohort:
        """Read, select and drop."""
        return self.apply(self.read(source, memory))

    def for_new_records(
        self, system: str, reading: Preparation | None = None, every: bool = False
    ) -> Preparation:
        """Return how to prepare new records for a model of this preparation.

        They are in the model's coding system, whatever they look like, need no weights and keep
        all their codes. ``reading`` says in which table and layout they are, when it isn't the
        same; ``every`` keeps also the records that the rules would leave out.
        """
        same = reading or self
        chosen = Preparation(at_least=0) if every else self
        return replace(
            chosen,
            table=same.table,
            layout=replace(same.layout, weight=None),
            unit=self.unit,
            system=None if "+" in system else system,
            level=self.level,
            drop_codes=(),
            drop_rare=0,
        )

    def words(self) -> list[str]:
        """Return the words that ask the command line for this preparation.

        >>> Preparation(having=("428",), age=(65, None)).words()
        ['--having', '428', '--where', 'age=65:']
        """
        layout = self.layout
        columns = {"codes": _listed(layout.codes or ()), "separator": layout.separator}
        columns |= {"yes": layout.yes}
        columns |= {role: name for role, name in layout.roles.items() if role != "weight"}
        where = {
            "age": self.age and ":".join("" if end is None else _number(end) for end in self.age),
            "sex": _listed(self.sex),
            "dates": self.dates and ":".join("" if end is None else str(end) for end in self.dates),
        }
        options: list[tuple[str, Sequence[str]]] = [
            ("--table", [self.table] if self.table else []),
            ("--layout", [layout.kind] if layout.kind else []),
            ("--column", [f"{role}={name}" for role, name in columns.items() if name]),
            ("--weights", [layout.weight] if layout.weight else []),
            ("--unit", [self.unit] if self.unit else []),
            ("--system", [self.system] if self.system else []),
            ("--level", self.level if self.level != ("category",) else []),
            ("--having", self.having),
            ("--without", self.without),
            ("--where", [f"{name}={rule}" for name, rule in where.items() if rule]),
            ("--at-least", [] if self.at_least is None else [str(self.at_least)]),
            ("--drop-codes", self.drop_codes),
            ("--drop-rare", [str(self.drop_rare)] if self.drop_rare else []),
        ]
        return [word for option, values in options for value in values for word in (option, value)]

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


def _listed(names: Sequence[str]) -> str:
    """Return names between commas, in quotes where they hold one."""
    line = io.StringIO()
    csv.writer(line, lineterminator="").writerow(names)
    return line.getvalue()


def _number(value: float) -> str:
    return f"{value:g}" if float(f"{value:g}") == value else repr(float(value))
