"""As a person would: from a file to named, compared and exported clusters."""

import csv
import json
import re
from io import BytesIO

import pyarrow as pa
import pyarrow.csv as pa_csv
import pytest
from playwright.sync_api import expect

from comorb.records.datasets import region


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
    expect(page.locator(".go .size")).to_contain_text("2,539 of 4,000 records")
    assert "having=428" in page.url
    if picture:
        picture(page, "cohort")
    page.get_by_role("button", name="Find the clusters").click()
    page.wait_for_url("**/runs/*")
    page.wait_for_selector(".card")


@pytest.fixture(scope="module")
def made(chromium, server, local, records) -> str:
    """The address of a run on the heart-failure patients."""
    context = chromium.new_context()
    context.add_cookies(local)
    page = context.new_page()
    first_run(page, server, records)
    context.close()
    return page.url


def find(page, server, data: str) -> str:
    page.goto(f"{server.base}/data/{data}")
    page.get_by_role("button", name="Find the clusters").click()
    page.wait_for_url("**/runs/*")
    page.wait_for_selector(".card")
    return page.url.rpartition("/")[2]


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
    page.locator("#frequency").evaluate("part => part.scrollIntoView()")
    picture(page, "frequency")
    page.locator("#heatmap").evaluate("part => part.scrollIntoView()")
    picture(page, "heatmap")

    page.locator("#frequency tbody th").nth(1).hover()
    expect(page.locator(".tip tr")).to_have_count(6)
    page.locator(".card .size").nth(1).hover()
    expect(page.locator("#relevance .column").nth(0)).to_have_css("opacity", "0.35")
    expect(page.locator("#relevance .column").nth(1)).to_have_css("opacity", "1")

    before = page.inner_text("#relevance .columns")
    page.locator("#lambda").fill("0")
    assert page.inner_text("#relevance .columns") != before
    assert "lambda=0" in page.url
    page.locator("#relevance").evaluate("part => part.scrollIntoView()")
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
    before = page.url
    page.locator("#why-codes").fill("428.0, 585.6 250.00")
    page.get_by_role("button", name="Ask", exact=True).click()
    expect(page.locator("#why")).to_contain_text("belongs to cluster")
    assert page.url == before
    page.locator("#why").evaluate("part => part.scrollIntoView()")
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
    expect(page.locator(".rules")).to_contain_text("record moved by hand: 1")
    assert rows[0]["id"] not in page.url.partition("/runs/")[2].partition("#")[2]


def test_two_clusters_are_merged_and_a_run_is_renamed_copied_and_deleted(page, server, made):
    page.goto(made)
    chips = page.locator(".card .chip")
    expect(chips).to_have_text(["1", "2", "3", "4", "5"])
    before = [chip.evaluate("e => getComputedStyle(e).borderColor") for chip in chips.all()]
    page.locator(".card").nth(0).get_by_role("button", name="Merge").click()
    page.locator("dialog select").select_option("3")
    page.locator("dialog .primary").click()
    expect(page.locator(".rules")).to_contain_text("clusters 1 and 3 merged by hand")
    expect(chips).to_have_text(["1", "2", "4", "5"])
    after = [chip.evaluate("e => getComputedStyle(e).borderColor") for chip in chips.all()]
    assert after == [before[0], before[1], before[3], before[4]]
    page.get_by_role("button", name="Rename").click()
    page.locator("dialog input").fill("Merged")
    page.locator("dialog .primary").click()
    expect(page.locator("h1")).to_have_text("Merged")
    page.get_by_role("button", name="Duplicate").click()
    expect(page.locator("h1")).to_have_text("Merged (2)")
    page.get_by_role("button", name="Delete").click()
    page.wait_for_url(f"{server.base}/")
    expect(page.locator("[aria-labelledby=runs-title] .sources")).to_contain_text("Merged")
    expect(page.locator("[aria-labelledby=runs-title] .sources")).not_to_contain_text("Merged (2)")


def test_a_dropped_file_is_read_chosen_from_and_corrected(page, server, tmp_path):
    table = pa.Table.from_batches(list(region(600)))
    days = [f"2024-{1 + row % 12:02d}-15" for row in range(600)]
    people = [f"p{row // 2}" for row in range(600)]
    table = table.append_column("admitted", pa.array(days))
    csv_file = BytesIO()
    pa_csv.write_csv(table.append_column("person", pa.array(people)), csv_file)
    page.goto(server.base)
    page.wait_for_selector(".drop")
    dropped = page.evaluate_handle(
        """text => {
          const moved = new DataTransfer();
          moved.items.add(new File([text], "winter.csv"));
          return moved;
        }""",
        csv_file.getvalue().decode(),
    )
    page.dispatch_event(".drop", "dragover", {"dataTransfer": dropped})
    expect(page.locator(".drop")).to_have_class("drop over")
    page.dispatch_event(".drop", "drop", {"dataTransfer": dropped})
    expect(page.locator(".drop progress")).to_be_visible()
    page.wait_for_url("**/data/*")
    size = page.locator(".go .size")
    expect(size).to_contain_text("600 of 600 records")
    page.get_by_label("Role of admitted").select_option("date")
    page.get_by_label("Role of person").select_option("patient")
    page.locator("#fix-unit").select_option("patient")
    page.get_by_role("button", name="Read again").click()
    expect(size).to_contain_text("300 of 300 records")
    page.get_by_label("Dates: from").fill("2024-07-01")
    page.get_by_label("Age: from").fill("60")
    page.get_by_label("female").check()
    expect(size).not_to_contain_text("300 of 300")
    search = page.get_by_role("combobox", name="With any of these")
    search.fill("428")
    page.locator("[role=option]", has_text="Heart failure").click()
    page.get_by_text("More choices").click()
    page.locator("#level").select_option("full")
    expect(page.locator(".code-chip")).to_contain_text("428 Heart failure")
    page.locator("#level").select_option("group")
    expect(page.locator("#notice")).to_contain_text("Heart failure: not known")
    expect(page.locator(".code-chip")).to_have_count(0)
    assert "date_from=2024-07-01&" in page.url
    page.reload()
    expect(page.get_by_label("Age: from")).to_have_value("60")
    expect(page.locator("#level")).to_have_value("group")


def test_a_run_is_cancelled_and_its_cohort_changed(page, server):
    page.goto(f"{server.base}/data/heart-failure?without=250")
    expect(page.locator(".go .size")).to_contain_text("of 23,154")
    page.get_by_role("button", name="Find the clusters").click()
    expect(page.get_by_role("status").nth(1)).to_contain_text("Finding the clusters")
    page.get_by_role("button", name="Cancel").click()
    expect(page.locator("main")).to_contain_text("Cancelled")
    expect(page.get_by_role("button", name="Run again")).to_be_visible()
    page.get_by_role("link", name="Change the cohort").click()
    expect(page.locator(".code-chip")).to_contain_text("250 Diabetes")


def test_no_language_leaves_english_or_is_wider_than_the_page(page, server, made, picture):
    other = find(page, server, "tertiary?k=3")
    compared = f"{server.base}/compare/{made.rpartition('/')[2].partition('?')[0]}/{other}"
    spoken = {
        "en": ("Explore a population", "5, as asked", "having 428", "different records"),
        "es": ("Explorar una población", "5, como se pidió", "con 428", "registros distintos"),
        "ca": ("Explora una població", "5, com s'ha demanat", "amb 428", "registres diferents"),
    }
    for language, (title, reason, rule, apart) in spoken.items():
        page.goto(server.base)
        page.locator("#language").select_option(language)
        expect(page.locator("h1")).to_have_text(title)
        for path, seen, texts in (
            (server.base, "main.home", [title]),
            (f"{server.base}/data/heart-failure", ".go .size strong", [""]),
            (made, "#why", [reason, rule]),
            (compared, "#differences", [apart]),
        ):
            page.goto(path)
            page.wait_for_selector(seen)
            for text in texts:
                expect(page.locator("#page")).to_contain_text(text)
            for width, height in ((1440, 900), (1024, 768)):
                page.set_viewport_size({"width": width, "height": height})
                assert page.evaluate("document.documentElement.scrollWidth") <= width, path
            if path == made and language == "es":
                picture(page, "tablet")


def test_everything_is_reached_by_keyboard(page, server, made, picture):
    page.goto(made)
    page.wait_for_selector("#why")
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


def test_axe_finds_nothing(new_page, server, local, made, axe):
    page = new_page(server.base, expect="404 (Not Found)")
    page.context.add_cookies(local)
    other = find(page, server, "tertiary?k=4")
    run = made.rpartition("/")[2].partition("?")[0]
    seen = {
        made: "#why",
        server.base: "main.home",
        f"{server.base}/data/heart-failure": ".go .size strong",
        f"{server.base}/compare/{run}/{other}": "#differences",
        f"{server.base}/docs": "table",
        f"{server.base}/login": "form",
        f"{server.base}/nowhere": "h1",
    }
    found = {}
    for path, part in seen.items():
        page.goto(path)
        page.wait_for_selector(part)
        page.evaluate(axe)
        told = page.evaluate("violations()")
        found |= {
            f"{path} {each['id']}": [n["html"][:120] for n in each["nodes"][:3]]
            for each in told["violations"]
        }
    assert not found, json.dumps(found, indent=1)
