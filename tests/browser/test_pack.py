"""The board pack by one click, and the page in another language."""

import zipfile

import pytest
from playwright.sync_api import expect

from tests.browser.test_journey import find


@pytest.fixture(scope="module")
def address(chromium, server, local) -> str:
    context = chromium.new_context(locale="en-GB")
    context.set_default_timeout(120_000)
    context.add_cookies(local)
    key = find(context.new_page(), server, "heart-failure?k=5")
    context.close()
    return f"{server.base}/runs/{key}"


def test_a_board_pack_is_one_click_away(page, address, tmp_path):
    page.goto(address)
    page.wait_for_selector(".card")
    with page.expect_download(timeout=120_000) as told:
        page.get_by_role("button", name="Board pack").click()
    told.value.save_as(tmp_path / "board.zip")
    with zipfile.ZipFile(tmp_path / "board.zip") as archive:
        names = archive.namelist()
        assert names[0] == "board.pdf"
        assert "board.xlsx" in names
        assert archive.read("board.pdf").startswith(b"%PDF")
    expect(page.locator("#notice")).to_contain_text("in your downloads")
    page.get_by_role("button", name="Download").click()
    expect(page.locator("dialog .files").first).to_contain_text("board.xlsx")


def test_the_page_is_in_the_language_that_is_chosen(page, address, picture, axe):
    page.goto(address)
    page.wait_for_selector(".card")
    page.locator("#language").select_option("es")
    page.wait_for_selector(".card")
    expect(page.locator("html")).to_have_attribute("lang", "es")
    expect(page.locator(".cards")).to_contain_text("Hipertensión")
    expect(page.locator(".cards")).not_to_contain_text("Hypertension")
    expect(page.locator("header .facts")).to_contain_text("23.154")
    ask = page.locator("#trust .ask").first
    ask.click()
    meaning = page.locator(".meaning:popover-open")
    expect(meaning).to_contain_text("80")
    picture(page, "glossary")
    page.keyboard.press("Escape")
    expect(meaning).to_have_count(0)
    page.evaluate(axe)
    assert page.evaluate("violations()")["violations"] == []
    page.locator("#language").select_option("en")
    page.wait_for_selector(".card")
