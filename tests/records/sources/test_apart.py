import pytest

from comorb.errors import RecordsError
from comorb.records.sources.apart import read_text_columns, run_apart, write_text_columns


def echo(*texts):
    return {"texts": texts}


def refuse(what):
    return {"refusal": f"{what} is refused"}


def crash():
    import os

    os.abort()


def fail():
    raise ValueError("SECRET77")


def test_an_answer_comes_back():
    assert run_apart(echo, "damaged", "ñ", "b c") == {"texts": ["ñ", "b c"]}


def test_a_refusal_is_raised():
    with pytest.raises(RecordsError, match=r"^it is refused$"):
        run_apart(refuse, "damaged", "it")


@pytest.mark.parametrize("task", [crash, fail])
def test_no_answer_means_damage(task):
    with pytest.raises(RecordsError, match=r"^the file is damaged$") as caught:
        run_apart(task, "the file is damaged")
    assert "SECRET77" not in str(caught.value.__context__)


def test_columns_go_through_a_file(tmp_path):
    parts = [[["a", None], ["1", "2"]], [["b"], [None]]]
    write_text_columns(str(tmp_path / "out"), ["x", "y"], parts)
    assert read_text_columns(tmp_path / "out").to_pydict() == {
        "x": ["a", None, "b"],
        "y": ["1", "2", None],
    }
