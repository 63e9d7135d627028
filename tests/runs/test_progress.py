"""What a long fit tells of its pace."""

from comorb.runs.progress import PassProgress, Progress, ignore_progress


def paced(gains, seconds=10):
    told = []
    clock = iter(range(0, 1000, seconds))
    pace = PassProgress(1e-6, told.append, lambda: next(clock))
    objective = -1.0
    for gain in (0.0, *gains):
        objective += gain
        pace.gained(0, objective)
    pace.begin(9)
    return told[0]


def test_the_time_left_follows_from_how_fast_gains_shrink():
    assert paced([0.1, 0.01, 0.001]) == Progress(
        "finding", "Pass 9 over the records; about 40 s left", 40
    )
    assert paced([0.1, 0.05, 0.025], 60).text == "Pass 9 over the records; about 16 min left"


def test_nothing_is_foretold_from_few_or_growing_gains():
    assert paced([0.1]).text == "Pass 9 over the records"
    assert paced([0.01, 0.02, 0.04]).text == "Pass 9 over the records"


def test_silence_is_a_way_to_tell():
    assert ignore_progress(Progress("reading", "Reading")) is None
