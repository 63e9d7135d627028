"""Options that several commands share: how records are read, and which of them are kept."""

from __future__ import annotations

import csv
import inspect
from collections.abc import Callable
from dataclasses import replace
from datetime import date
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from comorb.cli.sources import kinds_of, sources_of
from comorb.records.codes.scores import SCORES
from comorb.records.codes.systems import SYSTEMS
from comorb.records.definitions import expanded, read_definition
from comorb.records.layouts.description import COVARIATES, LISTS, VISITS, Layout

if TYPE_CHECKING:
    from comorb.records.preparation import Preparation

ROLES = (
    "codes",
    "record",
    "patient",
    "part",
    "separator",
    "yes",
    "version",
    *COVARIATES,
    *VISITS,
    *LISTS,
)

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
Clusters = Annotated[
    str,
    typer.Option("--clusters", "-k", metavar="K", help="How many clusters, or auto to find out."),
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
Table = Annotated[
    str | None,
    typer.Option(metavar="NAME", help="The table of a folder or database, or a query (SELECT …)."),
]
LayoutKind = Annotated[
    str | None,
    typer.Option(
        "--layout",
        metavar="KIND",
        help="wide, long, delimited, binary, omop or fhir; recognised when left out.",
    ),
]
Columns = Annotated[
    list[str] | None,
    typer.Option(
        "--column",
        metavar="ROLE=NAME",
        help=f"Which column is what: {', '.join(ROLES)}; several codes by commas, or as dx1-dx9; "
        "drug.codes=NAME of what is read beside RECORDS. Recognised when left out.",
    ),
]

With = Annotated[
    list[str] | None,
    typer.Option(
        "--with",
        metavar="KIND=FILE",
        help="Also read codes of another kind, such as drug=FILE or procedure=FILE, or a table "
        "with a row for each visit=FILE or patient=FILE. A table of RECORDS may stand for the "
        "file. Repeatable.",
    ),
]
Kinds = Annotated[
    str | None,
    typer.Option(
        metavar="KIND,KIND",
        help="The tables of RECORDS to read together: diagnosis, drug, procedure, visit, patient.",
    ),
]
Levels = Annotated[
    list[str],
    typer.Option(
        "--level",
        metavar="LEVEL",
        help="category, full, group, chapter, or common to ICD-9 and ICD-10. Repeatable.",
    ),
]
Unit = Annotated[
    str | None,
    typer.Option(metavar="UNIT", help="What a record is: visit or patient (codes united)."),
]
System = Annotated[
    str | None,
    typer.Option(
        metavar="SYSTEM",
        help=" or".join(", ".join(SYSTEMS).rsplit(",", 1)) + "; recognised when left out. "
        "'icd9cm drug:atc' says it of another kind too.",
    ),
]
Map = Annotated[
    Path | None,
    typer.Option(
        "--map",
        metavar="FILE",
        help="A CSV file with code (or how codes begin), group and name: the groups are then the "
        "features.",
    ),
]
Chronic = Annotated[bool, typer.Option("--chronic", help="Leave out what isn't chronic.")]
Scores = Annotated[
    list[str] | None,
    typer.Option(
        "--score",
        metavar="SCORE",
        help=" or".join(", ".join(SCORES).rsplit(",", 1)) + ", as a covariate. Repeatable.",
    ),
]

Features = Annotated[
    list[str] | None,
    typer.Option(
        "--feature",
        metavar="NAME[=KIND]",
        help="A column beside the codes that the clusters are found by too: its kind is binary, "
        "category, count or number (number:log, number:rank), recognised when left out. "
        "Repeatable.",
    ),
]
Weights = Annotated[
    str | None, typer.Option(metavar="NAME", help="The column with the weight of a record.")
]
DropRare = Annotated[
    int, typer.Option(metavar="N", help="Leave out the codes of fewer than N records.")
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


def cohort_options(command: Callable[..., None]) -> Callable[..., None]:
    """Give a command the options of `preparation` in place of its parameter ``preparation``.

    What is to be read beside its ``records`` becomes a part of them; see `sources_of`.
    """
    late = {"Preparation": object}
    own = inspect.signature(command, eval_str=True, locals=late).parameters
    shared = inspect.signature(preparation, eval_str=True, locals=late).parameters
    beside = inspect.Parameter(
        "beside", inspect.Parameter.KEYWORD_ONLY, default=None, annotation=With
    )

    @wraps(command)
    def asked(**given: Any) -> None:
        chosen = preparation(**{name: given.pop(name) for name in shared})
        others = given.pop("beside")
        if "records" in given:
            given["records"] = sources_of(given["records"], others, chosen.kinds)
        command(preparation=chosen, **given)

    parameters = [one for name, one in own.items() if name != "preparation"]
    parameters += [beside, *shared.values()]
    parameters.sort(key=lambda one: one.default is not inspect.Parameter.empty)
    keyword = [one.replace(kind=inspect.Parameter.KEYWORD_ONLY) for one in parameters]
    asked.__signature__ = inspect.Signature(keyword)  # type: ignore[attr-defined]
    asked.__annotations__ = {one.name: one.annotation for one in keyword}
    return asked


Where = Annotated[
    list[str] | None,
    typer.Option(
        metavar="RULE",
        help="age=65:90, age=18:, sex=F, sex=F,U or dates=2010-01-01:2010-06-30. Repeatable.",
    ),
]
SavedCohort = Annotated[
    Path | None,
    typer.Option(
        metavar="FILE",
        help="A cohort that was saved in the explorer; an option given beside it takes the place "
        "of its rule.",
    ),
]
Having = Annotated[
    list[str] | None,
    typer.Option(
        metavar="CODE",
        help="Keep the records with any of these codes: 428, V*, V01-V91, '402, 404', or @FILE "
        "with a set of codes. Repeatable.",
    ),
]
Without = Annotated[
    list[str] | None,
    typer.Option(
        metavar="CODE",
        help="Keep the records with none of these, written as for --having. Repeatable.",
    ),
]
DropCodes = Annotated[
    list[str] | None,
    typer.Option(
        metavar="CODE", help="Leave out these codes, written as for --having. Repeatable."
    ),
]
AtLeast = Annotated[
    int | None,
    typer.Option(
        metavar="N",
        help="Keep the records with N distinct codes or more: 3 when left out, and 0 where a "
        "table has a column for each item.",
    ),
]


def preparation(  # noqa: PLR0913 - one parameter for each option
    *,
    cohort: SavedCohort = None,
    having: Having = None,
    without: Without = None,
    where: Where = None,
    at_least: AtLeast = None,
    drop_codes: DropCodes = None,
    drop_rare: DropRare = 0,
    level: Levels = ["category"],  # noqa: B006 - Typer copies it
    unit: Unit = None,
    system: System = None,
    code_map: Map = None,
    chronic: Chronic = False,
    score: Scores = None,
    feature: Features = None,
    weights: Weights = None,
    kinds: Kinds = None,
    table: Table = None,
    layout: LayoutKind = None,
    column: Columns = None,
) -> Preparation:
    """Return the preparation that the options ask for."""
    from comorb.records.asked import as_asked
    from comorb.records.codes.own_map import opened_map
    from comorb.records.preparation import Preparation

    saved = Preparation.from_dict(_saved_rules(cohort))
    return replace(
        saved,
        table=table,
        layout=layout_of(layout, column, weights),
        unit=unit,
        system=system,
        level=tuple(level) if level != ["category"] else saved.level,
        having=tuple(expanded(having or [])) or saved.having,
        without=tuple(expanded(without or [])) or saved.without,
        at_least=saved.at_least if at_least is None else at_least,
        drop_codes=tuple(expanded(drop_codes or [])) or saved.drop_codes,
        drop_rare=drop_rare or saved.drop_rare,
        code_map=opened_map(code_map),
        chronic=chronic or saved.chronic,
        scores=tuple(score or ()) or saved.scores,
        features=as_asked(feature or ()) or saved.features,
        kinds=kinds_of(kinds),
        layouts=layouts_of(column),
        **_bounds(where or []),
    )


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


def layout_of(kind: str | None, columns: list[str] | None, weights: str | None = None) -> Layout:
    """Return the layout that ``--layout``, ``--column`` and ``--weights`` ask for."""
    own = _roles(columns).get("", {})
    return Layout(kind=kind, **own | ({"weight": weights} if weights else {}))


def layouts_of(columns: list[str] | None) -> tuple[tuple[str, Layout], ...]:
    """Return what ``--column KIND.ROLE=NAME`` says of the sources beside the records."""
    return tuple((kind, Layout(**roles)) for kind, roles in _roles(columns).items() if kind)


def _roles(columns: list[str] | None) -> dict[str, dict[str, Any]]:
    """Return the columns of each kind by their roles, those of the records under ''."""
    given: dict[str, dict[str, Any]] = {}
    for text in columns or []:
        before, _, name = text.partition("=")
        kind, _, role = before.rpartition(".")
        role = "record" if role == "id" else role
        if role not in ROLES or not name:
            raise typer.BadParameter(
                f"expected ROLE=NAME with a role out of {', '.join(ROLES)}, got {text!r}",
                param_hint="--column",
            )
        roles = given.setdefault(kind, {})
        if role == "codes":
            roles[role] = (*roles.get(role, ()), *next(csv.reader([name])))
        else:
            roles[role] = (*roles.get(role, ()), name) if role in LISTS else name
    return given


def least_count(protected: bool, min_cell: int | None) -> int:
    """Return the smallest count that ``--protected`` and ``--min-cell`` let be told; 0 for all."""
    from comorb.insight.profile.protection import LEAST

    return (min_cell or LEAST) if protected or min_cell else 0


def number_of_clusters(text: str) -> int | Literal["auto"]:
    """Return what ``-k`` asks for."""
    if text == "auto":
        return "auto"
    if not text.isdigit() or int(text) < 1:
        raise typer.BadParameter(
            f"expected auto or a whole number from 1 on, got {text!r}", param_hint="-k"
        )
    return int(text)


def _bounds(rules: list[str]) -> dict[str, Any]:
    bounds: dict[str, Any] = {}
    for rule in rules:
        name, _, value = rule.partition("=")
        low, colon, high = value.partition(":")
        try:
            if name == "age" and colon:
                bounds["age"] = tuple(float(end) if end else None for end in (low, high))
            elif name == "dates" and colon:
                bounds["dates"] = tuple(
                    date.fromisoformat(end).isoformat() if end else None for end in (low, high)
                )
            elif name == "sex" and value:
                bounds["sex"] = tuple(next(csv.reader([value])))
            else:
                raise ValueError
        except ValueError:
            raise typer.BadParameter(
                f"expected age=LOW:HIGH, sex=VALUE or dates=FIRST:LAST (YYYY-MM-DD), got {rule!r}",
                param_hint="--where",
            ) from None
    return bounds
