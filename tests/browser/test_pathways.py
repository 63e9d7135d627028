"""From a cohort by words and patterns to rules, notes, a new file and an answer."""

import csv
import json

import pytest
from playwright.sync_api import expect

from comorb.records.datasets import region
from comorb.records.export import export
from tests.browser.test_journey import first_run

SIZES = {"desktop": (1440, 900), "tablet": (1024, 768), "phone": (390, 844)}


@pytest.fixture(scope="module")
def run(chromium, server, local, records) -> str:
    context = chromium.new_context()
    context.set_default_timeout(120_000)
    context.add_cookies(local)
    page = context.new_page()
    first_run(page, server, records)
    context.close()
    return page.url


@pytest.fixture(scope="module")
def later(tmp_path_factory):
    path = tmp_path_factory.mktemp("later") / "later.csv"
    export(region(1200), path)
    return path


def chosen(page, field: str, text: str):
    """Type in a code field and wait for its answer."""
    box = page.get_by_role("combobox", name=field)
    box.fill(text)
    expect(page.locator("[role=option]:not([aria-disabled])").first).to_be_visible()
    return box


def test_codes_by_words_patterns_and_lists_are_kept_and_used_again(page, server, records, tmp_path):
    page.goto(server.base)
    page.set_input_files("#file", records)
    page.wait_for_url("**/data/*")
    for word in ("CHF", "insuficiencia cardíaca"):
        chosen(page, "With any of these", word)
        expect(page.locator("[role=option]").first).to_contain_text("428")
    box = chosen(page, "With any of these", "401-405, 428, QQ*")
    expect(page.locator("[role=option]").first).to_contain_text("3 entries")
    box.press("Enter")
    expect(page.locator(".code-chip")).to_have_count(2)
    expect(page.locator(".code-chip").first).to_contain_text("codes")
    expect(page.locator(".wrong-line:visible")).to_contain_text("QQ*")
    assert "having=401-405" in page.url
    page.get_by_role("button", name="Save as a code set").click()
    page.get_by_label("Name").fill("Pressure and heart")
    page.get_by_role("button", name="Save", exact=True).click()
    expect(page.locator("#notice")).to_contain_text("Pressure and heart was saved")
    page.get_by_role("button", name="Save this cohort").click()
    page.get_by_label("Name").fill("My cohort")
    page.get_by_role("button", name="Save", exact=True).click()
    expect(page.locator("#notice")).to_contain_text("My cohort was saved")
    page.get_by_role("button", name="Saved cohorts and code sets").click()
    with page.expect_download() as download:
        page.get_by_role("link", name="Export My cohort as a file").click()
    file = tmp_path / "cohort.json"
    download.value.save_as(file)
    assert json.loads(file.read_text())["rules"]["having"] == ["401-405", "428"]
    page.set_input_files("#saved-file", file)
    expect(page.locator("dialog .sources li")).to_have_count(3)
    page.keyboard.press("Escape")
    page.goto(f"{server.base}/data/heart-failure")
    page.get_by_label("Use a saved cohort").select_option("My cohort")
    page.wait_for_url("**having=401-405*")
    expect(page.locator(".code-chip")).to_have_count(2)
    box = chosen(page, "With any of these", "Pressure and")
    expect(page.locator("[role=option]").first).to_contain_text("2 entries")


def test_words_that_were_typed_and_not_chosen_are_not_passed_over(page, server, records):
    page.goto(server.base)
    page.set_input_files("#file", records)
    page.wait_for_url("**/data/*")
    page.get_by_label("Choose:").check()
    box = page.get_by_role("combobox", name="With any of these")
    find = page.get_by_role("button", name="Find the clusters")
    box.fill("disease")
    find.press("Enter")  # the list of diagnoses may lie over the button
    expect(page.locator(".wrong-line:visible")).to_contain_text("may be several diagnoses")
    expect(box).to_be_focused()
    box.fill("heart failure")
    page.keyboard.press("Tab")
    expect(page.locator(".code-chip")).to_contain_text("Heart failure")
    expect(page.locator(".wrong-line:visible")).to_have_count(0)
    expect(page.locator(".go .size")).to_contain_text("2,539 of 4,000 records")
    box.fill("diabetes")
    find.press("Enter")
    page.wait_for_url("**/runs/*")
    expect(page.locator(".tools .rules")).to_contain_text("Diabetes (250)")


@pytest.mark.parametrize("size", SIZES)
def test_rules_notes_new_files_and_answers(
    new_page, server, local, run, later, picture, axe, size, tmp_path
):
    width, height = SIZES[size]
    page = new_page(server.base, width=width, height=height)
    page.context.add_cookies(local)
    page.goto(run)
    rules = page.locator("#rules")
    expect(rules.locator(".rule-list")).to_have_count(5)
    expect(rules.locator(".grey").first).to_contain_text("In doubt")
    page.keyboard.press("u")
    picture(page, f"pathways-rules-{size}")
    card = page.locator(".card").first
    card.get_by_role("button", name="Note on").click()
    page.get_by_label("Pathway").fill("Heart failure clinic")
    page.get_by_label("Owner").fill("Dr. Rivera")
    page.locator("dialog textarea").fill("Call within a week.")
    with page.expect_event("load"):
        page.get_by_role("button", name="Save", exact=True).click()
    expect(page.locator(".noted").first).to_contain_text("Heart failure clinic")
    page.locator("#cards").evaluate("part => part.scrollIntoView()")
    picture(page, f"pathways-cards-{size}")
    expect(page.locator("#arrive-data option")).not_to_have_count(0)
    page.keyboard.press("n")
    page.set_input_files("#file", later)
    answer = page.locator("#arrive .answer")
    expect(answer).to_contain_text("records of later were put into the clusters")
    expect(answer).to_contain_text("describe these records")
    page.locator("#arrive").evaluate("part => part.scrollIntoView()")
    picture(page, f"pathways-arrivals-{size}")
    with page.expect_download() as download:
        page.get_by_role("link", name="Worklist").click()
    download.value.save_as(tmp_path / "worklist.csv")
    rows = list(csv.DictReader((tmp_path / "worklist.csv").read_text().splitlines()))
    assert {"id", "cluster", "probability", "doubtful"} <= set(rows[0])
    page.locator("#why-codes").fill("heart failure, diabetes, 58*")
    page.locator("#why-codes").press("Enter")
    expect(page.locator("#why .answer")).to_contain_text("Such a patient")
    page.locator("#why .choices button").first.focus()
    page.keyboard.press("Enter")
    expect(page.locator("#why .choices")).to_have_count(0)
    expect(page.locator("#why table tbody tr")).to_have_count(5)
    page.locator("#why").evaluate("part => part.scrollIntoView()")
    picture(page, f"pathways-why-{size}")
    wide = page.evaluate("document.documentElement.scrollWidth")
    assert wide <= width
    page.evaluate(axe)
    told = page.evaluate("violations()")
    assert [(one["id"], one["nodes"][0]["html"][:120]) for one in told["violations"]] == []
