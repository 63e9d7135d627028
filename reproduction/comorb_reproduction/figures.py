"""How the reproduction's figures look, and where they are written."""

from __future__ import annotations

from pathlib import Path

from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from comorb_reproduction.methods import ASVTD, COMORB, K_MEANS, SPECTRAL

FOLDER = "reproduction"

PLACE = {"n": 0, "d": 1, "k": 2}  # of each axis in a setting
LABELS = {"n": "records N", "d": "codes d", "k": "clusters k"}

# Okabe and Ito's colours, which most colour-blind readers can tell apart, and two greys.
LOOKS: dict[str, tuple[str, str]] = {
    COMORB: ("#D55E00", "o"),
    ASVTD: ("#0072B2", "s"),
    "HMM12": ("#009E73", "^"),
    "TPM": ("#56B4E9", "v"),
    "Jain-Oh": ("#CC79A7", "D"),
    K_MEANS: ("#444444", "x"),
    SPECTRAL: ("#E69F00", "+"),
    "PCA": ("#888888", "1"),
    "NN-CP": ("#BBAA00", "2"),
}


def new_figure(width: float, height: float) -> Figure:
    """Return an empty figure that draws without a screen."""
    figure = Figure(figsize=(width, height), layout="constrained")
    FigureCanvasAgg(figure)
    return figure


def clean(axes: Axes) -> None:
    """Take away what says nothing: two spines, and a loud grid."""
    axes.spines[["top", "right"]].set_visible(False)
    axes.grid(True, color="#E6E6E6", linewidth=0.7)
    axes.set_axisbelow(True)


def save(figure: Figure, out: Path, name: str, caption: str) -> str:
    """Write a figure as PNG and SVG beneath ``out`` and return the Markdown that shows it."""
    folder = out / FOLDER
    folder.mkdir(parents=True, exist_ok=True)
    figure.savefig(folder / f"{name}.png", dpi=150)
    figure.savefig(folder / f"{name}.svg", metadata={"Date": None})
    return f"![{caption}]({FOLDER}/{name}.png)"
