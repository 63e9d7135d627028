"""The rules command: short rules for the clusters of a run."""

from __future__ import annotations

from comorb.cli import options


@options.spec_options
def rules(run: options.RunFolder, *, counts: options.Counts, as_json: options.Json = False) -> None:
    """Show short rules for the clusters of a run, and how often they are right.

    The first condition that a record meets decides. The rules were learned on one half of the
    records and judged on the other.

    Example: comorb rules heart-failure
    """
    from comorb.cli.render import show, show_rules
    from comorb.cli.summaries import rules_summary
    from comorb.runs.folder import load_profile

    shown = load_profile(run)
    shown = shown.protected(counts.least) if counts.least else shown
    show(rules_summary(shown), show_rules, as_json)
