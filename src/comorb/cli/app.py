"""The ``comorb`` command."""

from __future__ import annotations

import typer

app = typer.Typer(
    no_args_is_help=True,
    pretty_exceptions_enable=False,
)


@app.callback()
def comorb() -> None:
    """Find groups of patients with similar clinical profiles, from their diagnosis codes."""


@app.command()
def demo() -> None:
    """Cluster a simulated cohort and print what was found.

    Example: comorb demo
    """
    from rich.console import Console
    from rich.table import Table

    from comorb import BernoulliMixture
    from comorb.records.datasets import record_like

    drawn = record_like(23_154, k=5)
    model = BernoulliMixture(5).fit(drawn.matrix)
    n, d = drawn.matrix.shape
    table = Table(title=f"{n:,} simulated records of {d} codes: {model.weights_.size} clusters")
    table.add_column("cluster", justify="right")
    table.add_column("share", justify="right")
    table.add_column("codes most above their overall frequency")
    overall = model.weights_ @ model.means_
    for j, weight in enumerate(model.weights_):
        top = (model.means_[j] - overall).argsort()[::-1][:5]
        found = ", ".join(f"{i} ({model.means_[j, i]:.0%})" for i in top)
        table.add_row(str(j + 1), f"{weight:.1%}", found)
    Console().print(table)


def main() -> None:
    """Run the command line."""
    app()
