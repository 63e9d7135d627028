"""Sources: what the command line reads beside the records."""

from __future__ import annotations

import typer


def kinds_of(text: str | None) -> tuple[str, ...]:
    """Return the kinds that ``--kinds`` asks for."""
    return tuple(kind.strip() for kind in (text or "").split(",") if kind.strip())


def sources_of(
    records: str, beside: list[str] | None, kinds: tuple[str, ...] = ()
) -> str | dict[str, str]:
    """Return the records, or with ``--with`` the sources by their kinds, the records first."""
    if not beside:
        return records
    main = kinds[0] if kinds and "diagnosis" not in kinds else "diagnosis"
    sources = {main: records}
    for text in beside:
        kind, _, source = text.partition("=")
        if not kind or not source:
            raise typer.BadParameter(
                f"expected KIND=FILE, such as drug=medications.csv, got {text!r}",
                param_hint="--with",
            )
        if kind in sources:
            what = "is that of RECORDS" if kind == main else "is given twice"
            raise typer.BadParameter(
                f"the kind {kind!r} {what}; give each source a kind of its own",
                param_hint="--with",
            )
        sources[kind] = source
    return sources
