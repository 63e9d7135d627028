"""Layout: the columns of a table that hold codes, ids and covariates."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

COVARIATE_ROLES = ("age", "sex", "date", "los", "died", "readmitted", "cost", "site", "weight")
VISIT_ROLES = ("discharged", "disposition")  # of a visit, under the name of their column
EVENT_ROLES = ("died", "readmitted")  # covariates that are yes or no
LIST_ROLES = ("category", "number", "ignored")
_NUMBERED = re.compile(r"(.*?)([0-9]+)")


@dataclass(frozen=True)
class Layout:
    """How records are laid out in a table; what is None is recognised.

    Attributes
    ----------
    kind : str
        'wide' (a row a record, codes in several columns), 'long' (a row a code), 'delimited'
        (a row a record, its codes in one text), 'binary' (a 0/1 column a code), 'omop', 'fhir'.
    codes : tuple of str
        The columns that hold codes; 'dx1-dx10' stands for all from the one to the other.
    record, patient : str
        The columns with the id of the visit and of the patient.
    part : str
        In a wide table, the column that numbers the rows of one record.
    separator : str
        The mark between two codes of a text.
    yes : str
        In a binary table, the text that means yes.
    version : str
        The column with the edition of the ICD of each code.
    age, sex, date, los, died, readmitted, cost, site, weight : str
        Covariates that get these names: los is the length of stay, site the hospital. The weight of
        a record is never recognised but has to be named.
    died_values, readmitted_values : tuple of str
        The values of the columns ``died`` and ``readmitted`` that count as yes; all others are no.
    discharged, disposition : str
        The day on which a visit ended, and how: stays and deaths follow from them where no column
        has these.
    category, number : tuple of str
        Covariates whose values are labels, or numbers, whatever they look like.
    ignored : tuple of str
        Columns that are not used.
    features : tuple of str
        Covariates that become features of the model: no column of theirs holds codes.
    """

    kind: str | None = None
    codes: tuple[str, ...] | None = None
    record: str | None = None
    patient: str | None = None
    part: str | None = None
    separator: str | None = None
    yes: str | None = None
    version: str | None = None
    age: str | None = None
    sex: str | None = None
    date: str | None = None
    los: str | None = None
    died: str | None = None
    readmitted: str | None = None
    cost: str | None = None
    site: str | None = None
    weight: str | None = None
    discharged: str | None = None
    disposition: str | None = None
    died_values: tuple[str, ...] = ()
    readmitted_values: tuple[str, ...] = ()
    category: tuple[str, ...] = ()
    number: tuple[str, ...] = ()
    ignored: tuple[str, ...] = ()
    features: tuple[str, ...] = ()

    @property
    def roles(self) -> dict[str, str]:
        """The column of each role that only one column has."""
        roles = ("record", "patient", "part", "version", *COVARIATE_ROLES, *VISIT_ROLES)
        return {role: column for role in roles if (column := getattr(self, role)) is not None}

    @property
    def named(self) -> tuple[str, ...]:
        """The columns that the layout names, without those of codes."""
        return (*self.roles.values(), *self.category, *self.number, *self.ignored)

    @property
    def ids(self) -> tuple[str, ...]:
        """The columns with the ids of visits and patients."""
        return tuple(column for column in (self.record, self.patient) if column is not None)

    def code_columns(self, names: Sequence[str]) -> tuple[str, ...]:
        """Return the code columns out of all, spans such as 'dx1-dx10' spelled out.

        >>> Layout(codes=("dx1-dx3",)).code_columns(["dx1", "poa1", "dx2", "poa2", "dx3", "dx4"])
        ('dx1', 'dx2', 'dx3')
        """
        spans = (_span(code, names) for code in self.codes or ())
        return tuple(dict.fromkeys(name for span in spans for name in span))


def _span(code: str, names: Sequence[str]) -> Sequence[str]:
    """Return the columns of a span, or the name itself.

    A span goes by the numbers at the ends of names that are the same before them, or else by the
    order of the columns.
    """
    first, _, last = (part.strip() for part in code.partition("-"))
    if code in names or first not in names or last not in names:
        return [code]
    one, two = _NUMBERED.fullmatch(first), _NUMBERED.fullmatch(last)
    if one is None or two is None or one[1] != two[1]:
        return names[names.index(first) : names.index(last) + 1] or [code]
    numbered = (match for name in names if (match := _NUMBERED.fullmatch(name)))
    low, high = int(one[2]), int(two[2])
    return [x[0] for x in numbered if x[1] == one[1] and low <= int(x[2]) <= high] or [code]
