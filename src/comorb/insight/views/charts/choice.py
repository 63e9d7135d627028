"""The choice of the number of clusters: every criterion over it."""

from __future__ import annotations

from textwrap import fill

from matplotlib.axes import Axes

from comorb.insight.views import drawing
from comorb.insight.views.palette import colours, palette
from comorb.model.choose import Choice


def draw(choice: Choice, ax: Axes | None = None) -> Axes:
    """Draw the criteria for each number of clusters, and the number that was chosen.

    They are in nats a record, more is better; the stability has an axis of its own at the right.
    """
    ax = ax or drawing.new_axes(8.6, 4.8)
    numbers = [row.k for row in choice.rows]
    criteria = {
        "evidence": [row.evidence for row in choice.rows],
        "records left out of the fit": [row.held_out for row in choice.rows],
        "−BIC/2": [-row.bic / 2 for row in choice.rows],
        "−ICL/2": [-row.icl / 2 for row in choice.rows],
    }
    for (name, values), colour in zip(criteria.items(), colours(range(1, 5)), strict=True):
        decides = name == "evidence"
        ax.plot(numbers, values, "o-", ms=4, lw=2.4 if decides else 1.1, color=colour, label=name,
                zorder=3 if decides else 2)  # fmt: skip
    ax.set_ylabel("log-likelihood a record, adjusted\n(more is better)")
    ax.set_xlabel("number of clusters")
    ax.axvline(choice.best, color=palette()["ink"], lw=1, ls=":", label=f"chosen: {choice.best}")
    ax.set_xticks(numbers if len(numbers) <= 20 else numbers[:: -(-len(numbers) // 16)])
    right = ax.twinx()
    right.plot(numbers, [row.stability for row in choice.rows], "s--", ms=3.5, lw=1.1,
               color=palette()["muted"], label="stability")  # fmt: skip
    right.set_ylim(0, 1.03)
    right.set_ylabel("stability (ARI; 1 is the same clusters)")
    right.spines[:].set_visible(False)
    handles, names = ax.get_legend_handles_labels()
    ax.legend([*handles, *right.lines], [*names, "stability"], frameon=False, fontsize=8,
              loc="upper center", bbox_to_anchor=(0.5, -0.14), ncols=3)  # fmt: skip
    return drawing.titled(ax, fill(choice.reason, 84))
