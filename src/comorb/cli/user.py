"""The user command: who may sign in to the explorer."""

from __future__ import annotations

import sys
from contextlib import closing
from pathlib import Path
from typing import Annotated

import typer

from comorb.cli.options import Workspace

_WHO = "Someone worked here alone, and keeps their runs, data and browser session. Under which name"
_SHOWN = "Token of {name} ({role}), shown only this once; {use}:"
_GIVE = "give it to them, to sign in with"
_KEEP = "keep it, to sign in with when the browser session that is open ends"


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
    owner: Annotated[
        str,
        typer.Option(
            metavar="NAME",
            show_default=False,
            help="Who worked here alone, and keeps what they made, as an exporter.",
        ),
    ] = "",
    workspace: Workspace = Path("comorb-workspace"),
) -> None:
    """Add, remove or list the users of the explorer.

    A new user's token is printed once and kept only as a hash; adding a user again replaces it.
    Whoever worked in the explorer alone becomes a user with the first one that is added, and
    keeps runs, data and the browser session; without --owner their name is asked for.

    Example: comorb user add ada --role analyst
    """
    from comorb.web.server.access import Access
    from comorb.web.server.store import Store

    if action not in ("add", "remove", "list") or (action != "list" and not name):
        problem = f"expected add NAME, remove NAME or list, got {action!r}"
        raise typer.BadParameter(problem, param_hint="ACTION")
    with closing(Store(workspace)) as store:
        access = Access(store)
        if action == "add":
            if access.needs_owner and not owner and sys.stdin.isatty():
                owner = typer.prompt(_WHO, err=True).strip()
            tokens = access.add_users({name: role}, owner)
            roles = dict(access.users())
            for one, token in tokens.items():
                use = _KEEP if one == owner else _GIVE
                typer.echo(_SHOWN.format(name=one, role=roles[one], use=use), err=True)
                typer.echo(token)
        elif action == "remove":
            if not access.remove_user(name):
                raise typer.BadParameter(f"there is no user {name!r}", param_hint="NAME")
        else:
            for user_name, user_role in access.users():
                typer.echo(f"{user_name}\t{user_role}")
