import pytest

from comorb_reproduction.sections import judged, table


@pytest.mark.parametrize(
    ("times", "verdict"),
    [
        (4, "confirmed"),
        (3, "confirmed with limits"),
        (2, "confirmed with limits"),
        (0, "not confirmed"),
    ],
)
def test_verdict_follows_how_often_it_held(times, verdict):
    assert judged("a claim", times, 4, "why").verdict == verdict


def test_numbers_stand_to_the_right():
    lines = table(["method", "s", "x"], [["PCA", "0.5", "–"], ["SC", "+2", "-3.1"]]).splitlines()
    assert lines[1] == "|---|---:|---:|"
    assert lines[3] == "| SC | +2 | -3.1 |"
