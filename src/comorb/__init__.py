"""Groups of patients with similar clinical profiles, from their diagnosis codes.

The public names load when they are first used, so that ``import comorb`` costs nothing.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from comorb.engines import FileJournal, open_blocks, open_engine
    from comorb.insight.profile.compare import compare
    from comorb.insight.profile.keys import own_secret
    from comorb.insight.profile.profile import Profile
    from comorb.insight.profile.profiling import profile
    from comorb.insight.runs.spark_scoring import spark_scorer
    from comorb.insight.runs.stability import stability
    from comorb.insight.views import charts
    from comorb.insight.views.report import report
    from comorb.model.estimator import BernoulliMixture, choose_k
    from comorb.model.latent_class import LatentClassModel
    from comorb.model.mixture import Mixture
    from comorb.model.relating.first_step import first_step
    from comorb.model.relating.relation import (
        relate_outcome,
        relate_predictors,
        relate_regression,
        relate_survival,
    )
    from comorb.records import datasets
    from comorb.records.archive import load_cohort, save_cohort
    from comorb.records.cluster import read_dask, read_spark
    from comorb.records.cohort import Cohort
    from comorb.records.layouts.description import Layout
    from comorb.records.reading import inspect_records, read_records
    from comorb.records.streaming import write_cohort

__version__ = "0.1.0"
_HOMES = {
    "BernoulliMixture": "comorb.model.estimator",
    "Cohort": "comorb.records.cohort",
    "FileJournal": "comorb.engines",
    "LatentClassModel": "comorb.model.latent_class",
    "Layout": "comorb.records.layouts.description",
    "Mixture": "comorb.model.mixture",
    "Profile": "comorb.insight.profile.profile",
    "charts": "comorb.insight.views.charts",
    "choose_k": "comorb.model.estimator",
    "compare": "comorb.insight.profile.compare",
    "datasets": "comorb.records.datasets",
    "first_step": "comorb.model.relating.first_step",
    "inspect_records": "comorb.records.reading",
    "load_cohort": "comorb.records.archive",
    "open_blocks": "comorb.engines",
    "open_engine": "comorb.engines",
    "own_secret": "comorb.insight.profile.keys",
    "profile": "comorb.insight.profile.profiling",
    "read_dask": "comorb.records.cluster",
    "read_records": "comorb.records.reading",
    "read_spark": "comorb.records.cluster",
    "relate_outcome": "comorb.model.relating.relation",
    "relate_predictors": "comorb.model.relating.relation",
    "relate_regression": "comorb.model.relating.relation",
    "relate_survival": "comorb.model.relating.relation",
    "report": "comorb.insight.views.report",
    "save_cohort": "comorb.records.archive",
    "spark_scorer": "comorb.insight.runs.spark_scoring",
    "stability": "comorb.insight.runs.stability",
    "write_cohort": "comorb.records.streaming",
}
__all__ = [
    "BernoulliMixture",
    "Cohort",
    "FileJournal",
    "LatentClassModel",
    "Layout",
    "Mixture",
    "Profile",
    "__version__",
    "charts",
    "choose_k",
    "compare",
    "datasets",
    "first_step",
    "inspect_records",
    "load_cohort",
    "open_blocks",
    "open_engine",
    "own_secret",
    "profile",
    "read_dask",
    "read_records",
    "read_spark",
    "relate_outcome",
    "relate_predictors",
    "relate_regression",
    "relate_survival",
    "report",
    "save_cohort",
    "spark_scorer",
    "stability",
    "write_cohort",
]


def __getattr__(name: str) -> object:
    if name not in _HOMES:
        raise AttributeError(f"module 'comorb' has no attribute {name!r}")
    home = import_module(_HOMES[name])
    value: object = home if name in ("charts", "datasets") else getattr(home, name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
