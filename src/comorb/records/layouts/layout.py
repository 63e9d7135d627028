"""Layout: which columns of a table hold codes, ids and covariates."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Layout:
    """How records are laid out in a table; whatever is None is recognised.

    Attributes
    ----------
    kind : str
        'wide' (a row a record, codes in several columns), 'long' (a row a code), 'delimited'
        (a row a record, its codes in one text), 'binary' (a 0/1 column a code), 'omop', 'fhir'.
    codes : tuple of str
        The columns that hold codes.
    record, patient : str
        The columns with the id of the visit and of the patient.
    part : str
        In a wide table, the column that numbers the rows of one record.
    separator : str
        What stands between two codes of a text.
    yes : str
        In a binary table, what stands for yes.
    version : str
        The column that says which edition of the ICD a code is from.
    age, sex, date, weight : str
        Covariates that get these names, and the column with the weight of a record, which is
        never recognised but has to be named.
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
    weight: str | None = None

    @property
    def roles(self) -> dict[str, str]:
        """The columns that are given a role, by role; the code columns aside."""
        roles = ("record", "patient", "part", "version", "age", "sex", "date", "weight")
        return {role: column for role in roles if (column := getattr(self, role)) is not None}

    @property
    def ids(self) -> tuple[str, ...]:
        """The columns with the ids of visits and patients."""
        return tuple(column for column in (self.record, self.patient) if column is not None)
