"""Groups of patients with similar clinical profiles, from their diagnosis codes.

The public names load when they are first used, so that ``import comorb`` costs nothing.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

from comorb import moved

if TYPE_CHECKING:  # the same names for type checkers
    from comorb.engines import FileJournal as FileJournal
    from comorb.engines import open_blocks as open_blocks
    from comorb.engines import open_engine as open_engine
    from comorb.model.estimators import BernoulliMixture as BernoulliMixture
    from comorb.model.estimators import LatentClassModel as LatentClassModel
    from comorb.model.estimators import choose_k as choose_k
    from comorb.model.mixture import Mixture as Mixture
    from comorb.model.relations.classification import first_step as first_step
    from comorb.model.relations.relate import relate_outcome as relate_outcome
    from comorb.model.relations.relate import relate_predictors as relate_predictors
    from comorb.model.relations.relate import relate_regression as relate_regression
    from comorb.model.relations.relate import relate_survival as relate_survival
    from comorb.profiles.build import profile as profile
    from comorb.profiles.comparison import compare as compare
    from comorb.profiles.noise import own_secret as own_secret
    from comorb.profiles.profile import Profile as Profile
    from comorb.records import datasets as datasets
    from comorb.records.cohort import Cohort as Cohort
    from comorb.records.cohort_file import load_cohort as load_cohort
    from comorb.records.cohort_file import save_cohort as save_cohort
    from comorb.records.distributed.read import read_dask as read_dask
    from comorb.records.distributed.read import read_spark as read_spark
    from comorb.records.layouts.layout import Layout as Layout
    from comorb.records.read import inspect_records as inspect_records
    from comorb.records.read import read_records as read_records
    from comorb.records.stream import write_cohort as write_cohort
    from comorb.runs.spark_scorer import spark_scorer as spark_scorer
    from comorb.runs.stability import stability as stability
    from comorb.views import charts as charts
    from comorb.views.report import report as report

__version__ = "0.1.0"
_NAMES = {
    "engines": "FileJournal open_blocks open_engine",
    "model.estimators": "BernoulliMixture LatentClassModel choose_k",
    "model.mixture": "Mixture",
    "model.relations.classification": "first_step",
    "model.relations.relate": "relate_outcome relate_predictors relate_regression relate_survival",
    "profiles.build": "profile",
    "profiles.comparison": "compare",
    "profiles.noise": "own_secret",
    "profiles.profile": "Profile",
    "records.datasets": "datasets",
    "records.cohort": "Cohort",
    "records.cohort_file": "load_cohort save_cohort",
    "records.distributed.read": "read_dask read_spark",
    "records.layouts.layout": "Layout",
    "records.read": "inspect_records read_records",
    "records.stream": "write_cohort",
    "runs.spark_scorer": "spark_scorer",
    "runs.stability": "stability",
    "views.charts": "charts",
    "views.report": "report",
}
_HOMES = {name: f"comorb.{home}" for home, names in _NAMES.items() for name in names.split()}
__all__ = sorted(["__version__", *_HOMES])

moved.install()


def __getattr__(name: str) -> object:
    if name not in _HOMES:
        raise AttributeError(f"module 'comorb' has no attribute {name!r}")
    home = import_module(_HOMES[name])
    value: object = getattr(home, name, home)  # a name that its module lacks is the module itself
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return __all__
