"""Features as people ask for them."""

import pytest

from comorb.errors import RecordsError
from comorb.model.features import Feature
from comorb.records.asked import Asked, as_asked, written
from comorb.records.preparation import Preparation


@pytest.mark.parametrize("text", ["age=numbr", "=number", "age=count:log", "age=number:cube", "a="])
def test_a_feature_is_asked_for_in_one_way(text):
    with pytest.raises(RecordsError, match="Expected a feature as NAME, NAME=KIND"):
        Asked.parse(text)


def test_features_are_asked_for_by_words_that_read_back():
    asked = as_asked({"age": "number", "los": "number:log"}) + as_asked("sex")
    assert [written(one) for one in asked] == ["age=number", "los=number:log", "sex"]
    assert tuple(map(Asked.parse, map(written, asked))) == asked
    preparation = Preparation(features=asked)
    assert preparation.words() == [
        "--feature",
        "age=number",
        "--feature",
        "los=number:log",
        "--feature",
        "sex",
    ]
    assert Preparation.from_dict(preparation.to_dict()) == preparation
    fitted = Preparation(
        features=(Feature("sex", "category", ("F", "M")), Feature("age", "number"))
    )
    assert Preparation.from_dict(fitted.to_dict()) == fitted
