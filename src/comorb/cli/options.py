"""Options that several commands share: how records are read, and which of them are kept."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from functools import wraps
from pathlib import Path
from typing import Annotated, Any, get_args

import typer

from comorb.fields import Codes, Option, OptionError, Spec, from_options, options_of, rules_of
from comorb.records.definitions import expanded, read_definition
from comorb.records.spec import CohortSpec
from comorb.runs.spec import RunSpec


def sources_of(
    records: str, beside: list[str] | None, kinds: tuple[str, ...] = ()
) -> str | dict[str, str]:
    """Return the records, or with ``--with`` the sources by their kinds, the records first."""
    if not beside:
        return records
    main = kinds[0] if kinds and "diagnosis" not in kinds else "diagnosis"
    sources = {main: records}
    for text in beside:
        kind, _, source = text.partition("=")
        if not kind or not source:
            raise typer.BadParameter(
                f"expected KIND=FILE, such as drug=medications.csv, got {text!r}",
                param_hint="--with",
            )
        if kind in sources:
            what = "is that of RECORDS" if kind == main else "is given twice"
            raise typer.BadParameter(
                f"the kind {kind!r} {what}; give each source a kind of its own",
                param_hint="--with",
            )
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
    Path | None,
    typer.Option(metavar="FILE", help="Also draw it: a .png, .svg or .pdf file."),
]
Memory = Annotated[
    str | None,
    typer.Option(
        metavar="SIZE",
        help="About the most to hold, such as 2GB: the records are read in parts, and may be more "
        "than that.",
    ),
]
Engine = Annotated[
    str | None,
    typer.Option(
        metavar="ENGINE",
        help="Who does the work: threads, dask, dask://HOST:PORT, spark, spark://HOST:PORT or "
        "sc://HOST.",
    ),
]

Directory = Annotated[
    Path, typer.Option("--output", "-o", metavar="DIR", help="Where the results go.")
]
RunFolder = Annotated[
    Path,
    typer.Argument(
        metavar="RUN", show_default=False, help="The folder of a run, or its profile.json."
    ),
]
Protected = Annotated[
    bool,
    typer.Option(
        "--protected", help="Tell protected counts, to share: with a small noise, none of few."
    ),
]
MinCell = Annotated[
    int | None,
    typer.Option(min=2, metavar="N", help="Protect counts under N; 11 when left out."),
]
Language = Annotated[
    str, typer.Option(metavar="CODE", help="The language of what is written: en, es or ca.")
]
SplitBy = Annotated[
    list[str] | None,
    typer.Option(
        metavar="WHAT",
        help="Show the clusters by age, sex, site, year, quarter, month or a column, as in "
        "'comorb slices'. Repeatable.",
    ),
]
OwnRecords = Annotated[
    str | None,
    typer.Option(
        "--records",
        metavar="RECORDS",
        help="The run's records, for what --split-by asks beyond the slices that the run holds.",
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
    "A cohort that was saved in the explorer; an option given beside it takes the place of its "
    "rule.",
    Path | None,
)


def spec_options(command: Callable[..., None]) -> Callable[..., None]:
    """Give a command the options of each specification among its parameters, in its place.

    What is to be read beside its ``records`` becomes a part of them; see `sources_of`.
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
    def asked(**given: Any) -> None:
        for name, (spec, options) in taken.items():
            said = {option.flags[0]: given.pop(own) for own, option in options.items()}
            given[name] = _asked(spec, said)
            if "--with" in said and "records" in given:
                given["records"] = sources_of(given["records"], said["--with"], given[name].kinds)
        command(**given)

    keyword = [one.replace(kind=inspect.Parameter.KEYWORD_ONLY) for _, one in parameters]
    asked.__signature__ = inspect.Signature(keyword)  # type: ignore[attr-defined]
    asked.__annotations__ = {one.name: one.annotation for one in keyword}
    return asked


def _parameter(name: str, option: Option) -> inspect.Parameter:
    """Return the parameter by which Typer takes an option."""
    shown = typer.Option(*option.flags, metavar=option.metavar or None, help=option.help)
    kind, annotation = inspect.Parameter.KEYWORD_ONLY, Annotated[option.type, shown]
    return inspect.Parameter(name, kind, default=option.default, annotation=annotation)


def _asked(spec: type[Spec], said: dict[str, Any]) -> Any:
    """Return the specification that options ask for, by their flags."""
    for rule in rules_of(spec):
        if isinstance(rule.form, Codes) and said.get(rule.flag):
            said[rule.flag] = expanded(said[rule.flag])
    try:
        return from_options(spec.from_dict(_saved_rules(said.get("--cohort"))), said)
    except OptionError as error:
        raise typer.BadParameter(str(error), param_hint=error.flag) from None


def _saved_rules(path: Path | None) -> dict[str, Any]:
    """Return the rules of a cohort that was saved; none without a file."""
    if path is None:
        return {}
    saved = read_definition(path)
    if saved.codes:
        raise typer.BadParameter(
            f"{path.name} is a set of codes; give it as --having @{path.name}",
            param_hint="--cohort",
        )
    return saved.rules


def least_count(protected: bool, min_cell: int | None) -> int:
    """Return the smallest count that ``--protected`` and ``--min-cell`` let be told; 0 for all."""
    from comorb.profiles.protection import MIN_CELL

    return (min_cell or MIN_CELL) if protected or min_cell else 0
