"""The front page of ``comorb``, in plain text: help comes before anything is imported."""

from __future__ import annotations

COMMANDS = {
    "demo": "Do the whole job on a built-in cohort of heart-failure patients.",
    "fit": "Find the clusters of records, and write a model and a report.",
    "assign": "Assign new records to the clusters of a model.",
    "relate": "Relate outcomes and predictors to clusters, corrected for doubt.",
    "choose": "Find out how many clusters records hold.",
    "stability": "See how well clusters come out again in parts of the records.",
    "profile": "Show the clusters of a run.",
    "rules": "Show short rules for the clusters of a run, and how often they are right.",
    "slices": "Show the clusters of a run by age, sex, site or time.",
    "report": "Write the report of a run again, for print or to share.",
    "compare": "Compare the clusters of two runs.",
    "inspect": "Say what records hold: layout, columns, coding system, counts and problems.",
    "simulate": "Write simulated records to a file.",
    "reproduce": "Make the paper's figures and tables again, and judge its claims.",
    "serve": "Explore clusters in a browser.",
    "user": "Add, remove or list the users of the explorer.",
    "audit": "Show or verify the log of what was done in the explorer.",
}
_PAGE = """\
Usage: comorb [OPTIONS] COMMAND [ARGS]...

  Find groups of patients with similar clinical profiles, from their diagnosis
  codes.

  Example: comorb fit visits.csv --having 428 -k 5

Options:
  --version             Show the version and exit.
  --install-completion  Install completion for the current shell.
  --show-completion     Show completion for the current shell, to copy it or
                        customize the installation.
  --help                Show this message and exit.

Commands:
{commands}

Exit codes:
  0    It is done.
  1    It can't be done; one line on standard error says why and what to do.
  2    The command was not understood.
  130  It was interrupted; files that were there before are whole.
"""


def front_page() -> str:
    """Return the page of ``comorb --help``."""
    lines = [f"  {name:<11}{summary}" for name, summary in COMMANDS.items()]
    return _PAGE.format(commands="\n".join(lines))
