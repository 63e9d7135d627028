"""The colours of the clusters."""

from __future__ import annotations

from comorb.insight.views.palette import colours, palette


def test_no_two_clusters_share_a_colour() -> None:
    assert len(set(colours(range(1, 34)))) == 33
    assert colours([3, 12]) == [colours(range(1, 13))[place] for place in (2, 11)]


def test_every_colour_is_six_hexadecimal_digits() -> None:
    table = palette()
    plain = [colour for name, colour in table.items() if name != "clusters"]
    for colour in [*table["clusters"], *plain]:
        assert len(colour) == 7
        assert int(colour.removeprefix("#"), 16) >= 0
