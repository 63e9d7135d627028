"""The user command: who may sign in to the explorer."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from comorb.cli.options import Workspace


def user(
    action: Annotated[
        str, typer.Argument(metavar="ACTION", show_default=False, help="add, remove or list.")
    ],
    name: Annotated[
        str, typer.Argument(metavar="[NAME]", show_default=False, help="The user's name.")
    ] = "",
    role: Annotated[
        str,
        typer.Option(
            metavar="ROLE",
            help="viewer (shared results), analyst (own runs) or exporter (also patient-level).",
        ),
    ] = "analyst",
    workspace: Workspace = Path("comorb-workspace"),
) -> None:
    """Add, remove or list the users of the explorer.

    A new user's token is printed once and kept only as a hash; adding a user again replaces it.

    Example: comorb user add ada --role analyst
    """
    from comorb.web.server.access import Access
    from comorb.web.server.store import Store

    if action not in ("add", "remove", "list") or (action != "list" and not name):
        raise typer.BadParameter(
            f"expected add NAME, remove NAME or list, got {action!r}", param_hint="ACTION"
        )
    store = Store(workspace)
    access = Access(store)
    if action == "add":
        typer.echo(access.add_user(name, role))
    elif action == "remove":
        if not access.remove_user(name):
            raise typer.BadParameter(f"there is no user {name!r}", param_hint="NAME")
    else:
        for known, their_role in access.users():
            typer.echo(f"{known}\t{their_role}")
    store.close()
