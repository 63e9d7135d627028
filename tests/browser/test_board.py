"""As a director would: who uses most, who dies, how groups differ by place and time."""

import csv
import json
import re

import numpy as np
import pyarrow as pa
import pytest
from playwright.sync_api import expect

from comorb.records.datasets import region
from comorb.records.export import export
from tests.browser.conftest import ROOT

SIZES = ((1440, 900), (1024, 768), (390, 844))


@pytest.fixture(scope="module")
def stays(tmp_path_factory):
    """Stays with days in bed, deaths, money, hospitals, patients and days of admission."""
    table = pa.Table.from_batches(list(region(3000))).drop_columns(["true_cluster"])
    rng = np.random.default_rng(3)
    days = np.datetime64("2022-01-10") + rng.integers(0, 700, 3000)
    sites = rng.choice(["North", "South", "East"], 3000, p=[0.5, 0.3, 0.2])
    table = table.append_column("admission_date", pa.array(days.astype("datetime64[D]")))
    table = table.append_column("hospital", pa.array(sites))
    table = table.append_column("patient_id", pa.array([f"p{row % 2100}" for row in range(3000)]))
    table = table.append_column("total_cost", pa.array(rng.gamma(2, 900, 3000).round(2)))
    path = tmp_path_factory.mktemp("stays") / "stays.csv"
    export(table.to_batches(), path)
    return path


@pytest.fixture(scope="module")
def made(chromium, server, local, stays) -> str:
    context = chromium.new_context()
    context.add_cookies(local)
    page = context.new_page()
    page.set_default_timeout(120_000)
    page.goto(server.base)
    page.set_input_files("#file", stays)
    page.wait_for_url("**/data/*")
    page.goto(f"{page.url.partition('?')[0]}?k=4")
    page.get_by_role("button", name="Find the clusters").click()
    page.wait_for_url("**/runs/*")
    page.wait_for_selector(".board")
    path = f"{server.base}/api/v1/runs/{page.url.rpartition('/')[2]}/slices"
    assert page.request.get(path, params={"by": "site"}, timeout=300_000).ok
    context.close()
    return page.url


def numbers(page, column: int) -> list[float]:
    cells = page.locator(f".board tbody td:nth-child({column})").all_inner_texts()
    return [float(re.sub(r"[^\d.]", "", text.split("\n")[0])) for text in cells]


def test_the_board_is_the_first_view_sorted_by_any_column(page, made, picture):
    page.goto(made)
    page.wait_for_selector(".board")
    assert page.locator("main > section").first.get_attribute("id") == "burden"
    expect(page.locator(".findings")).to_contain_text("uses more bed-days than its size suggests")
    expect(page.locator(".findings")).to_contain_text("of the visits")
    heads = page.locator(".board thead button").all_inner_texts()
    assert heads[:3] == ["Cluster", "Visits", "Patients"]
    assert {"Bed-days", "Cost", "Died", "Readmitted", "Mean age"} <= set(heads)
    for name in ("Bed-days", "Died", "Mean age"):
        page.locator(".board thead").get_by_role("button", name=name, exact=True).click()
        shown = numbers(page, heads.index(name) + 1)
        assert shown == sorted(shown, reverse=True)
    assert "board=age" in page.url
    page.locator("#burden select").first.select_option("cost")
    expect(page.locator(".board thead")).to_contain_text("% of visits / % of cost")


def test_outcomes_are_found_and_starred_for_all_who_see_the_run(page, server, made):
    page.goto(made)
    shown = page.locator("#outcomes .outcome:visible h3")
    expect(shown.first).to_contain_text("Died")
    page.get_by_label("Find an outcome").fill("sex")
    expect(shown).to_have_count(1)
    page.get_by_role("button", name="Star: Sex").click()
    expect(page.get_by_role("button", name="Star: Sex")).to_have_attribute("aria-pressed", "true")
    page.reload()
    expect(shown).to_have_text(["★Sex"])
    page.locator("#outcomes").get_by_role("button", name="Show all").click()
    assert shown.count() > 4
    row = page.request.get(f"{server.base}/api/v1/runs/{made.rpartition('/')[2]}").json()
    assert row["starred"] == ["sex"]


@pytest.mark.parametrize(("width", "height"), SIZES)
def test_shares_by_place_age_and_quarter(
    new_page, server, local, made, picture, axe, width, height
):
    page = new_page(server.base, width=width, height=height)
    page.context.add_cookies(local)
    page.goto(made)
    page.wait_for_selector(".board")
    found = {}

    def look(name: str, part: str | None = None) -> None:
        """Keep a picture, and have it looked at: it fits, and axe finds nothing in what is new."""
        page.keyboard.press("Escape")  # nothing is lit up, and so nothing dimmed
        if width == 1440:
            picture(page, name)
        else:
            page.screenshot(path=ROOT / "results" / "browser" / f"{name}-{width}.png")
        assert page.evaluate("document.documentElement.scrollWidth") <= width, name
        page.evaluate(axe)
        told = page.evaluate("violations", part)
        for each in told["violations"]:
            found[f"{name} {each['id']}"] = [n["html"][:120] for n in each["nodes"][:3]]

    look("board")
    split = page.locator("#slices select")
    split.focus()
    page.keyboard.press("Tab")
    for by, first in (("site", "East"), ("age", "–"), ("quarter", "2022 Q1")):
        split.select_option(by)
        expect(page.locator(".stacks tbody tr").first).to_contain_text(first, timeout=120_000)
        assert f"split={by}" in page.url
    expect(page.locator(".trend.whole .line")).to_have_count(4)
    page.locator("#slices").evaluate("part => part.scrollIntoView()")
    look("quarters", "#slices")
    split.select_option("site")
    page.get_by_label("as if all had the same").check()
    expect(page.locator("#slices .figure .range").first).to_be_attached()
    assert "mix=same" in page.url
    east = page.locator(".stacks").get_by_role("button", name="East")
    east.focus()
    page.keyboard.press("Enter")
    expect(page.locator(".only")).to_contain_text("Hospital: East", timeout=120_000)
    assert "slice=site%3AEast" in page.url
    look("slice", "#burden")
    page.get_by_role("button", name="Show all records").click()
    expect(page.locator(".only")).to_have_count(0)
    page.wait_for_selector(".board")
    assert not found, json.dumps(found, indent=1)


def test_a_slice_is_counted_as_the_file_has_it(page, server, made, stays):
    with stays.open(newline="") as file:
        east = [row for row in csv.DictReader(file) if row["hospital"] == "East"]
    page.goto(f"{made}#slice=site%3AEast")
    expect(page.locator(".only")).to_be_visible()
    told = page.request.get(
        f"{server.base}/api/v1/runs/{made.rpartition('/')[2]}/slices/profile",
        params={"by": "site", "label": "East"},
    ).json()
    codes = [
        sum(bool(value) for name, value in row.items() if name.startswith("dx")) for row in east
    ]
    assert told["source"]["records"] == sum(n >= 3 for n in codes)
    days = sum(int(row["length_of_stay"]) for row, n in zip(east, codes, strict=True) if n >= 3)
    assert told["burden"]["totals"][told["burden"]["columns"].index("los")][-1] == days


def test_two_runs_are_matched_with_a_number_and_a_word(page, server, made):
    page.goto(made)
    page.wait_for_selector(".board")
    page.get_by_role("button", name="One cluster more").click()
    page.wait_for_selector(".board tbody tr:nth-child(5)")
    other = page.url.rpartition("/")[2].partition("#")[0]
    page.goto(f"{server.base}/compare/{made.rpartition('/')[2]}/{other}")
    rows = page.locator(".matches tbody tr")
    expect(rows).to_have_count(5)
    expect(rows.filter(has_text="no match")).to_have_count(1)
    assert re.search(r"(very good|good|fair|poor) 0\.\d\d", rows.first.inner_text())
    expect(page.locator(".matches thead")).to_contain_text("Died")
    expect(page.locator(".matches tfoot")).to_contain_text("→")
