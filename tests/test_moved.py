"""Modules of the version before are found under their old names, with a warning."""

from importlib import import_module

import pytest

from comorb.moved import MOVED


@pytest.mark.parametrize(("old", "new"), MOVED.items())
def test_a_module_is_found_under_its_old_name(old, new):
    with pytest.warns(DeprecationWarning, match=f"{old} is {new} now"):
        moved = import_module(old)
    assert moved is import_module(new)
    assert moved.__spec__.name == new


def test_another_name_is_not_found():
    with pytest.raises(ModuleNotFoundError):
        import_module("comorb.insight.nothing")
