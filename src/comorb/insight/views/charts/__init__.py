"""Charts: a module for each, with one function ``draw``; what every view shows of a profile.

No chart touches pyplot, so that they can be drawn in threads and without a screen.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from comorb.insight.profile.profile import Profile
    from comorb.insight.views.words import Words

# The charts of a whole profile, those of the page's sections (page/sections.js): the PDF prints
# each, the first beside its summary, and the explorer offers each as a file.
CHARTS = ("burden", "sizes", "frequency", "heatmap")


def draw(name: str, profile: Profile, ax: Axes | None = None, words: Words | None = None) -> Axes:
    """Draw one of the ``CHARTS``; its module is loaded when it is drawn.

    Parameters
    ----------
    name : str
        Which chart.
    profile : Profile
        The clusters.
    ax : Axes, optional
        Where to draw; a new figure by default.
    words : Words, optional
        The language of what is written; English by default.

    Returns
    -------
    Axes
        What was drawn in.
    """
    said = {} if words is None else {"words": words}
    axes: Axes = import_module(f"{__name__}.{name}").draw(profile, ax=ax, **said)
    return axes
