"""The serve command: the explorer in a browser."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from comorb.cli.options import Workspace

if TYPE_CHECKING:
    from comorb.web.server.app import Settings


# To read with: addresses, of which libraries take more than they use; and what a fit holds.
_LEAST_TO_READ, _LEAST_TO_FIT = 4 << 30, 1 << 30
_CONTAINER = Path("/sys/fs/cgroup/memory.max")
Proxy = Annotated[
    list[str] | None,
    typer.Option(
        metavar="ADDRESS",
        help="A proxy whose word on who asks, and by https, is taken. Repeatable.",
    ),
]
ReadMemory = Annotated[
    float | None,
    typer.Option(
        metavar="GB",
        show_default="half of this machine's",
        help="The most memory to read records with, in gigabytes.",
    ),
]
ReadMinutes = Annotated[float, typer.Option(metavar="N", help="The longest that records are read.")]
ReadExpanded = Annotated[
    float, typer.Option(metavar="GB", help="The most that records unpack to, in gigabytes.")
]
ReadRows = Annotated[int, typer.Option(metavar="N", help="The most rows of a table of records.")]
ReadColumns = Annotated[
    int, typer.Option(metavar="N", help="The most columns of a table of records.")
]
FitMemory = Annotated[
    float | None,
    typer.Option(
        metavar="GB",
        show_default="half of this machine's",
        help="The most memory that a fit may hold, in gigabytes.",
    ),
]
Host = Annotated[
    str, typer.Option(metavar="ADDRESS", help="Where to listen; others than 127.0.0.1 need users.")
]
Site = Annotated[
    str, typer.Option(metavar="TEXT", help="Whose records they are, for what is printed.")
]


def serve(  # noqa: PLR0913 - one parameter for each option
    records: Annotated[
        list[Path] | None,
        typer.Argument(
            metavar="[RECORDS]...", show_default=False, help="Files that everyone may open."
        ),
    ] = None,
    workspace: Workspace = Path("comorb-workspace"),
    host: Host = "127.0.0.1",
    port: Annotated[int, typer.Option(metavar="N", help="The port; 0 takes a free one.")] = 8042,
    name: Annotated[
        list[str] | None,
        typer.Option(metavar="HOST", help="A host name that the server answers to. Repeatable."),
    ] = None,
    proxy: Proxy = None,
    min_cell: Annotated[int, typer.Option(min=2, metavar="N", help="Protect counts under N.")] = 11,
    upload_limit: Annotated[
        int, typer.Option(metavar="MB", help="The largest upload, in megabytes.")
    ] = 500,
    read_memory: ReadMemory = None,
    read_minutes: ReadMinutes = 10,
    read_expanded: ReadExpanded = 10,
    read_rows: ReadRows = 200_000_000,
    read_columns: ReadColumns = 20_000,
    fit_memory: FitMemory = None,
    site: Site = "",
    browser: Annotated[bool, typer.Option(help="Open the browser.")] = True,
) -> None:
    """Explore clusters in a browser.

    Opens on this machine alone, with a link that works once. Others may come in once they have
    a token from 'comorb user add'.

    Example: comorb serve visits.csv
    """
    from comorb.errors import RecordsError
    from comorb.records.sources.files import Limits
    from comorb.web.server.app import LOOPBACK, Settings

    for path in records or ():
        if not path.exists():
            raise RecordsError("serve.no_file", path=path)
    half = _half_of_memory()
    memory = _memory(read_memory, half and max(half, _LEAST_TO_READ))
    settings = Settings(
        workspace=workspace,
        records=tuple(records or ()),
        hosts=(*LOOPBACK, host, *(name or ())),
        min_cell=min_cell,
        upload_limit=upload_limit * 1_000_000,
        read_memory=memory,
        read_seconds=read_minutes * 60,
        limits=Limits(int(read_expanded * 1e9), read_rows, read_columns, memory),
        fit_memory=_memory(fit_memory, half and max(half, _LEAST_TO_FIT)),
        site=site,
        proxies=tuple(proxy or ()),
    )
    run_explorer(settings, host, port, browser)


def _half_of_memory() -> int:
    """Return half of the machine's memory in bytes, or of its container's; 0 if not known."""
    try:
        memory = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, ValueError, OSError):
        return 0
    with suppress(OSError, ValueError):
        memory = min(memory, int(_CONTAINER.read_text(encoding="ascii")))
    return memory // 2


def _memory(gigabytes: float | None, usual: int) -> int:
    return usual if gigabytes is None else int(gigabytes * 1e9)


def run_explorer(
    settings: Settings, host: str, port: int, browser: bool = True, data: str = ""
) -> None:
    """Serve until interrupted; the link that is printed opens on some data when they are named."""
    import webbrowser

    from comorb.web.server.app import explorer, listen

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
