"""What commands print: tables for people, JSON for scripts, progress on standard error."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, TypeVar

import typer
from rich import box
from rich.console import Console
from rich.progress import BarColumn, Progress, ProgressColumn, TextColumn, TimeElapsedColumn, track
from rich.table import Table
from rich.text import Text

from comorb.cli.summaries import profile_summary
from comorb.profiles.burden import MAIN_COLUMNS
from comorb.remote import place_of
from comorb.storage import check_file
from comorb.views.charts import save

if TYPE_CHECKING:
    from pathlib import Path

    from matplotlib.axes import Axes

    from comorb.profiles.profile import Profile
    from comorb.runs.progress import Reporter


def _say(*parts: str | Table, width: int | None = None) -> None:
    """Print texts and tables as they are."""
    for part in parts:
        Console(highlight=False, width=width).print(part, markup=False)


def _table(*texts: str, numbers: Iterable[str] = (), gap: int = 1) -> Table:
    """Return an empty table of columns of texts, then of numbers."""
    padding = (0, gap, 0, 0) if gap > 1 else (0, 1)
    table = Table(*texts, box=box.SIMPLE_HEAD, padding=padding)
    for title in numbers:
        table.add_column(title, justify="right")
    return table


def _count(number: float | None) -> str:
    return "few" if number is None else f"{number:,.0f}"


def _share(value: float | None, digits: int = 0) -> str:
    return "few" if value is None else f"{value:.{digits}%}"


def _percent(share: float | None, digits: int = 0) -> str:
    return "few" if share is None else f"{100 * share:.{digits}f}"


def counted(number: int | None, noun: str) -> str:
    """Return a number with its noun: '1 record', '2,000 records', 'few records'.

    >>> counted(2000, "record")
    '2,000 records'
    """
    return f"{_count(number)} {noun}" + "s" * (number != 1)


def show_burden(burden: dict[str, Any] | None) -> None:
    """Print what the records of each cluster use, where that is known."""
    if burden is None or not (burden["all"]["totals"] or burden["all"]["rates"]):
        return
    whole = burden["all"]
    table = _table("", numbers=["% of records"], gap=2)
    if whole["visits_a_patient"] is not None:
        table.add_column("visits a patient", justify="right")
    shown = [name for name in whole["totals"] if name in MAIN_COLUMNS] or [*whole["totals"]][:3]
    titles = [f"% of {MAIN_COLUMNS.get(name, name)} (mean)" for name in shown]
    for title in (*titles, *(f"% {name} (records)" for name in whole["rates"])):
        table.add_column(title, justify="right", overflow="fold")
    for one in (*burden["clusters"], whole):
        cells = [str(one.get("cluster", "all")), _percent(one["share"])]
        if whole["visits_a_patient"] is not None:
            visits = one["visits_a_patient"]
            cells.append("few" if visits is None else f"{visits:.2f}")
        used = (one["totals"][name] for name in shown)
        cells += [_with(_percent(part["share"]), part["mean"], 1) for part in used]
        rates = one["rates"].values()
        cells += [_with(_percent(part["rate"], 1), part["records"], 0) for part in rates]
        table.add_row(*cells)
    _say("What they use", table)
    # The note on first visits is a note of the records, too.
    _say(*(f"note: {note}" for note in burden["notes"] if "first visit" not in note))


def _with(share: str, figure: float | None, digits: int) -> str:
    """Return a share with what it is of in brackets, as far as that is known."""
    if figure is None:
        return share
    return f"{share} ({figure:,.{0 if abs(figure) >= 1000 else digits}f})"


def show_sliced(summary: dict[str, Any]) -> None:
    """Print the shares of clusters within slices, and the models of slices."""
    for slices in summary["slices"]:
        show_slices(slices)
    for strata in summary["strata"]:
        _show_strata(strata)


def show_slices(slices: dict[str, Any]) -> None:
    """Print the shares of clusters within the slices by one column."""
    mix = " and ".join(slices["standardised_by"])
    title = f"By {slices['by']}: % of records in each cluster"
    _say(f"{title}; standardised to the {mix} of all in brackets" if mix else title)
    numbers = [str(test["cluster"]) for test in slices["tests"]]
    table = _table(slices["by"], numbers=["records", *numbers], gap=2)
    for one in slices["slices"]:
        cells = [
            _percent(part["share"]) + (f" ({_percent(part['standardised'])})" if mix else "")
            for part in one["clusters"]
        ]
        table.add_row(one["slice"], _count(one["records"]), *cells)
    table.add_row(slices["test"], "p", *map(_p, slices["tests"]))
    _say(table, *(f"note: {note}" for note in slices["notes"]))


def _p(test: dict[str, Any]) -> str:
    if test["p"] is None:
        return "–"
    sign = "" if test["z"] is None else "↑ " if test["z"] > 0 else "↓ "
    return f"{sign}< 0.001" if test["p"] < 0.001 else f"{sign}{test['p']:.3f}"


def _show_strata(strata: dict[str, Any]) -> None:
    for one in strata["strata"]:
        _say(f"A model of {one['slice']} alone ({_count(one['records'])} records)")
        for cluster in one["clusters"]:
            match = "no match" if cluster["cluster"] is None else f"cluster {cluster['cluster']}"
            _say(f"  {_percent(cluster['share'])}%  {match}  {', '.join(cluster['codes'])}")
    test = strata["same_profiles"]
    if test is not None:
        differ = "differ beyond chance" if test["p"] <= 0.05 else "don't differ beyond chance"
        _say(
            f"Profiles {differ}: likelihood ratio {test['statistic']:,.0f}, and "
            f"{test['usual']:,.0f} when a cluster's records are dealt anew, {test['draws']} times; "
            f"p = {test['p']:.3g}, {test['a_record']:.3f} nats a record"
        )
    _say(*(f"note: {note}" for note in strata["notes"]))


def show_rules(summary: dict[str, Any]) -> None:
    """Print the rules of all clusters."""
    if not summary["clusters"]:
        _say("This run has no rules; fit it again with this version.")
        return
    for one in summary["clusters"]:
        Console(highlight=False).print(Text(f"{one['cluster']}  {one['name']}", style="bold"))
        show_rule(one)
        doubt = one.get("in_doubt")
        if doubt is not None and doubt["records"] != 0:
            others = [f"cluster {o['cluster']} ({o['records']:,.0f})" for o in doubt["with"][:2]]
            between = f", mostly with {' and '.join(others)}" if others else ""
            _say(f"   in doubt: {_count(doubt['records'])} records{between}")
    _say(f"Review by hand who is less than {summary['review_below']:.0%} probable in a cluster.")


def show_rule(one: dict[str, Any] | None) -> None:
    """Print the rules of one cluster, and how often they are right."""
    if one is None:
        return
    if not one["conditions"]:
        _say("   no rule: too few records, or nothing tells them apart")
        return
    for place, condition in enumerate(one["conditions"], 1):
        then = "yes" if condition["member"] else "no"
        _say(f"   {place}. {condition['says']} ({condition['code']}): {then}")
    missed = None if one["found"] is None else 1 - one["found"]
    _say(
        f"   otherwise: {'yes' if one['otherwise'] else 'no'}",
        f"   right {_percent(one['right'])}% of the time, misses {_percent(missed)}% of the "
        f"cluster; {_percent(one['review'])}% to review",
    )


def show_drift(drift: dict[str, Any]) -> None:
    """Print what changed since a model was fitted."""
    table = _table("", numbers=["% then", "% now"], gap=2)
    for one in drift["clusters"]:
        table.add_row(str(one["cluster"]), _percent(one["then"]), _percent(one["now"]))
    _say(table)
    for verb, sign in (("more", 1), ("less", -1)):
        codes = [
            f"{one['code']} ({_percent(one['then'])} → {_percent(one['now'])}%)"
            for one in drift["codes"]
            if sign * (one["now"] - one["then"]) > 0
        ]
        if codes:
            _say(f"Became {verb} common: {', '.join(codes)}")
    _say(drift["sentence"])


Item = TypeVar("Item")


@contextmanager
def shown_progress(quiet: bool = False) -> Iterator[Reporter]:
    """Show what is being done and for how long, on a terminal, until the work is done."""
    with bars(quiet, BarColumn(pulse_style="cyan"), TimeElapsedColumn()) as shown:
        task = shown.add_task("", total=None)
        yield lambda progress: shown.update(task, description=progress.text)


def bars(quiet: bool, *columns: ProgressColumn) -> Progress:
    """Return bars with a text before each, which a terminal shows until the work is done."""
    console = Console(stderr=True)
    hidden = quiet or not console.is_terminal
    text = TextColumn("{task.description}")
    return Progress(text, *columns, console=console, transient=True, disable=hidden)


def tracked(items: Iterable[Item], text: str, total: int, quiet: bool) -> Iterable[Item]:
    """Pass items on, with a bar that shows how many of them are done, on a terminal."""
    console = Console(stderr=True)
    hidden = quiet or not console.is_terminal
    return track(items, text, total, console=console, transient=True, disable=hidden)


def show_notes(notes: Iterable[str]) -> None:
    """Print what a reader of the results should know, on standard error."""
    for note in notes:
        typer.echo(f"note: {note}", err=True)


def show_run(profile: Profile, directory: Path, as_json: bool, quiet: bool) -> None:
    """Print the clusters of a run that was just written to a folder."""
    place = place_of(directory)  # a path has lost a slash of an address
    show_notes(profile.source.notes)
    show(profile_summary(profile) | {"directory": str(place)}, show_profile, as_json, quiet)
    if not (as_json or quiet):
        from comorb.runs.folder import RunFolder

        typer.echo(f"\nReport: {place / RunFolder(directory).report.name}")


def show(
    summary: dict[str, Any],
    show_table: Callable[[dict[str, Any]], None],
    as_json: bool,
    quiet: bool = False,
    notes: bool = False,
) -> None:
    """Print a summary, as JSON for scripts or by ``show_table`` for people, after its notes."""
    if notes:
        show_notes(summary["notes"])
    if as_json:
        typer.echo(json.dumps(summary, indent=2, ensure_ascii=False, allow_nan=False))
    elif not quiet:
        show_table(summary)
        if summary.get("min_cell"):
            text = "Protected: counts have a small noise or are rounded, and few is less than "
            typer.echo(f"{text}{summary['min_cell']}.")


def save_chart(axes: Axes, path: Path, force: bool, quiet: bool = False) -> None:
    """Write a chart to a file, in the format that its name ends with."""
    check_file(path, (".png", ".svg", ".pdf"), force)
    save(axes, path)
    if not quiet:
        typer.echo(f"Chart: {path}", err=True)


def show_profile(summary: dict[str, Any]) -> None:
    """Print the clusters as a table for people."""
    codes, features = summary["codes"], len(summary.get("features", ()))
    columns = [counted(codes, "different code")] if codes or not features else []
    columns += [counted(features, "feature")] if features else []
    _say(
        f"{summary['title']}: {counted(summary['records'], 'record')} in "
        f"{counted(summary['k'], 'cluster')}, {' and '.join(columns)}"
    )
    _show_cohort_rules(summary)
    _say(f"Number of clusters: {summary['reason']}")
    table = _table(gap=2)
    table.add_column("", justify="right", style="bold")
    table.add_column("Cluster", ratio=1)
    table.add_column("Most relevant diagnoses", ratio=1)
    for cluster in summary["clusters"]:
        diagnoses = Table.grid(padding=(0, 1, 0, 0))
        diagnoses.add_column(justify="right")
        for one in cluster["diagnoses"]:
            diagnoses.add_row(_share(one["prevalence"]), Text(one["name"]))
        table.add_row(str(cluster["cluster"]), _described(cluster), diagnoses)
        table.add_section()
    _say(table)
    if summary["in_every_record"]:
        _say(f"In every record: {', '.join(summary['in_every_record'])}.")
    if summary["explained_by_length"] is not None:
        share = _share(summary["explained_by_length"])
        _say(f"The cluster of a record explains {share} of how many codes it has.")
    _show_influence(summary)
    if summary["often_together"]:
        pairs = "; ".join(
            f"{' + '.join(pair['names'])} ({pair['records']:,}, expected {pair['expected']:,.0f})"
            for pair in summary["often_together"][:3]
        )
        text = f"Often together beyond what the clusters explain: {pairs}. "
        typer.echo(text + "--drop-codes leaves a code out, --map unites two.")
    show_burden(summary["burden"])
    _say(*(finding["text"] for finding in summary["findings"]))
    stable = any(cluster["stability"] is not None for cluster in summary["clusters"])
    _say(
        "Before a diagnosis: how many of the cluster have it. Confidence: the mean probability "
        "that a record belongs where it was put, tempered where codes come in bundles."
        + " Stability: how much of the cluster comes back from parts of the records."
        * stable
    )


def _show_influence(summary: dict[str, Any]) -> None:
    """Print how far codes and features set the clusters apart, and what is missing of them."""
    if "influence" not in summary:
        return
    parts = ", ".join(f"{name} {_share(share)}" for name, share in summary["influence"].items())
    typer.echo(f"What sets the clusters apart: {parts}.")
    gaps = [one for one in summary["features"] if one["missing"] != 0]
    if gaps:
        missing = ", ".join(f"{one['name']} {_share(one['missing'], 1)}" for one in gaps)
        typer.echo(f"Missing: {missing}.")


def show_assigned(summary: dict[str, Any]) -> None:
    """Print how many records went to each cluster, and what the model doesn't know."""
    typer.echo(f"{counted(summary['records'], 'record')} assigned: {summary['file']}")
    _show_cohort_rules(summary)
    _show_sizes(summary, "confidence")
    unknown = summary["unknown"]
    if unknown:
        first = "; ".join(
            f"{one['code']} {one['name']} ({one['records']:,})" for one in unknown[:5]
        )
        typer.echo(f"Passed over, as the model doesn't know them: {first}")
        if len(unknown) > 5:
            typer.echo(f"and {counted(len(unknown) - 5, 'other code')} (--json lists them all)")
    show_drift(summary["drift"])


def _show_cohort_rules(summary: dict[str, Any]) -> None:
    for rule in summary["rules"]:
        gone = rule["before"] - rule["after"]
        typer.echo(f"{rule['after']:>12,}  {rule['rule']}" + (f" (−{gone:,})" if gone else ""))


def _show_sizes(summary: dict[str, Any], measure: str) -> None:
    """Print the size of each cluster, and a measure of it where it has one."""
    for one in summary["clusters"]:
        measured = "" if one[measure] is None else f", {measure} {one[measure]:.0%}"
        size = f"{counted(one['records'], 'record')}, {_share(one['share'], 1)}{measured}"
        typer.echo(f"  {one['cluster']} {one['name']}: {size}")


def show_cluster(summary: dict[str, Any]) -> None:
    """Print one cluster in detail: its diagnoses and what is known about its patients."""
    Console(highlight=False).print(f"Cluster {summary['cluster']}:", _described(summary))
    table = _table("Code", "Diagnosis", numbers=("In the cluster", "In all", "Likelier"))
    for one in summary["diagnoses"]:
        cells = [one["code"], one["title"], _share(one["prevalence"], 1), _share(one["overall"], 1)]
        table.add_row(*cells, f"{one['lift']:.1f} ×")
    _say(table)
    if summary["patients"]:
        table = _table("Patients", numbers=("In the cluster", "Records", "In all", "Corrected"))
        for one in summary["patients"]:
            records = _count(one["records"])
            if one["events"] is not None:
                records = f"{one['events']:,.0f} of {records}"
            corrected = "" if one["corrected"] is None else _figure(one, "corrected")
            figures = _figure(one, "cluster"), records, _figure(one, "all"), corrected
            table.add_row(one["what"], *figures)
        _say(table)
    show_rule(summary["rules"])


def _figure(one: dict[str, Any], where: str) -> str:
    value = one[where]
    if value is None or one["kind"] == "share":
        return _share(value, 1)
    return f"{value:,.1f}"


def show_comparison(summary: dict[str, Any]) -> None:
    """Print the matched clusters of two runs side by side."""
    for which, title in (("one", "First"), ("two", "Second")):
        run = summary[which]
        sizes = f"{counted(run['records'], 'record')}, {counted(run['k'], 'cluster')}"
        _say(f"{title} run: {run['title']}, {sizes}")
    if summary["same_records"]:
        _say(f"Agreement on the same records (adjusted Rand index): {summary['ari']:.2f}")
    table = _table(gap=2)
    for title, ratio in (("First run", 1), ("Second run", 1), ("Match", None)):
        table.add_column(title, ratio=ratio)
    table.add_column("What differs most", ratio=1)
    for pair in summary["pairs"]:
        changes = Table.grid(padding=(0, 1, 0, 0))
        for change in pair["differences"]:
            shares = _share(change["one"]), _share(change["two"])
            if shares[0] != shares[1]:
                changes.add_row(Text(f"{shares[0]:>3} → {shares[1]:>3}"), Text(change["name"]))
        for change in pair["outcomes"]:
            if change["apart"]:
                changes.add_row(Text(_both_figures(change)), Text(_outcome_name(change)))
        most = changes if changes.row_count else "hardly anything"
        match = f"{pair['match']}, {pair['likeness']:.2f}"
        table.add_row(_numbered(pair["one"]), _numbered(pair["two"]), match, most)
        table.add_section()
    for side in summary["only_one"]:
        table.add_row(_numbered(side), "no match", "", "")
    for side in summary["only_two"]:
        table.add_row("no match", _numbered(side), "", "")
    _say(table)
    apart = [one for one in summary["outcomes"] if one["apart"]]
    if apart:
        whole = _table("Over all records", numbers=("First run → second run",))
        for one in apart:
            whole.add_row(_outcome_name(one), _both_figures(one))
        _say(whole)


def _outcome_name(one: dict[str, Any]) -> str:
    name: str = one["outcome"]
    return name if one["value"] in ("mean", "yes") else f"{name}: {one['value']}"


def _both_figures(one: dict[str, Any]) -> str:
    if one["kind"] == "share":
        return f"{_share(one['one'], 1)} → {_share(one['two'], 1)}"
    return f"{one['one']:,.1f} → {one['two']:,.1f}"


def _numbered(side: dict[str, Any]) -> Text:
    return _described(side | {"name": f"{side['cluster']} {side['name']}"})


def _described(cluster: dict[str, Any]) -> Text:
    lines = [f"{counted(cluster['records'], 'record')}, {_share(cluster['share'], 1)}"]
    lines += [
        f"{measure} {_share(cluster[measure])}"
        for measure in ("confidence", "stability")
        if cluster.get(measure) is not None
    ]
    if cluster.get("mostly"):
        lines.append(f"mostly {cluster['mostly']}")
    return Text.assemble((cluster["name"], "bold"), "\n" + "\n".join(lines))


def show_choice(summary: dict[str, Any]) -> None:
    """Print what each number of clusters is worth, and the recommended one."""
    criteria = ("Evidence", "BIC", "ICL", "Held out", "Stable", "Reliable")
    table = _table(numbers=("k", *criteria, "Smallest"))
    for row in summary["rows"]:
        worth = [f"{row[key]:.3f}" for key in ("evidence", "bic", "icl", "held_out")]
        steady = [f"{row['stability']:.2f}", _share(row["in_reliable"])]
        cells = [str(row["k"]), *worth, *steady, _count(row["smallest"])]
        table.add_row(*cells, style="bold" if row["k"] == summary["best"] else "")
    _say(table, summary["reason"])
    if "lca" in summary:
        show_classes(summary)
    for split in summary["splits"]:
        if split["groups"] < summary["best"] or split["reliably"]:
            holds = "both come out again" if split["reliably"] else "not reliable"
            codes = round(split["breadth"])
            holds += f", held apart by {codes} {'code' if codes == 1 else 'codes'}"
            parts = f"{split['name']} → {' | '.join(split['into'])} ({holds})"
            _say(f"  {split['groups']} to {split['groups'] + 1}: {parts}")
    _say(
        "k: the number of clusters. Evidence and held-out likelihood: more is better. BIC and ICL: "
        "less is better. All per record. Stable: how far the clusters of parts agree. Reliable: "
        "the share of the records in clusters that come out again. Smallest: the records of the "
        "smallest cluster."
    )


def show_classes(summary: dict[str, Any]) -> None:
    """Print the table of latent classes, and the sentence for a paper."""
    whole, one_digit, three_digits = "{:,.0f}", "{:,.1f}", "{:.3f}"
    columns = {
        "k": ("k", whole),
        "log_likelihood": ("Log-likelihood", one_digit),
        "parameters": ("Par.", whole),
        "aic": ("AIC", one_digit),
        "bic": ("BIC", one_digit),
        "adjusted_bic": ("aBIC", one_digit),
        "caic": ("CAIC", one_digit),
        "entropy": ("Entropy", three_digits),
        "smallest_n": ("Smallest", whole),
        "lowest_avepp": ("AvePP", three_digits),
        "lowest_occ": ("OCC", one_digit),
        "blrt_p": ("BLRT p", three_digits),
    }
    sheet = summary["lca"]["fit"]
    shown = [name for name in columns if name in sheet]
    table = _table(numbers=[columns[name][0] for name in shown])
    for row in zip(*(sheet[name] for name in shown), strict=True):
        cells = [
            ("few" if name == "smallest_n" else "")
            if value is None
            else columns[name][1].format(value)
            for name, value in zip(shown, row, strict=True)
        ]
        table.add_row(*cells, style="bold" if row[0] == summary["best"] else "")
    _say(
        table,
        "Totals over all records, by plain maximum likelihood. Smallest: the records of the "
        "smallest class. AvePP and OCC: the lowest of any class.",
        summary["methods"],
        width=120,
    )


def show_stability(summary: dict[str, Any]) -> None:
    """Print how well the clusters come out again."""
    if summary["ari"] is not None:
        each = ", ".join(f"{value:.2f}" for value in summary["aris"])
        typer.echo(f"Agreement of the parts (adjusted Rand index): {summary['ari']:.2f} ({each})")
    _show_sizes(summary, "stability")
