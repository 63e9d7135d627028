"""Options that several commands share: how records are read, and which of them are kept."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from functools import wraps
from pathlib import Path
from typing import Annotated, Any, get_args

import typer

from comorb.fields import (
    Codes,
    Flag,
    Form,
    Number,
    Option,
    OptionError,
    Spec,
    declare,
    from_options,
    options_of,
    rules_of,
)
from comorb.records.definitions import expanded, read_definition
from comorb.records.spec import CohortSpec
from comorb.runs.spec import Question, ReportRequest, RunSpec, SliceRequest


def sources_of(
    records: str, auxiliary: list[str] | None, kinds: tuple[str, ...] = ()
) -> str | dict[str, str]:
    """Return the records, or with ``--with`` the sources by their kinds, the records first."""
    if not auxiliary:
        return records
    main = kinds[0] if kinds and "diagnosis" not in kinds else "diagnosis"
    sources = {main: records}
    for text in auxiliary:
        kind, _, source = text.partition("=")
        if not kind or not source:
            problem = f"expected KIND=FILE, such as drug=medications.csv, got {text!r}"
            raise typer.BadParameter(problem, param_hint="--with")
        if kind in sources:
            what = "is that of RECORDS" if kind == main else "is given twice"
            problem = f"the kind {kind!r} {what}; give each source a kind of its own"
            raise typer.BadParameter(problem, param_hint="--with")
        sources[kind] = source
    return sources


Records = Annotated[
    str,
    typer.Argument(
        metavar="RECORDS",
        show_default=False,
        help="A CSV, Parquet, NDJSON, DuckDB or SQLite file, a folder, a glob of Parquet files, "
        "an address such as s3://bucket/claims or postgresql://…, or, with the engine Spark, "
        "table:NAME.",
    ),
]
Json = Annotated[bool, typer.Option("--json", help="Print JSON, for scripts.")]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Print notes and errors alone.")]
Force = Annotated[bool, typer.Option("--force", help="Replace the files of an earlier run.")]
Chart = Annotated[
    Path | None, typer.Option(metavar="FILE", help="Also draw it: a .png, .svg or .pdf file.")
]


@dataclass(frozen=True)
class Execution(Spec):
    """How much memory to hold, and who does the work."""

    memory: str | None = declare(
        None,
        Form(),
        "About the most to hold, such as 2GB: the records are read in parts, and may be more than "
        "that.",
        "--memory SIZE",
        part="memory",
    )
    engine: str | None = declare(
        None,
        Form(),
        "Who does the work: threads, dask, dask://HOST:PORT, spark, spark://HOST:PORT or "
        "sc://HOST.",
        "--engine ENGINE",
    )


@dataclass(frozen=True)
class Protection(Spec):
    """Whether counts are protected, and which are small."""

    protected: bool = declare(
        False,
        Flag(),
        "Show protected counts, to share: with a small noise, and none of few.",
        "--protected",
    )
    min_cell: int | None = declare(
        None,
        Number(optional=True),
        "Protect counts under N; 11 when left out.",
        "--min-cell N",
        limits=(2, None),
    )

    @property
    def least(self) -> int:
        """The smallest count that may be shown; 0 for all."""
        from comorb.profiles.protection import MIN_CELL

        return (self.min_cell or MIN_CELL) if self.protected or self.min_cell else 0


Directory = Annotated[
    Path, typer.Option("--output", "-o", metavar="DIR", help="Where the results go.")
]
RunFolder = Annotated[
    Path,
    typer.Argument(
        metavar="RUN", show_default=False, help="The folder of a run, or its profile.json."
    ),
]
Workspace = Annotated[
    Path, typer.Option(metavar="DIR", help="Where data, runs and users are kept.")
]


Cohort = Annotated[CohortSpec, ()]  # with all options of a cohort
Source = Annotated[CohortSpec, ("source",)]  # with those of some parts
WeightedSource = Annotated[CohortSpec, ("source", "weights")]
Inspected = Annotated[CohortSpec, ("source", "record", "coding")]
Run = Annotated[RunSpec, ()]
Model = Annotated[RunSpec, ("model",)]
Asked = Annotated[Question, ()]
Refit = Annotated[SliceRequest, ()]
Report = Annotated[ReportRequest, ()]
View = Annotated[ReportRequest, ("view",)]
Work = Annotated[Execution, ()]
InMemory = Annotated[Execution, ("memory",)]
Counts = Annotated[Protection, ()]

WITH = Option(
    ("--with",),
    "KIND=FILE",
    "Also read codes of another kind, such as drug=FILE or procedure=FILE, or a table with a row "
    "for each visit=FILE or patient=FILE. A table of RECORDS may stand for the file. Repeatable.",
    list[str] | None,
)
SAVED = Option(
    ("--cohort",),
    "FILE",
    "A cohort that was saved in the explorer; an option given with it takes the place of its rule.",
    Path | None,
)


def spec_options(command: Callable[..., None]) -> Callable[..., None]:
    """Give a command the options of each specification among its parameters, in its place.

    Sources to be read with its ``records`` become a part of them; see `sources_of`.
    """
    parameters: list[tuple[bool, inspect.Parameter]] = []
    taken: dict[str, tuple[type[Spec], dict[str, Option]]] = {}
    for name, one in inspect.signature(command, eval_str=True).parameters.items():
        spec, *parts = get_args(one.annotation) or (None,)
        if not (isinstance(spec, type) and issubclass(spec, Spec)):
            parameters.append((False, one))
            continue
        extra = ([WITH] if parts[0] else [WITH, SAVED]) if issubclass(spec, CohortSpec) else []
        options = [*extra, *options_of(spec, *parts[0])]
        taken[name] = spec, {f"{name}_{place}": one for place, one in enumerate(options)}
        parameters += [(one.first, _parameter(own, one)) for own, one in taken[name][1].items()]
    parameters.sort(key=lambda one: (one[1].default is not one[1].empty, not one[0]))

    @wraps(command)
    def called(**given: Any) -> None:
        for name, (spec, options) in taken.items():
            texts = {option.flags[0]: given.pop(own) for own, option in options.items()}
            given[name] = _read_spec(spec, texts)
            if "--with" in texts and "records" in given:
                given["records"] = sources_of(given["records"], texts["--with"], given[name].kinds)
        command(**given)

    keyword = [one.replace(kind=inspect.Parameter.KEYWORD_ONLY) for _, one in parameters]
    called.__signature__ = inspect.Signature(keyword)  # type: ignore[attr-defined]
    called.__annotations__ = {one.name: one.annotation for one in keyword}
    return called


def _parameter(name: str, option: Option) -> inspect.Parameter:
    """Return the parameter by which Typer takes an option."""
    limits: dict[str, Any] = dict(zip(("min", "max"), option.limits, strict=True))
    shown = typer.Option(*option.flags, metavar=option.metavar or None, help=option.help, **limits)
    kind, annotation = inspect.Parameter.KEYWORD_ONLY, Annotated[option.type, shown]
    return inspect.Parameter(name, kind, default=option.default, annotation=annotation)


def _read_spec(spec: type[Spec], given: dict[str, Any]) -> Any:
    """Return the specification that options ask for, by their flags; a saved cohort is the base."""
    for rule in rules_of(spec):
        if isinstance(rule.form, Codes) and given.get(rule.flag):
            given[rule.flag] = expanded(given[rule.flag])
    rules: dict[str, Any] = {}
    if (path := given.get("--cohort")) is not None:
        saved = read_definition(path)
        if saved.codes:
            problem = f"{path.name} is a set of codes; give it as --having @{path.name}"
            raise typer.BadParameter(problem, param_hint="--cohort")
        rules = saved.rules
    try:
        return from_options(spec.from_dict(rules), given)
    except OptionError as error:
        raise typer.BadParameter(str(error), param_hint=error.flag) from None


def stated(reading: CohortSpec) -> CohortSpec | None:
    """Return how records are to be read, or None where no option is given."""
    return None if reading == CohortSpec() else reading
