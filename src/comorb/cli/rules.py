"""The rules command: short rules for the clusters of a run."""

from __future__ import annotations

from comorb.cli.options import Json, MinCell, Protected, RunFolder, least_count


def rules(
    run: RunFolder,
    protected: Protected = False,
    min_cell: MinCell = None,
    as_json: Json = False,
) -> None:
    """Show short rules for the clusters of a run, and how often they are right.

    The first condition that a record meets decides. The rules were learned on one half of the
    records and judged on the other.

    Example: comorb rules heart-failure
    """
    from comorb.cli.render import show, show_rules
    from comorb.cli.summaries import rules_summary
    from comorb.runs.folder import load_profile

    shown = load_profile(run)
    if least := least_count(protected, min_cell):
        shown = shown.protected(least)
    show(rules_summary(shown), show_rules, as_json)
