"""The explorer in a browser: serve, and the users who may sign in."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from comorb.web.app import Settings

Workspace = Annotated[
    Path, typer.Option(metavar="DIR", help="Where data, runs and users are kept.")
]


def serve(  # noqa: PLR0913 - one parameter for each option
    records: Annotated[
        list[Path] | None,
        typer.Argument(
            metavar="[RECORDS]...", show_default=False, help="Files that everyone may open."
        ),
    ] = None,
    workspace: Workspace = Path("comorb-workspace"),
    host: Annotated[
        str,
        typer.Option(metavar="ADDRESS", help="Where to listen; others than 127.0.0.1 need users."),
    ] = "127.0.0.1",
    port: Annotated[int, typer.Option(metavar="N", help="The port; 0 takes a free one.")] = 8042,
    name: Annotated[
        list[str] | None,
        typer.Option(metavar="HOST", help="A host name that the server answers to. Repeatable."),
    ] = None,
    min_cell: Annotated[
        int, typer.Option(metavar="N", help="Hide counts under N, and those that give them away.")
    ] = 11,
    upload_limit: Annotated[
        int, typer.Option(metavar="MB", help="The largest upload, in megabytes.")
    ] = 500,
    browser: Annotated[bool, typer.Option(help="Open the browser.")] = True,
) -> None:
    """Explore clusters in a browser.

    Opens on this machine alone, with a link that works once. Others may come in once they have
    a token from 'comorb user add'.

    Example: comorb serve visits.csv
    """
    from comorb.errors import RecordsError
    from comorb.web.app import LOOPBACK, Settings

    for path in records or ():
        if not path.exists():
            raise RecordsError(f"There is no file {path}; check the name.")
    settings = Settings(
        workspace=workspace,
        records=tuple(records or ()),
        hosts=(*LOOPBACK, host, *(name or ())),
        min_cell=min_cell,
        upload_limit=upload_limit * 1_000_000,
    )
    run_explorer(settings, host, port, browser)


def run_explorer(
    settings: Settings, host: str, port: int, browser: bool = True, data: str = ""
) -> None:
    """Serve until interrupted; the link that is printed opens on some data when they are named."""
    import webbrowser

    from comorb.web.serving import explorer, listen

    server, key = explorer(settings, host)
    with listen(host, port) as opened:
        shown = f"[{host}]" if ":" in host else host
        address = f"http://{shown}:{opened.getsockname()[1]}"
        link = f"{address}/open?key={key}" if key else f"{address}/login"
        link += f"&data={data}" if key and data else ""
        typer.echo(f"The explorer is at {link}" + (" (this link works once)" if key else ""))
        typer.echo("Ctrl-C ends it.", err=True)
        if browser:
            webbrowser.open(link)
        server.run(sockets=[opened])


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
    from comorb.web.access import Access
    from comorb.web.store import Store

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
        for each, its in access.users():
            typer.echo(f"{each}\t{its}")
    store.close()
