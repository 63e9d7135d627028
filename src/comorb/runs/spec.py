"""RunSpec, the options of a run: a cohort, how many clusters, which outcomes, what is shown.

Every option is declared here and nowhere else; see `comorb.fields` for what follows from that.
"""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from comorb.fields import Form, Number, OptionError, Rule, Spec, Texts, declare, words_of
from comorb.records.spec import CohortSpec

if TYPE_CHECKING:
    from comorb.profiles.profile import Profile

PAIRS = 3  # of overlapping parts that stability is measured on


class Clusters(Form):
    """A number of clusters, or 'auto'; a command always has it."""

    argument = str
    always = True
    json = staticmethod(lambda _: int | Literal["auto"])

    def read(self, text: Any) -> Any:
        """Return the number."""
        if not text.isdigit() or int(text) < 1:
            raise OptionError("-k", f"expected auto or a whole number from 1 on, got {text!r}")
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

    k: int | Literal["auto"] = declare(
        "auto",
        Clusters(),
        "How many clusters, or auto to find out.",
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
