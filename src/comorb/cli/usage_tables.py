"""Usage tables: burden, slices, rules and drift, printed for people."""

from __future__ import annotations

from typing import Any

from rich import box
from rich.console import Console
from rich.table import Table

from comorb.insight.profile.burden import MAIN


def show_burden(burden: dict[str, Any] | None) -> None:
    """Print what the records of each cluster use, where that is known."""
    if burden is None or not (burden["all"]["totals"] or burden["all"]["rates"]):
        return
    console, table = Console(highlight=False), _table("", "% of records")
    whole = burden["all"]
    if whole["visits_a_patient"] is not None:
        table.add_column("visits a patient", justify="right")
    shown = [name for name in whole["totals"] if name in MAIN] or [*whole["totals"]][:3]
    for name in (*shown, *whole["rates"]):
        title = f"% of {MAIN.get(name, name)}" if name in whole["totals"] else f"% {name}"
        table.add_column(title, justify="right", overflow="fold")
    for one in (*burden["clusters"], burden["all"]):
        cells = [str(one.get("cluster", "all")), _percent(one["share"])]
        if whole["visits_a_patient"] is not None:
            visits = one["visits_a_patient"]
            cells.append("few" if visits is None else f"{visits:.2f}")
        cells += [_percent(one["totals"][name]["share"]) for name in shown]
        cells += [_percent(part["rate"], 1) for part in one["rates"].values()]
        table.add_row(*cells)
    console.print("What they use", markup=False)
    console.print(table)
    _most(burden, console)
    for note in burden["notes"]:
        if "first visit" not in note:  # which is a note of the records, too
            console.print(f"note: {note}", markup=False)


def _most(burden: dict[str, Any], console: Console) -> None:
    """Print one sentence on the cluster that uses most beyond its size."""
    gaps = [
        (part["share"] / one["share"], name, one, part)
        for one in burden["clusters"]
        for name, part in one["totals"].items()
        if one["share"] and part["share"] and name in MAIN
    ]
    if gaps and (most := max(gaps, key=lambda gap: gap[0]))[0] > 1:
        _, name, one, part = most
        console.print(
            f"{_percent(one['share'])}% of records ({one['name']}) use {_percent(part['share'])}% "
            f"of {MAIN[name]}.",
            markup=False,
        )


def show_sliced(summary: dict[str, Any]) -> None:
    """Print the shares of clusters within slices, and the models of slices."""
    for slices in summary["slices"]:
        show_slices(slices)
    for strata in summary["strata"]:
        _show_strata(strata)


def show_slices(slices: dict[str, Any]) -> None:
    """Print the shares of clusters within the slices by one column."""
    console = Console(highlight=False)
    mix = " and ".join(slices["standardised_by"])
    title = f"By {slices['by']}: % of records in each cluster"
    console.print(f"{title}; standardised to the {mix} of all in brackets" if mix else title)
    numbers = [str(test["cluster"]) for test in slices["tests"]]
    table = _table(slices["by"], "records", *numbers)
    for one in slices["slices"]:
        cells = [
            f"{_percent(part['share'])}" + (f" ({_percent(part['standardised'])})" if mix else "")
            for part in one["clusters"]
        ]
        records = one["records"]
        table.add_row(one["slice"], "few" if records is None else f"{records:,.0f}", *cells)
    table.add_row(slices["test"], "p", *(_p(test) for test in slices["tests"]))
    console.print(table)
    for note in slices["notes"]:
        console.print(f"note: {note}", markup=False)


def _p(test: dict[str, Any]) -> str:
    if test["p"] is None:
        return "–"
    sign = {True: "↑ ", False: "↓ ", None: ""}[None if test["z"] is None else test["z"] > 0]
    return f"{sign}< 0.001" if test["p"] < 0.001 else f"{sign}{test['p']:.3f}"


def _show_strata(strata: dict[str, Any]) -> None:
    console = Console(highlight=False)
    for one in strata["strata"]:
        records = one["records"]
        said = "few" if records is None else f"{records:,}"
        console.print(f"A model of {one['slice']} alone ({said} records)", markup=False)
        for cluster in one["clusters"]:
            match = "no match" if cluster["cluster"] is None else f"cluster {cluster['cluster']}"
            codes = ", ".join(cluster["codes"])
            console.print(f"  {_percent(cluster['share'])}%  {match}  {codes}", markup=False)
    test = strata["same_profiles"]
    if test is not None:
        differ = "differ beyond chance" if test["p"] <= 0.05 else "don't differ beyond chance"
        console.print(
            f"Profiles {differ}: likelihood ratio {test['statistic']:,.0f}, and "
            f"{test['usual']:,.0f} when a cluster's records are dealt anew, {test['draws']} times; "
            f"p = {test['p']:.3g}, {test['a_record']:.3f} nats a record",
            markup=False,
        )
    for note in strata["notes"]:
        console.print(f"note: {note}", markup=False)


def show_rules(summary: dict[str, Any]) -> None:
    """Print the rules of all clusters."""
    console = Console(highlight=False)
    if not summary["clusters"]:
        console.print("This run has no rules; fit it again with this version.", markup=False)
    for one in summary["clusters"]:
        console.print(f"{one['cluster']}  {one['name']}", markup=False, style="bold")
        show_rule(one)
        _show_doubt(one.get("in_doubt"))
    if summary["clusters"]:
        console.print(
            f"Review by hand who is less than {summary['review_below']:.0%} probable in a cluster.",
            markup=False,
        )


def _show_doubt(one: dict[str, Any] | None) -> None:
    """Print how many records of a cluster are in doubt, and with which others most."""
    if one is None or one["records"] == 0:
        return
    number = "few" if one["records"] is None else f"{one['records']:,.0f}"
    others = [f"cluster {other['cluster']} ({other['records']:,.0f})" for other in one["with"][:2]]
    between = f", mostly with {' and '.join(others)}" if others else ""
    text = f"   in doubt: {number} records{between}"
    Console(highlight=False).print(text, markup=False)


def show_rule(one: dict[str, Any] | None) -> None:
    """Print the rules of one cluster, and how they do."""
    if one is None:
        return
    console = Console(highlight=False)
    if not one["conditions"]:
        console.print("   no rule: too few records, or nothing tells them apart", markup=False)
        return
    for place, condition in enumerate(one["conditions"], 1):
        then = "yes" if condition["member"] else "no"
        text = f"   {place}. {condition['says']} ({condition['code']}): {then}"
        console.print(text, markup=False)
    console.print(f"   otherwise: {'yes' if one['otherwise'] else 'no'}", markup=False)
    missed = None if one["found"] is None else 1 - one["found"]
    console.print(
        f"   right {_percent(one['right'])}% of the time, misses {_percent(missed)}% of the "
        f"cluster; {_percent(one['review'])}% to review",
        markup=False,
    )


def show_drift(drift: dict[str, Any]) -> None:
    """Print what changed since a model was fitted."""
    console = Console(highlight=False)
    table = _table("", "% then", "% now")
    for one in drift["clusters"]:
        table.add_row(str(one["cluster"]), _percent(one["then"]), _percent(one["now"]))
    console.print(table)
    for verb, sign in (("more", 1), ("less", -1)):
        codes = [one for one in drift["codes"] if sign * (one["now"] - one["then"]) > 0]
        if codes:
            listed = ", ".join(
                f"{one['code']} ({_percent(one['then'])} → {_percent(one['now'])}%)"
                for one in codes
            )
            console.print(f"Became {verb} common: {listed}", markup=False)
    console.print(drift["sentence"], markup=False)


def _table(*columns: str) -> Table:
    table = Table(box=box.SIMPLE_HEAD, padding=(0, 2, 0, 0))
    for place, title in enumerate(columns):
        table.add_column(title, justify="left" if place == 0 else "right")
    return table


def _percent(share: float | None, digits: int = 0) -> str:
    return "few" if share is None else f"{100 * share:.{digits}f}"
