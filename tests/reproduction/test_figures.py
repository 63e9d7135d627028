from comorb_reproduction.figures import LOOKS, clean, new_figure, save
from comorb_reproduction.methods import METHODS


def test_a_figure_is_written_twice_and_shown_by_markdown(tmp_path):
    figure = new_figure(2, 1)
    clean(figure.subplots())
    shown = save(figure, tmp_path, "name", "What it shows")
    assert shown == "![What it shows](reproduction/name.png)"
    assert (tmp_path / "reproduction" / "name.png").read_bytes().startswith(b"\x89PNG")
    svg = (tmp_path / "reproduction" / "name.svg").read_text()
    assert "<dc:date>" not in svg


def test_every_method_that_is_drawn_is_measured_and_looks_like_no_other():
    assert LOOKS.keys() <= METHODS.keys()
    assert len(set(LOOKS.values())) == len(LOOKS)
