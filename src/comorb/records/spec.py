"""CohortSpec: which records are read, how, and which of them and their codes are kept.

Every rule is declared here and nowhere else; see `comorb.fields` for what follows from that.
What is heavy is imported where it is used, so that help and the explorer's server start at once.
"""

from __future__ import annotations

import csv
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any

from comorb import fields
from comorb.errors import EmptyCohortError, RecordsError
from comorb.fields import (
    Form,
    Given,
    Option,
    OptionError,
    Rule,
    Spec,
    declare,
    listed,
    rules_of,
    words_of,
)
from comorb.records.codes.scores import SCORES
from comorb.records.codes.systems import SYSTEMS, systems_by_kind
from comorb.records.layouts.layout import (
    COVARIATE_ROLES,
    EVENT_ROLES,
    LIST_ROLES,
    VISIT_ROLES,
    Layout,
)
from comorb.records.layouts.names import resolve_name

if TYPE_CHECKING:
    from comorb.model.arrays import Ints, Mask
    from comorb.model.emissions.base import Feature
    from comorb.records.auxiliary import AuxiliaryTable
    from comorb.records.codes.code_map import CodeMap
    from comorb.records.codes.vocabulary import Coding
    from comorb.records.cohort import Cohort, Interval, Period
    from comorb.records.features import AnyFeature
    from comorb.records.layouts.plan import ColumnRole, Plan
    from comorb.records.sources.duck import OpenedSource

ROLES = (
    *("codes", "record", "patient", "part", "separator", "yes", "version"),
    *COVARIATE_ROLES,
    *VISIT_ROLES,
    *LIST_ROLES,
)
# The parts that decide how records are read; in this order their words stand in a command.
READING = ("source", "weights", "record", "coding", "features")


class _CodeMapForm(Form):
    """A map from codes to groups: its file in words, whole in JSON."""

    def accept(self, text: Any) -> Any:
        from comorb.records.codes.code_map import open_map

        return open_map(text)

    read = accept

    def words(self, rule: Rule, value: Any) -> list[str]:
        return [rule.flag, value.file]

    def plain(self, value: Any) -> Any:
        return value and value.to_dict()

    def restore(self, plain: Any) -> Any:
        from comorb.records.codes.code_map import CodeMap

        return CodeMap.from_dict(plain)


class _FeaturesForm(fields.Texts):
    """Covariates that become features: as words, or as in a fitted model."""

    def accept(self, text: Any) -> Any:
        from comorb.records.features import parse_features

        return parse_features(text)

    read = accept

    def words(self, rule: Rule, value: Any) -> list[str]:
        from comorb.records.features import write_feature

        return super().words(rule, tuple(map(write_feature, value)))

    def plain(self, value: Any) -> Any:
        values = (one.to_dict().items() for one in value)
        return [{key: own for key, own in items if own is not None} for items in values]

    def restore(self, plain: Any) -> Any:
        from comorb.model.emissions.base import Feature
        from comorb.records.features import FeatureSpec

        def restore_one(one: Any) -> Any:
            if isinstance(one, str):
                return FeatureSpec.parse(one)
            if "levels" in one:
                return Feature(**one | {"levels": tuple(one["levels"])})
            return FeatureSpec.from_dict(one)

        return tuple(map(restore_one, plain))


class _LayoutForm(Form):
    """The layout of the records: ``--weights`` is its own option, the others are shared."""

    def shown(self, default: Any) -> Any:
        return None

    def parse(self, rule: Rule, given: Given) -> Any:
        named = {"kind": given.get("--layout"), "weight": given.get("--weights")}
        roles = _roles(given.get("--column")).get("", {})
        return Layout(**roles | {name: value for name, value in named.items() if value})

    def words(self, rule: Rule, value: Any) -> list[str]:
        words = ["--layout", value.kind] if value.kind else []
        words += [word for column in _columns(value) for word in ("--column", column)]
        return [*words, rule.flag, value.weight] if value.weight else words

    def accept(self, value: Any) -> Any:
        return value if isinstance(value, Layout) else Layout(kind=value)

    def plain(self, value: Any) -> Any:
        return {key: own for key, own in asdict(value).items() if own}

    def restore(self, plain: Any) -> Any:
        return Layout(**{key: super(_LayoutForm, self).restore(own) for key, own in plain.items()})


class _LayoutsForm(_LayoutForm):
    """The layouts of auxiliary tables, by their kinds."""

    def options(self, rule: Rule) -> list[Option]:
        kind = Option(rule.flags, rule.metavar, rule.help, part=rule.part)
        text = (
            f"Which column is what: {', '.join(ROLES)}; several codes by commas, or as dx1-dx9; "
            "died=NAME:VALUE,VALUE names the values that count, as does readmitted; "
            "drug.codes=NAME of what is read beside RECORDS. Recognised when left out."
        )
        return [kind, Option(("--column",), "ROLE=NAME", text, list[str] | None, part=rule.part)]

    def parse(self, rule: Rule, given: Given) -> Any:
        roles = _roles(given.get("--column"))
        return tuple((kind, Layout(**own)) for kind, own in roles.items() if kind)

    def words(self, rule: Rule, value: Any) -> list[str]:
        columns = [f"{kind}.{column}" for kind, own in value for column in _columns(own)]
        return [word for column in columns for word in ("--column", column)]

    def accept(self, value: Any) -> Any:
        return tuple(dict(value).items())

    def plain(self, value: Any) -> Any:
        return {kind: _LayoutForm.plain(self, own) for kind, own in value}

    def restore(self, plain: Any) -> Any:
        return tuple((kind, _LayoutForm.restore(self, own)) for kind, own in plain.items())


def _roles(columns: Sequence[str] | None) -> dict[str, dict[str, Any]]:
    """Return the columns of each kind by their roles, those of the records under ''."""
    given: dict[str, dict[str, Any]] = {}
    for text in columns or []:
        before, _, name = text.partition("=")
        kind, _, role = before.rpartition(".")
        role = "record" if role == "id" else role
        if role not in ROLES or not name:
            expected = f"expected ROLE=NAME with a role out of {', '.join(ROLES)}"
            raise OptionError("--column", f"{expected}, got {text!r}")
        roles = given.setdefault(kind, {})
        if role in EVENT_ROLES and ":" in name:
            roles[role], _, values = name.rpartition(":")
            roles[f"{role}_values"] = tuple(next(csv.reader([values]), ()))
        elif role == "codes":
            roles[role] = (*roles.get(role, ()), *next(csv.reader([name])))
        else:
            roles[role] = (*roles.get(role, ()), name) if role in LIST_ROLES else name
    return given


def _columns(layout: Layout) -> list[str]:
    """Return the columns of a layout by their roles, as the command line takes them."""
    columns = {"codes": listed(layout.codes or ()), "separator": layout.separator}
    columns |= {"yes": layout.yes}
    columns |= {role: name for role, name in layout.roles.items() if role != "weight"}
    for role in EVENT_ROLES:
        name, values = getattr(layout, role), getattr(layout, f"{role}_values")
        columns[role] = f"{name}:{listed(values)}" if name and (values or ":" in name) else name
    lists = [(role, name) for role in LIST_ROLES for name in getattr(layout, role)]
    return [f"{role}={name}" for role, name in (*columns.items(), *lists) if name]


def _any_of(names: Sequence[str]) -> str:
    return " or".join(", ".join(names).rsplit(",", 1))


OF_DATA: Given = {"saved": False, "web": False}  # fixed for the data, not for each cohort


@dataclass(frozen=True)
class Reading:
    """A cohort and how its source was read."""

    cohort: Cohort
    source: str
    table: str
    layout: Layout
    unit: str
    columns: tuple[ColumnRole, ...] = ()


@dataclass(frozen=True, kw_only=True)
class CohortSpec(Spec):
    """How records are read, which of them are kept, and which codes are left out.

    Records are read as by `read_records`. Those stay that have any of the codes ``having``, none
    of ``without``, values within the bounds of `Cohort.where`, and ``at_least`` so many distinct
    codes: by default 3 (the paper's rule), and none where a table has a column for each item. With
    0, records without a code are read, too. Then ``drop_codes`` go, and those of fewer than
    ``drop_rare`` records. ``code_map`` is the map itself, not its file, so that a model has it.

    ``kinds`` are tables of the records' source that are read together, such as 'diagnosis' and
    'drug'; ``layouts`` are those of auxiliary tables, by their kinds. A ``system`` such as
    'icd9cm drug:atc' is that of the records, and of another kind.

    ``features`` are covariates that the model learns from besides the codes; where no kind is
    given, the records that are kept decide it. Those of a fitted model stay as they are.
    """

    having: tuple[str, ...] = declare(
        (),
        fields.Codes(),
        "Keep the records with any of these codes: 428, V*, V01-V91, '402, 404', or @FILE with a "
        "set of codes. Repeatable.",
        "--having CODE",
    )
    without: tuple[str, ...] = declare(
        (),
        fields.Codes(),
        "Keep the records with none of these, written as for --having. Repeatable.",
        "--without CODE",
    )
    age: Interval | None = declare(
        None, fields.Bounds(), "age=65:90, age=18:", "--where age=LOW:HIGH"
    )
    sex: tuple[str, ...] = declare(
        (), fields.Names(), "sex=F, sex=F,U", "--where sex=VALUE", bounds={"max_length": 20}
    )
    dates: Period | None = declare(
        None, fields.Days(), "dates=2010-01-01:2010-06-30", "--where dates=FIRST:LAST (YYYY-MM-DD)"
    )
    at_least: int | None = declare(
        None,
        fields.Number(optional=True),
        "Keep the records with N distinct codes or more: 3 when left out, and 0 where a table has "
        "a column for each item.",
        "--at-least N",
        bounds={"ge": 1, "le": 100},
    )
    drop_codes: tuple[str, ...] = declare(
        (),
        fields.Codes(),
        "Leave out these codes, written as for --having. Repeatable.",
        "--drop-codes CODE",
        harmless=True,
        bounds={"max_length": 500},
    )
    drop_rare: int = declare(
        0,
        fields.Number(),
        "Leave out the codes of fewer than N records.",
        "--drop-rare N",
        harmless=True,
        bounds={"ge": 0},
    )
    level: tuple[str, ...] = declare(
        ("category",),
        fields.Texts(),
        "category, full, group, chapter, or common to ICD-9 and ICD-10. Repeatable.",
        "--level LEVEL",
        type="str or sequence of str",
        doc="'category', 'full', 'group', 'chapter' or 'common', or several of them.",
        part="coding",
        bounds={"min_length": 1, "max_length": 3},
    )
    unit: str | None = declare(
        None,
        Form(),
        "What a record is: visit or patient (codes united).",
        "--unit UNIT",
        type="'visit' or 'patient', optional",
        doc="What a record is: a visit where nothing is said, a patient, united, in OMOP and FHIR.",
        part="record",
        **OF_DATA,
    )
    system: str | None = declare(
        None,
        Form(),
        f"{_any_of(list(SYSTEMS))}; recognised when left out. 'icd9cm drug:atc' says it of another "
        "kind too.",
        "--system SYSTEM",
        type="str, optional",
        doc="The coding system, such as 'icd10cm', or 'icd10cm drug:atc' of two kinds; else "
        "recognised.",
        part="record",
        **OF_DATA,
    )
    code_map: CodeMap | None = declare(
        None,
        _CodeMapForm(),
        "A CSV file with code (or how codes begin), group and name: the groups are then the "
        "features.",
        "--map FILE",
        type="CodeMap, path or str, optional",
        doc="A map of your own from codes to groups, which are then the features; see `read_map`.",
        part="coding",
        saved=False,
        bounds={"pattern": "^[0-9a-f]{16}$"},
    )
    chronic: bool = declare(
        False,
        fields.Flag(),
        "Leave out what isn't chronic.",
        "--chronic",
        type="bool",
        doc="Whether codes of chronic conditions alone become features.",
        part="coding",
    )
    scores: tuple[str, ...] = declare(
        (),
        fields.Texts(),
        f"{_any_of(list(SCORES))}, as a covariate. Repeatable.",
        "--score SCORE",
        type="str or sequence of str",
        doc="'charlson', 'charlson2011' and 'elixhauser' become covariates, from the full codes.",
        part="coding",
        harmless=True,
        bounds={"max_length": 10},
    )
    features: tuple[AnyFeature, ...] = declare(
        (),
        _FeaturesForm(),
        "A column beside the codes that the clusters are found by too: its kind is binary, "
        "category, count or number (number:log, number:rank), recognised when left out. "
        "Repeatable.",
        "--feature NAME[=KIND]",
        type="mapping or sequence of str",
        doc="Covariates that the model learns from too, as ``{'age': 'number'}`` or "
        "``['age', 'sex']``.",
        part="features",
        harmless=True,
        bounds={"longest": 200, "max_length": 100},
    )
    layout: Layout = declare(
        Layout(),
        _LayoutForm(),
        "The column with the weight of a record.",
        "--weights NAME",
        type="Layout, str or mapping, optional",
        doc="What is known about the layout, or those of several kinds; the rest is recognised.",
        part="weights",
        **OF_DATA,
    )
    kinds: tuple[str, ...] = declare(
        (),
        fields.Joined(),
        "The tables of RECORDS to read together: diagnosis, drug, procedure, visit, patient.",
        "--kinds KIND,KIND",
        type="str or sequence of str",
        doc="Tables of the source to read together: 'diagnosis', 'drug', 'procedure', 'visit', "
        "'patient'.",
        part="source",
        **OF_DATA,
    )
    table: str | None = declare(
        None,
        Form(),
        "The table of a folder or database, or a query (SELECT …).",
        "--table NAME",
        type="str, optional",
        doc="Which table of a database or a folder to read, or a query that selects.",
        part="source",
        **OF_DATA,
    )
    layouts: tuple[tuple[str, Layout], ...] = declare(
        (),
        _LayoutsForm(),
        "wide, long, delimited, binary, omop or fhir; recognised when left out.",
        "--layout KIND",
        part="source",
        **OF_DATA,
    )

    @classmethod
    def of(cls, **given: Any) -> CohortSpec:
        """Return the specification of the keywords of `read_records`."""
        if isinstance(layout := given.get("layout"), Mapping):
            from comorb.records.auxiliary import MAIN

            own = dict(layout)
            given |= {"layout": own.pop(MAIN, Layout()), "layouts": own}
        return super().of(**given)

    def words(self) -> list[str]:
        """Return the words for this cohort on the command line.

        >>> CohortSpec(having=("428",), age=(65, None)).words()
        ['--having', '428', '--where', 'age=65:']
        """
        return words_of(self, *READING)

    @property
    def coding(self) -> Coding:
        """What codes become."""
        from comorb.records.codes.vocabulary import Coding

        return Coding(self.level, self.code_map, self.chronic, self.scores)

    def read(self, source: Any, memory: str | None = None) -> Cohort:
        """Read every record of a source, whatever the rules."""
        return self.open(source, memory).cohort

    def open(self, source: Any, memory: str | None = None, least: int | None = None) -> Reading:
        """Read every record of a source, and return how it was read.

        With ``least``, also the role of each column, with values of at least so many patients.
        """
        from comorb.records.cohort import Cohort
        from comorb.records.join import open_joining
        from comorb.records.layouts.plan import column_roles, plan_by_date
        from comorb.records.sources.open import open_source

        coding = self.coding
        kind, records, auxiliary = self.sources(source)
        with open_source(records, memory) as opened:
            plan = self.plan(opened, kind, whole=True)
            encode = partial(plan.vocabulary, system=self.own_system, coding=coding)
            assembly = plan.reader.read(opened, plan, encode)
            if assembly.vocabulary.undecided and (by_date := plan_by_date(opened, plan)):
                assembly = by_date.reader.read(opened, by_date, encode)
            plan.check_usable(assembly)
            cohort = plan.cohort(assembly, coding, Cohort)
            notes = (*plan.notes, *cohort.ledger.notes, *opened.notes, *plan.storage_notes(opened))
            cohort = replace(cohort, ledger=replace(cohort.ledger, notes=notes))
            if auxiliary:
                with open_joining(records, opened, plan, auxiliary, self.level, memory) as joining:
                    cohort = joining.join(cohort).drop_unused()
            roles: tuple[ColumnRole, ...] = ()
            stored = self.as_stored(plan)
            if least is not None:
                table, names = plan.stored or plan.table, cohort.covariates.column_names
                roles = column_roles(opened, table, stored, names, least)
            return Reading(cohort, opened.label, plan.table.label, stored, plan.unit, roles)

    def as_stored(self, plan: Plan) -> Layout:
        """Return the layout of a plan in columns of its source, without derived ones."""
        given, read = self.layout, plan.layout
        stored = (plan.stored or plan.table).columns
        died, again = given.died or read.died, given.readmitted or read.readmitted
        return replace(
            read,
            died=died if died in stored else None,
            readmitted=again if again in stored else None,
            category=tuple(name for name in read.category if name not in (died, again)),
        )

    def columns(self, source: Any, least: int | None = None) -> tuple[ColumnRole, ...]:
        """Return the role of each column of a table, even of one that no reader can read.

        A table with fewer than ``least`` rows, by default 11, has none.
        """
        from comorb.records.layouts.plan import MIN_CELL, column_roles
        from comorb.records.layouts.readers import open_columns
        from comorb.records.sources.open import open_source

        least = MIN_CELL if least is None else least
        with open_source(source) as opened:
            table, columns = open_columns(opened, self.table, self.layout)
            ((rows,),) = opened.rows(table, f"SELECT count(*) FROM {table.sql}")
            if rows < least:
                return ()
            layout = columns.layout("", columns.codes)
            return column_roles(opened, table, layout, least=least)

    def sources(self, source: Any) -> tuple[str, Any, tuple[AuxiliaryTable, ...]]:
        """Return the kind of the records, their own source, and the auxiliary tables."""
        from comorb.records.auxiliary import arrange_sources

        return arrange_sources(source, self.kinds, dict(self.layouts), self.system)

    def plan(self, opened: OpenedSource, kind: str, whole: bool = False) -> Plan:
        """Return how to read the records, which are of a kind, ``whole`` or in parts."""
        from comorb.records.layouts.readers import plan_reading

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
        """Return the table of the records in a source, if it is known."""
        from comorb.records.auxiliary import find_table

        return find_table(opened, kind) if self.table is None and self.kinds else self.table

    @property
    def own_system(self) -> str | None:
        """The coding system of the records' own codes, if it is given."""
        return systems_by_kind(self.system or "").get("")

    def check(self, cohort: Cohort) -> None:
        """Refuse rules that name a code or a column that none of all records has.

        All records are checked first, so that an error discloses nothing about those that stay.
        """
        cohort.check_codes(*self.having, *self.without, *self.drop_codes)
        cohort.check_features(*(one.name for one in self.feature_specs(cohort)))
        with suppress(EmptyCohortError):
            cohort.where(age=self.age, sex=self.sex or None, dates=self.dates)

    def select(self, cohort: Cohort) -> Cohort:
        """Keep the records that meet the rules, with all their codes."""
        if self.having:
            cohort = cohort.having(*self.having)
        if self.without:
            cohort = cohort.without(*self.without)
        cohort = cohort.where(age=self.age, sex=self.sex or None, dates=self.dates)
        if self.at_least is None:
            cohort = cohort.relax_least()
        least = cohort.least_codes if self.at_least is None else self.at_least
        return cohort.at_least(least) if least > min(cohort.least_codes, 1) else cohort

    def drop(self, cohort: Cohort) -> Cohort:
        """Leave out the codes that the rules name, keep every record, and make the features."""
        cohort = cohort.leave_out(*self.drop_rules(cohort, cohort.counts))
        if not (cohort.codes or cohort.features or self.feature_specs(cohort)):
            raise RecordsError("cohort.no_code_left")
        return self.add_features(cohort)

    def drop_rules(self, cohort: Cohort, counts: Callable[[], Ints]) -> Iterator[tuple[str, Mask]]:
        """Yield each rule that leaves out codes, with their mask; ``counts`` has their records."""
        if self.drop_codes:
            yield cohort.rule_for_codes(self.drop_codes)
        if self.drop_rare > 1:
            yield cohort.rule_for_rare(self.drop_rare, counts())

    def feature_specs(self, cohort: Cohort) -> tuple[AnyFeature, ...]:
        """Return the features to make of a cohort: those of the rules, and its items."""
        names = cohort.covariates.column_names
        own = [replace(one, name=resolve_name(one.name, names)) for one in self.features]
        named = {one.name for one in own}
        return (*own, *(one for one in cohort.items if one.name not in named))

    def add_features(self, cohort: Cohort) -> Cohort:
        """Make the features of a cohort."""
        return cohort.with_features(*self.feature_specs(cohort))

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
        reading: CohortSpec | None = None,
        every: bool = False,
        features: Sequence[Feature] = (),
    ) -> CohortSpec:
        """Return how to prepare new records for a model of this specification.

        They are in the model's coding systems, whatever they look like, unless its features are
        those of several; they need no weights and no scores and keep all their codes. ``reading``
        has their table and layout, when it isn't the same; ``every`` also keeps the records that
        the rules would leave out; ``features`` are those of the model.
        """
        from comorb.records.auxiliary import COVARIATES as OF_COVARIATES

        same, chosen = reading or self, self
        if every:
            rules = [rule for rule in rules_of(type(self)) if rule.part not in READING]
            chosen = replace(self, **{rule.name: rule.default for rule in rules} | {"at_least": 0})
        layouts = tuple(one for one in self.layouts if features or one[0] not in OF_COVARIATES)
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
            system=" ".join(filter(None, words)) or None,
            drop_codes=(),
            drop_rare=0,
            scores=tuple(one for one in self.scores if one in {each.name for each in features}),
            features=tuple(features),
        )


Preparation = CohortSpec  # its name until version 0.3
