"""The commands under one roof: errors become one line, warnings become notes."""

from __future__ import annotations

import warnings
from importlib import import_module
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from comorb import __version__
from comorb.cli.app import COMMANDS, front_page
from comorb.errors import ComorbError, lacks_memory
from comorb.messages import Message


class Group(TyperGroup):
    """A group whose page is the front page and whose commands end without a traceback."""

    def format_help(self, ctx: Any, formatter: Any) -> None:
        """Write the front page."""
        formatter.write(front_page())

    def invoke(self, ctx: Any) -> Any:
        """Run a command; an error that comorb raises on purpose is one line."""
        with warnings.catch_warnings():
            warnings.simplefilter("always", UserWarning)
            warnings.showwarning = lambda message, *_: typer.echo(f"note: {message}", err=True)
            try:
                return super().invoke(ctx)
            except ComorbError as error:
                typer.echo(f"comorb: {error}", err=True)
                raise typer.Exit(1) from None
            except BrokenPipeError:
                raise
            except OSError as error:
                reason = error.strerror or type(error).__name__
                typer.echo(f"comorb: {Message('group.no_output', reason=reason)}", err=True)
                raise typer.Exit(1) from None
            except Exception as error:
                if not lacks_memory(error):
                    raise
                typer.echo(f"comorb: {Message('group.memory')}", err=True)
                raise typer.Exit(1) from None
            except KeyboardInterrupt:
                typer.echo("comorb: interrupted; files that were there before are whole", err=True)
                raise typer.Exit(130) from None


def _version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"comorb {__version__}")
        raise typer.Exit


app = typer.Typer(
    cls=Group, no_args_is_help=True, pretty_exceptions_enable=False, rich_markup_mode=None
)


@app.callback()
def comorb(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Show the version.")
    ] = False,
) -> None:
    """Find groups of patients with similar clinical profiles, from their diagnosis codes."""


for _name in COMMANDS:
    app.command(_name)(getattr(import_module(f"comorb.cli.{_name}"), _name))
