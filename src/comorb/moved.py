"""Modules of version 0.1 under their old names, until version 0.3."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Sequence
from importlib import import_module
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType

_PACKAGES = ("comorb.insight", "comorb.insight.profile", "comorb.insight.runs")
MOVED = {
    "comorb.engines.blockfile": "comorb.engines.block_files",
    "comorb.engines.on_spark": "comorb.engines.spark_engine",
    "comorb.insight.profile.compare": "comorb.profiles.comparison",
    "comorb.insight.profile.keys": "comorb.profiles.noise",
    "comorb.insight.profile.profile": "comorb.profiles.profile",
    "comorb.insight.profile.profiling": "comorb.profiles.build",
    "comorb.insight.runs.stability": "comorb.runs.stability",
    "comorb.insight.views": "comorb.views",
    "comorb.insight.views.charts": "comorb.views.charts",
    "comorb.insight.views.report": "comorb.views.report",
    "comorb.model.confidence": "comorb.model.diagnostics",
    "comorb.model.dense": "comorb.model.kernels",
    "comorb.records.archive": "comorb.records.cohort_file",
    "comorb.records.codes.features": "comorb.records.codes.vocabulary",
    "comorb.records.layouts.description": "comorb.records.layouts.layout",
    "comorb.records.preparation": "comorb.records.spec",
    "comorb.records.reading": "comorb.records.read",
    "comorb.records.streaming": "comorb.records.stream",
}


class _MovedModules(MetaPathFinder, Loader):
    """Find a module by its old name, before its file is found inside a moved package."""

    def find_spec(
        self, name: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if name in MOVED or name in _PACKAGES:
            return ModuleSpec(name, self, is_package=name in _PACKAGES)
        return None

    def create_module(self, spec: ModuleSpec) -> ModuleType | None:
        if spec.name in _PACKAGES:
            return None
        new = MOVED[spec.name]
        warnings.warn(
            f"{spec.name} is {new} now; the old name goes with version 0.3",
            DeprecationWarning,
            stacklevel=2,
        )
        module = import_module(new)
        spec.loader_state = module.__spec__
        return module

    def exec_module(self, module: ModuleType) -> None:
        """Give the module, which was made under its new name, its own specification back."""
        if module.__spec__ is not None and module.__spec__.loader_state is not None:
            module.__spec__ = module.__spec__.loader_state


def install() -> None:
    """Let modules be imported by their old names."""
    sys.meta_path.insert(0, _MovedModules())
