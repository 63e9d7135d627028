"""The options of a run, and of what is done with one: relations, slices, reports.

Every option is declared here and nowhere else; see `comorb.fields` for what follows from that.
"""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from comorb.fields import (
    Flag,
    Form,
    Joined,
    Number,
    OptionError,
    Rule,
    Spec,
    Texts,
    declare,
    words_of,
)
from comorb.records.spec import CohortSpec

if TYPE_CHECKING:
    from comorb.profiles.profile import Profile
    from comorb.profiles.slices import By

PAIRS = 3  # of overlapping parts that stability is measured on
N_DRAWS = 39  # permutations of the records in the test of slices
METHODS = ("bch", "ml", "naive")


class Clusters(Form):
    """A number of clusters, or which one is looked for; a command always has it."""

    argument = str
    always = True
    json = staticmethod(lambda _: int | Literal["auto", "main", "finest"])

    def read(self, text: Any) -> Any:
        """Return the number, or the word."""
        if text in ("main", "finest"):
            return text
        if not text.isdigit() or int(text) < 1:
            wanted = "main, finest, auto or a whole number from 1 on"
            raise OptionError("-k", f"expected {wanted}, got {text!r}")
        return int(text)

    def words(self, rule: Rule, value: Any) -> list[str]:
        """Return the short option and the number."""
        return ["-k", str(value)]


class Repeats(Form):
    """How often something is repeated; the command line asks whether."""

    argument = bool

    def shown(self, default: Any) -> Any:
        """Return what the command line has for a default."""
        return bool(default)

    def read(self, text: Any) -> Any:
        """Return none for a no."""
        return 0


class Title(Form):
    """A text, which may be empty."""

    json = staticmethod(lambda text: text)

    def shown(self, default: Any) -> Any:
        """Return what the command line has for a default."""
        return default or None


class OwnCohort(Form):
    """The specification of the run's cohort."""

    def words(self, rule: Rule, value: Any) -> list[str]:
        """Return the words of the cohort."""
        words: list[str] = value.words()
        return words

    def plain(self, value: Any) -> Any:
        """Return what differs from the default."""
        return value.to_dict()

    def restore(self, plain: Any) -> Any:
        """Return the cohort that was plain."""
        return CohortSpec.from_dict(plain)


_PAIR = Form(lambda _: tuple[int, int] | None)


@dataclass(frozen=True)
class RunSpec(Spec):
    """The options of a run, without its records.

    ``preparation`` is kept with the model. ``outcomes`` are the covariates to summarise, None for
    all that can be; ``repeats`` are pairs of overlapping parts that stability is measured on, 0 for
    none; ``protected`` is the smallest count that the report shows, 0 for a full report.

    A run after a ``parent`` keeps the numbers and names of its clusters; ``merge`` makes two of
    them one, ``split`` makes one several; ``within`` is a part of another run. ``earlier`` are
    profiles, the last one first. The keys of records are made with the ``secret``; None for one's
    own. ``command`` is what was run, for the report.
    """

    k: int | Literal["auto", "main", "finest"] = declare(
        "auto",
        Clusters(),
        "How many clusters; main for the main groups of the records, finest for as many as they "
        "bear out; auto is main.",
        "--clusters -k K",
        part="model",
        first=True,
    )
    preparation: CohortSpec = declare(CohortSpec(), OwnCohort(), web=False)
    repeats: int = declare(
        PAIRS,
        Repeats(),
        "Whether to find the clusters again in parts of the records, to see how stable they are; "
        "takes several times as long.",
        "--stability/--no-stability",
        again=False,
        web=False,
    )
    title: str = declare(
        "",
        Title(),
        "What the data are, for the report; else the name of RECORDS.",
        "--title TEXT",
        harmless=True,
        again=False,
        bounds={"longest": 200},
    )
    command: str = ""
    outcomes: tuple[str, ...] | None = declare(
        None,
        Texts(),
        "Sum up this column per cluster. Repeatable; all when left out.",
        "--outcome NAME",
        web=False,
    )
    earlier: tuple[Profile, ...] = ()
    secret: bytes | None = None
    protected: int = declare(0, Number(), again=False, web=False)
    parent: str | None = declare(None, Form(), again=False)
    within: Mapping[str, Any] | None = declare(
        None, Form(lambda _: dict[str, Any] | None), again=False
    )
    merge: tuple[int, int] | None = declare(None, _PAIR, again=False)
    split: tuple[int, int] | None = declare(None, _PAIR, again=False)

    def words(self, records: str, auxiliary: Mapping[str, str] | None = None) -> str:
        """Return the command that does the same with some records and auxiliary sources.

        >>> RunSpec(5, CohortSpec(having=("428",))).words("visits.csv")
        'comorb fit visits.csv -k 5 --having 428'
        """
        others = [word for one in (auxiliary or {}).items() for word in ("--with", "=".join(one))]
        return shlex.join(["comorb", "fit", records, *others, *words_of(self)])


class Covariates(Joined):
    """Names of covariates in one word, as many as are wanted."""

    def __init__(self, flag: str, wanted: int | None = None) -> None:
        self.flag, self.wanted = flag, wanted
        super().__init__()

    def read(self, text: Any) -> Any:
        """Return the names."""
        names = super().read(text)
        if not names:
            raise OptionError(self.flag, "expected names of covariates, such as age,sex")
        if self.wanted and len(names) != self.wanted:
            raise OptionError(self.flag, f"expected two names, such as days,died, got {text!r}")
        return names


class MethodName(Form):
    """The name of a method of correction."""

    def read(self, text: Any) -> Any:
        """Return the method."""
        if text not in METHODS:
            expected = f"expected one of {', '.join(METHODS)}, got {text!r}"
            raise OptionError("--method", expected)
        return text


@dataclass(frozen=True)
class Question(Spec):
    """What is related to clusters: covariates by name."""

    outcomes: tuple[str, ...] = declare(
        (),
        Texts(),
        "What follows: died; one value, as discharge=died; a mean, as gpa=number. Repeatable.",
        "--outcome NAME",
    )
    predictors: tuple[str, ...] = declare(
        (),
        Covariates("--predictors"),
        "Covariates that lead to a cluster, as age,sex.",
        "--predictors NAME,NAME",
    )
    survival: tuple[str, str] | None = declare(
        None,
        Covariates("--survival", 2),
        "Two covariates: how long, and whether it ended.",
        "--survival TIME,EVENT",
    )
    within: bool = declare(
        False,
        Flag(),
        "Also regress numbers, and yes or no, on the predictors in each cluster.",
        "--within",
    )
    method: Literal["bch", "ml", "naive"] = declare(
        "bch", MethodName(), "How outcomes are corrected: bch, ml or naive.", "--method METHOD"
    )
    reference: int | None = declare(
        None,
        Number(optional=True),
        "The number of the cluster to compare others with; the largest if none.",
        "--reference N",
    )


@dataclass(frozen=True)
class SliceRequest(Spec):
    """What records are sliced by, and how they are read where it isn't as the model's own were."""

    by: tuple[By, ...] = ()
    refit: bool = declare(
        False,
        Flag(),
        "Also find the clusters of each slice anew, match them to the run's, and test whether "
        "profiles differ.",
        "--refit",
    )
    draws: int = declare(
        N_DRAWS, Number(), "Draws of the test of --refit.", "--draws N", limits=(1, 999)
    )
    reading: CohortSpec | None = None
    min_cell: int = 0
    secret: bytes | None = None


@dataclass(frozen=True)
class ReportRequest(Spec):
    """How a run is reported: in which language, for whom, protected, and sliced by what.

    Slices that the run doesn't hold are made of its ``records``.
    """

    language: str = declare(
        "en",
        Form(),
        "The language of what is written: en, es or ca.",
        "--language CODE",
        part="view",
    )
    site: str = declare("", Title(), "The site, for print.", "--site TEXT")
    day: str = declare("", Title(), "The day, for print: 2026-01-31, or today.", "--date DAY")
    starred: tuple[str, ...] = declare(
        (), Texts(), "Print this outcome and other starred. Repeatable.", "--star OUTCOME"
    )
    split_by: tuple[str, ...] = declare(
        (),
        Texts(),
        "Show the clusters by age, sex, site, year, quarter, month or a column, as in "
        "'comorb slices'. Repeatable.",
        "--split-by WHAT",
        part="view",
    )
    records: Any = declare(
        None,
        Form(),
        "The run's records, for what --split-by asks beyond the slices that the run holds.",
        "--records RECORDS",
        part="view",
    )
    min_cell: int = 0
