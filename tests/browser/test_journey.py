"""As a person would: from a file to named, compared and exported clusters."""

import csv
import json
import re

import pytest
from playwright.sync_api import expect


def first_run(page, server, records, picture=None):
    """Upload, choose the heart-failure patients, and find five clusters."""
    page.goto(server.base)
    page.set_input_files("#file", records)
    page.wait_for_url("**/data/*")
    expect(page.locator(".understood")).to_contain_text("ICD-9-CM")
    expect(page.locator(".understood .facts")).to_contain_text("4,000 records")
    search = page.get_by_role("combobox", name="With any of these")
    search.fill("heart fail")
    expect(page.locator("[role=option]").first).to_contain_text("428")
    if picture:
        picture(page, "codes")
    search.press("Enter")
    expect(page.locator(".code-chip")).to_contain_text("Heart failure")
    page.get_by_label("Choose:").check()
    expect(page.locator(".go .size")).to_contain_text("of 4,000 records")
    assert "having=428" in page.url
    if picture:
        picture(page, "cohort")
    page.get_by_role("button", name="Find the clusters").click()
    page.wait_for_url("**/runs/*")
    page.wait_for_selector(".card")


def test_the_journey(page, server, records, picture, tmp_path):
    page.goto(server.base)
    page.wait_for_selector(".drop")
    picture(page, "home")
    first_run(page, server, records, picture)
    first = page.url
    expect(page.locator(".card")).to_have_count(5)
    for part in ("frequency", "relevance", "heatmap", "outcomes", "why"):
        expect(page.locator(f"#{part}")).to_be_visible()
    expect(page.locator(".rules")).to_contain_text("with Heart failure (428)")
    expect(page.locator(".card .trust").first).to_contain_text("Stability")
    picture(page, "clusters")
    page.locator("#frequency").scroll_into_view_if_needed()
    picture(page, "frequency")
    page.locator("#heatmap").scroll_into_view_if_needed()
    picture(page, "heatmap")

    before = page.inner_text("#relevance .columns")
    page.locator("#lambda").fill("0")
    assert page.inner_text("#relevance .columns") != before
    assert "lambda=0" in page.url
    page.locator("#relevance").scroll_into_view_if_needed()
    picture(page, "relevance")

    row = page.locator("#frequency tbody tr").nth(1)
    gone = row.locator("th").inner_text().replace("×", "").strip()
    row.hover()
    row.get_by_role("button").click()
    expect(page.locator("#notice")).to_contain_text(f"{gone} was left out")
    expect(page.locator(".left .code-chip")).to_contain_text(gone)
    expect(page.locator("#lambda")).to_have_value("0")
    second = page.url
    picture(page, "left-out")
    page.get_by_role("link", name="Undo").click()
    page.wait_for_url(re.compile(re.escape(first)))
    page.wait_for_selector(".card")

    page.locator(".card").nth(2).get_by_role("button", name="Look inside").click()
    page.locator("dialog .primary").click()
    expect(page.locator(".bar")).to_contain_text("All›Cluster 3".replace("›", ""))
    page.wait_for_selector(".card")
    expect(page.locator(".card")).to_have_count(3)
    picture(page, "inside")
    page.locator(".card").nth(1).get_by_role("button", name="Look inside").click()
    page.locator("dialog select").select_option("2")
    page.locator("dialog .primary").click()
    expect(page.locator(".bar")).to_contain_text("Cluster 3b")
    page.wait_for_selector(".card")
    page.get_by_role("link", name="All", exact=True).click()
    page.wait_for_selector(".card")
    assert page.url.split("#")[0] == first.split("#")[0]

    page.locator(".card").first.get_by_role("button", name="Name").click()
    page.locator("dialog input").fill("My patients")
    page.locator("dialog .primary").click()
    expect(page.locator(".card h3").first).to_contain_text("My patients")
    page.get_by_role("button", name="One cluster more").click()
    page.wait_for_selector(".card:nth-child(6)")
    expect(page.locator(".card h3").first).to_contain_text("My patients")
    page.goto(first)
    page.wait_for_selector(".card")

    ids = [re.search(r"/runs/(\w+)", url)[1] for url in (first, second)]
    page.get_by_label("Compare with").select_option(ids[1])
    page.wait_for_selector("#flows")
    expect(page.locator("main")).to_contain_text("Agreement")
    expect(page.locator("#differences")).to_be_visible()
    picture(page, "compare")

    page.goto(first)
    page.wait_for_selector(".card")
    page.locator("#why-codes").fill("428.0, 585.6 250.00")
    page.get_by_role("button", name="Ask", exact=True).click()
    expect(page.locator("#why")).to_contain_text("such a patient belongs to cluster")
    assert "585" not in page.url
    page.locator("#why").scroll_into_view_if_needed()
    picture(page, "why")

    page.get_by_role("button", name="Download").click()
    picture(page, "download")
    for name in ("assignments.csv", "report.html", "frequency.svg", "model.comorb"):
        with page.expect_download() as begun:
            page.get_by_role("link", name=name).click()
        begun.value.save_as(tmp_path / name)
        assert (tmp_path / name).stat().st_size > 1000
    rows = list(csv.DictReader((tmp_path / "assignments.csv").read_text().splitlines()))
    assert "My patients" in {each["name"] for each in rows}

    page.keyboard.press("Escape")
    page.locator("#why-record").fill(rows[0]["id"])
    page.get_by_role("button", name="Look", exact=True).click()
    expect(page.locator("table.why")).to_contain_text("Heart failure")
    page.get_by_label("Cluster to move it to").select_option(str(int(rows[0]["cluster"]) % 5 + 1))
    page.get_by_role("button", name="Move", exact=True).click()
    expect(page.locator(".rules")).to_contain_text("records moved by hand: 1")
    assert rows[0]["id"] not in page.url.partition("/runs/")[2].partition("#")[2]


def test_two_clusters_are_merged_and_a_run_is_renamed_copied_and_deleted(page, server, records):
    first_run(page, server, records)
    colours = [
        page.locator(".card").nth(j).evaluate("e => getComputedStyle(e).borderTopColor")
        for j in range(5)
    ]
    page.locator(".card").nth(0).get_by_role("button", name="Merge").click()
    page.locator("dialog select").select_option("3")
    page.locator("dialog .primary").click()
    expect(page.locator(".rules")).to_contain_text("clusters 1 and 3 merged by hand")
    expect(page.locator(".card")).to_have_count(4)
    kept = [
        page.locator(".card").nth(j).evaluate("e => getComputedStyle(e).borderTopColor")
        for j in range(4)
    ]
    assert kept == [colours[0], colours[1], colours[3], colours[4]]
    expect(page.locator(".card .chip")).to_have_text(["1", "2", "4", "5"])
    page.get_by_role("button", name="Rename").click()
    page.locator("dialog input").fill("Merged")
    page.locator("dialog .primary").click()
    expect(page.locator("h1")).to_have_text("Merged")
    page.get_by_role("button", name="Duplicate").click()
    expect(page.locator("h1")).to_have_text("Merged (2)")
    page.get_by_role("button", name="Delete").click()
    page.wait_for_url(f"{server.base}/")
    expect(page.locator(".sources").last).to_contain_text("Merged")
    expect(page.locator(".sources").last).not_to_contain_text("Merged (2)")


def test_a_run_is_cancelled(page, server):
    page.goto(f"{server.base}/data/heart-failure")
    expect(page.locator(".go .size")).to_contain_text("23,154")
    page.get_by_role("button", name="Find the clusters").click()
    expect(page.get_by_role("status").nth(1)).to_contain_text("Finding the clusters")
    page.get_by_role("button", name="Cancel").click()
    expect(page.locator("main")).to_contain_text("Cancelled")
    expect(page.get_by_role("button", name="Run again")).to_be_visible()


@pytest.mark.parametrize("size", [(1440, 900), (1024, 768)])
def test_nothing_is_wider_than_the_page(new_page, server, local, records, size):
    page = new_page(server.base, width=size[0], height=size[1])
    page.context.add_cookies(local)
    first_run(page, server, records)
    for path in ("", "/data/heart-failure", page.url.removeprefix(server.base)):
        page.goto(server.base + path)
        page.wait_for_selector("h1")
        assert page.evaluate("document.documentElement.scrollWidth") <= size[0]


def test_everything_is_reached_by_keyboard(page, server, records, picture):
    first_run(page, server, records)
    page.keyboard.press("?")
    expect(page.locator("dialog")).to_contain_text("Show the keys")
    picture(page, "keys")
    page.keyboard.press("Escape")
    expect(page.locator("dialog[open]")).to_have_count(0)
    page.keyboard.press("f")
    expect(page.locator("#frequency h2")).to_be_focused()
    page.keyboard.press("3")
    expect(page.locator(".card").nth(2)).to_be_focused()
    page.keyboard.press("Tab")
    expect(page.locator(".card").nth(2).get_by_role("button").first).to_be_focused()
    page.keyboard.press("h")
    page.wait_for_url(f"{server.base}/")


@pytest.mark.parametrize(
    ("language", "words"), [("es", "Explorar una población"), ("ca", "Explora una població")]
)
def test_other_languages(page, server, language, words):
    page.goto(server.base)
    page.get_by_label("Language").select_option(language)
    expect(page.locator("h1")).to_have_text(words)
    page.goto(f"{server.base}/data/heart-failure")
    expect(page.locator(".go .size strong")).to_have_text("23.154")


def test_axe_finds_nothing(page, server, records, axe):
    first_run(page, server, records)
    run = page.url
    found = {}
    for path in (run, server.base, f"{server.base}/data/heart-failure", f"{server.base}/docs"):
        page.goto(path)
        page.wait_for_selector("h1")
        page.wait_for_load_state("networkidle") if path != run else page.wait_for_selector("#why")
        page.evaluate(axe)
        told = page.evaluate("axe.run()")
        found |= {
            f"{path} {each['id']}": [n["html"][:120] for n in each["nodes"][:3]]
            for each in told["violations"]
        }
    assert not found, json.dumps(found, indent=1)
