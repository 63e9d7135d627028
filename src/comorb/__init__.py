"""Groups of patients with similar clinical profiles, from their diagnosis codes.

The public names load when they are first used, so that ``import comorb`` costs nothing.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from comorb.model.estimator import BernoulliMixture, choose_k
    from comorb.model.mixture import Mixture

__version__ = "0.1.0"
__all__ = ["BernoulliMixture", "Mixture", "__version__", "choose_k"]

_HOMES = {
    "BernoulliMixture": "comorb.model.estimator",
    "Mixture": "comorb.model.mixture",
    "choose_k": "comorb.model.estimator",
}


def __getattr__(name: str) -> object:
    if name not in _HOMES:
        raise AttributeError(f"module 'comorb' has no attribute {name!r}")
    value = getattr(import_module(_HOMES[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
