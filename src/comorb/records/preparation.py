"""Preparation: how records become the rows of a model, so that new records go the same way."""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from typing import Any

from comorb.errors import EmptyCohortError, RecordsError
from comorb.model.features import Feature
from comorb.records.asked import AnyAsked, Asked, written
from comorb.records.beside import COVARIATES, Beside, arranged, table_of
from comorb.records.codes.coding import Coding
from comorb.records.codes.own_map import CodeMap
from comorb.records.codes.systems import systems_by_kind
from comorb.records.cohort import Cohort, Interval, Period
from comorb.records.joining import open_joining
from comorb.records.layouts.dating import dated
from comorb.records.layouts.description import LISTS, Layout
from comorb.records.layouts.names import present_name
from comorb.records.layouts.plan import Plan
from comorb.records.layouts.readers import open_columns, plan_reading
from comorb.records.layouts.roles import LEAST, ColumnRole, column_roles
from comorb.records.sources.duck import OpenedSource
from comorb.records.sources.opening import open_source


@dataclass(frozen=True)
class Reading:
    """A cohort and what its source was understood to be."""

    cohort: Cohort
    source: str
    table: str
    layout: Layout
    unit: str
    columns: tuple[ColumnRole, ...] = ()


@dataclass(frozen=True)
class Preparation:
    """How records are read, which of them are kept, and which codes are left out.

    Read as by `read_records`; kept are the records with any of the codes ``having``, with none of
    ``without``, within the bounds of `Cohort.where`, and with ``at_least`` so many distinct codes:
    by default 3 (the paper's rule), and none where a table has a column for each item. With 0,
    records without a code are read, too. Then ``drop_codes`` go, and those of fewer than
    ``drop_rare`` records. ``code_map`` is the map itself, not its file, so that a model has it.

    ``kinds`` are tables of the records' source that are read together, such as 'diagnosis' and
    'drug'; ``layouts`` are those of sources that are read beside the records, by their kinds. A
    ``system`` such as 'icd9cm drug:atc' is that of the records, and of a kind beside them.

    ``features`` are covariates that the model learns from beside the codes; a kind that isn't said
    is recognised in the records that are kept. Those of a fitted model are taken as they are.
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
    code_map: CodeMap | None = None
    chronic: bool = False
    scores: tuple[str, ...] = ()
    kinds: tuple[str, ...] = ()
    layouts: tuple[tuple[str, Layout], ...] = ()
    features: tuple[AnyAsked, ...] = ()

    @property
    def coding(self) -> Coding:
        """What codes become."""
        return Coding.of(self.level, self.code_map, self.chronic, self.scores)

    def read(self, source: Any, memory: str | None = None) -> Cohort:
        """Read every record of a source, whatever the rules."""
        return self.open(source, memory).cohort

    def open(self, source: Any, memory: str | None = None, least: int | None = None) -> Reading:
        """Read every record of a source, with what was understood of it.

        With ``least``, also with what each column is: values of so many patients are shown.
        """
        coding = self.coding
        kind, records, besides = self.sources(source)
        with open_source(records, memory) as opened:
            plan = self.plan(opened, kind, whole=True)
            encode = partial(plan.vocabulary, system=self.own_system, coding=coding)
            assembly = plan.reader.read(opened, plan, encode)
            if assembly.vocabulary.undecided and (by_date := dated(opened, plan)):
                assembly = by_date.reader.read(opened, by_date, encode)
            plan.check_usable(assembly)
            cohort = plan.cohort(assembly, coding, Cohort)
            notes = (*plan.notes, *cohort.ledger.notes, *opened.notes, *plan.doubts(opened))
            cohort = replace(cohort, ledger=replace(cohort.ledger, notes=notes))
            if besides:
                with open_joining(records, opened, plan, besides, self.level, memory) as joining:
                    cohort = joining.join(cohort).drop_unused()
            roles: tuple[ColumnRole, ...] = ()
            if least is not None:
                table, names = plan.stored or plan.table, cohort.covariates.column_names
                roles = column_roles(opened, table, plan.layout, names, least)
            return Reading(cohort, opened.label, plan.table.label, plan.layout, plan.unit, roles)

    def columns(self, source: Any, least: int = LEAST) -> tuple[ColumnRole, ...]:
        """Return what each column of a table is that no reader may understand.

        Nothing is returned of a table with fewer than ``least`` rows.
        """
        with open_source(source) as opened:
            table, columns = open_columns(opened, self.table, self.layout)
            ((rows,),) = opened.rows(table, f"SELECT count(*) FROM {table.sql}")
            if rows < least:
                return ()
            layout = columns.layout("", columns.codes)
            return column_roles(opened, table, layout, least=least)

    def sources(self, source: Any) -> tuple[str, Any, tuple[Beside, ...]]:
        """Return the kind of the records, their own source, and what is read beside them."""
        return arranged(source, self.kinds, dict(self.layouts), self.system)

    def plan(self, opened: OpenedSource, kind: str, whole: bool = False) -> Plan:
        """Find out how to read the records, which are of a kind, ``whole`` or in parts."""
        return plan_reading(
            opened,
            self.table_in(opened, kind),
            replace(self.layout, features=tuple(one.name for one in self.features)),
            self.unit,
            whole=whole,
            keep_empty=self.at_least == 0,
            kind=kind,
        )

    def table_in(self, opened: OpenedSource, kind: str) -> str | None:
        """Return the table of the records in a source, if one is said."""
        return table_of(opened, kind) if self.table is None and self.kinds else self.table

    @property
    def own_system(self) -> str | None:
        """The coding system of the records' own codes, if it is said."""
        return systems_by_kind(self.system or "").get("")

    def check(self, cohort: Cohort) -> None:
        """Refuse rules that name a code or a column that none of all records has.

        Asked of all records first, so that what is refused tells nothing of those that are kept.
        """
        cohort.check_codes(*self.having, *self.without, *self.drop_codes)
        cohort.check_features(*(one.name for one in self.asked(cohort)))
        with suppress(EmptyCohortError):
            cohort.where(age=self.age, sex=self.sex or None, dates=self.dates)

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
        """Leave out the codes that the rules name, keep every record, and make the features."""
        if self.drop_codes:
            cohort = cohort.drop_codes(*self.drop_codes)
        if self.drop_rare > 1:
            cohort = cohort.drop_rare(self.drop_rare)
        if not (cohort.codes or cohort.features or self.asked(cohort)):
            raise RecordsError("No code is left of those that the records have; leave out fewer.")
        return self.featured(cohort)

    def asked(self, cohort: Cohort) -> tuple[AnyAsked, ...]:
        """Return the features to make of a cohort: those asked for, and items that need it."""
        names = cohort.covariates.column_names
        own = [replace(one, name=present_name(one.name, names)) for one in self.features]
        said = {one.name for one in own}
        return (*own, *(one for one in cohort.asked if one.name not in said))

    def featured(self, cohort: Cohort) -> Cohort:
        """Make the features of a cohort."""
        return cohort.with_features(*self.asked(cohort))

    def apply(self, cohort: Cohort) -> Cohort:
        """Check, select, drop, and make the features."""
        self.check(cohort)
        return self.drop(self.select(cohort))

    def cohort(self, source: Any, memory: str | None = None) -> Cohort:
        """Read, select and drop."""
        return self.apply(self.read(source, memory))

    def for_new_records(
        self,
        system: str,
        reading: Preparation | None = None,
        every: bool = False,
        features: Sequence[Feature] = (),
    ) -> Preparation:
        """Return how to prepare new records for a model of this preparation.

        They are in the model's coding systems, whatever they look like, unless its features are
        those of several; they need no weights and no scores and keep all their codes. ``reading``
        says in which table and layout they are, when it isn't the same; ``every`` keeps also the
        records that the rules would leave out; ``features`` are those of the model.
        """
        same = reading or self
        chosen = Preparation(at_least=0) if every else self
        layouts = tuple(one for one in self.layouts if features or one[0] not in COVARIATES)
        systems = systems_by_kind(system)
        own = systems.pop("", "")
        shared = "+" in own or "common" in self.level or self.code_map is not None
        words = [(self.own_system or "") if shared else own]
        words += [f"{kind}:{keys}" for kind, keys in systems.items()]
        return replace(
            chosen,
            table=same.table,
            layout=replace(same.layout, weight=None),
            kinds=same.kinds or self.kinds,
            layouts=(reading.layouts if reading else ()) or layouts,
            unit=self.unit,
            system=" ".join(filter(None, words)) or None,
            level=self.level,
            drop_codes=(),
            drop_rare=0,
            code_map=self.code_map,
            chronic=self.chronic,
            scores=tuple(one for one in self.scores if one in {each.name for each in features}),
            features=tuple(features),
        )

    def words(self) -> list[str]:
        """Return the words that ask the command line for this preparation.

        >>> Preparation(having=("428",), age=(65, None)).words()
        ['--having', '428', '--where', 'age=65:']
        """
        layout = self.layout
        columns = _columns(layout)
        for kind, own in self.layouts:
            columns += [f"{kind}.{column}" for column in _columns(own)]
        where = {
            "age": self.age and ":".join("" if end is None else _number(end) for end in self.age),
            "sex": _listed(self.sex),
            "dates": self.dates and ":".join("" if end is None else str(end) for end in self.dates),
        }
        options: list[tuple[str, Sequence[str]]] = [
            ("--kinds", [",".join(self.kinds)] if self.kinds else []),
            ("--table", [self.table] if self.table else []),
            ("--layout", [layout.kind] if layout.kind else []),
            ("--column", columns),
            ("--weights", [layout.weight] if layout.weight else []),
            ("--unit", [self.unit] if self.unit else []),
            ("--system", [self.system] if self.system else []),
            ("--level", self.level if self.level != ("category",) else []),
            ("--map", [self.code_map.file] if self.code_map else []),
            ("--score", self.scores),
            ("--feature", [written(one) for one in self.features]),
            ("--having", self.having),
            ("--without", self.without),
            ("--where", [f"{name}={rule}" for name, rule in where.items() if rule]),
            ("--at-least", [] if self.at_least is None else [str(self.at_least)]),
            ("--drop-codes", self.drop_codes),
            ("--drop-rare", [str(self.drop_rare)] if self.drop_rare else []),
        ]
        words = [word for option, values in options for value in values for word in (option, value)]
        return [*words, "--chronic"] if self.chronic else words

    def to_dict(self) -> dict[str, Any]:
        """Return what differs from the default, as plain lists and dictionaries, for JSON."""
        plain, usual = asdict(self), asdict(Preparation())
        plain["features"] = [
            {key: value for key, value in asdict(one).items() if value is not None}
            for one in self.features
        ]
        usual["features"] = []
        plain["layout"] = {key: value for key, value in plain["layout"].items() if value}
        usual["layout"] = {}
        plain["layouts"] = {
            kind: {key: value for key, value in asdict(own).items() if value}
            for kind, own in self.layouts
        }
        usual["layouts"] = {}
        plain["code_map"] = self.code_map and self.code_map.to_dict()
        plain["dates"] = self.dates and [end and str(end) for end in self.dates]
        return {key: value for key, value in plain.items() if value != usual[key]}

    @classmethod
    def from_dict(cls, plain: dict[str, Any]) -> Preparation:
        """Return the preparation that ``to_dict`` made plain."""
        lists = {key: tuple(value) for key, value in plain.items() if isinstance(value, list)}
        given = plain | lists | {"layout": _layout(plain.get("layout", {}))}
        given["layouts"] = tuple(
            (kind, _layout(own)) for kind, own in plain.get("layouts", {}).items()
        )
        given["features"] = tuple(map(_feature, plain.get("features", ())))
        if "code_map" in plain:
            given["code_map"] = CodeMap.from_dict(plain["code_map"])
        return replace(cls(), **given)


def _columns(layout: Layout) -> list[str]:
    """Return the columns that a layout names, by their roles, and what it says of its texts."""
    columns = {"codes": _listed(layout.codes or ()), "separator": layout.separator}
    columns |= {"yes": layout.yes}
    columns |= {role: name for role, name in layout.roles.items() if role != "weight"}
    pairs = [*columns.items(), *((role, name) for role in LISTS for name in getattr(layout, role))]
    return [f"{role}={name}" for role, name in pairs if name]


def _feature(plain: dict[str, Any] | str) -> AnyAsked:
    """Return what is asked for, in a word or not, or a feature of a model, which has levels."""
    if isinstance(plain, str):
        return Asked.parse(plain)
    if "levels" not in plain:
        return Asked(**plain)
    return Feature(**plain | {"levels": tuple(plain["levels"])})


def _layout(plain: dict[str, Any]) -> Layout:
    lists = {key: tuple(value) for key, value in plain.items() if isinstance(value, list)}
    return Layout(**(plain | lists))


def _listed(names: Sequence[str]) -> str:
    """Return names between commas, in quotes where they hold one."""
    line = io.StringIO()
    csv.writer(line, lineterminator="").writerow(names)
    return line.getvalue()


def _number(value: float) -> str:
    return f"{value:g}" if float(f"{value:g}") == value else repr(float(value))
