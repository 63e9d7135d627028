"""The audit command: what was done in the explorer, and whether the log of it is whole."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path
from typing import Annotated

import typer

from comorb.cli.options import Workspace


def audit(
    action: Annotated[
        str, typer.Argument(metavar="ACTION", show_default=False, help="show or verify.")
    ],
    workspace: Workspace = Path("comorb-workspace"),
) -> None:
    """Show or verify the log of what was done in the explorer.

    Each act has a seal over itself and the one before. 'verify' names the first that isn't as it
    was written; keep the last seal that it prints elsewhere, to know the log again.

    Example: comorb audit verify
    """
    from comorb.errors import StorageError
    from comorb.web.server.store import DATABASE, Store

    if action not in ("show", "verify"):
        raise typer.BadParameter(f"expected show or verify, got {action!r}", param_hint="ACTION")
    if not (workspace / DATABASE).exists():
        raise StorageError("audit.no_workspace", workspace=workspace)
    with closing(Store(workspace)) as store:
        acts, broken = store.acts(), store.broken_act()
    if action == "show":
        for act in acts:
            typer.echo("\t".join(map(str, act.values())))
        return
    if broken is not None:
        raise StorageError("audit.altered", act=str(broken))
    last = acts[-1]["seal"] if acts else "none yet"
    typer.echo(f"{len(acts)} acts, all as they were written; the last seal is {last}")
