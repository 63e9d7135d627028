"""Features: ticked in the table of columns, shown with the clusters, asked for and left out."""

import re

import pytest
from playwright.sync_api import expect
from pyarrow.csv import write_csv

from tests.browser.test_table_of_columns import row, upload
from tests.mixed import mixed_table


@pytest.fixture(scope="module")
def visits(tmp_path_factory):
    path = tmp_path_factory.mktemp("mixed") / "visits.csv"
    write_csv(mixed_table()[0], path)
    return path


def test_features_are_ticked_shown_asked_for_and_left_out(page, server, visits, picture):
    upload(page, server, visits)
    expect(page.get_by_text("The clusters are found by codes alone")).to_be_visible()
    expect(row(page, "id").locator(".feature")).to_have_count(0)
    for name in ("age", "sex", "visits", "hba1c"):
        row(page, name).locator(".feature input").check()
    row(page, "visits").locator(".feature select").select_option("count")
    found = page.get_by_text("The clusters are also found by: Age in years, Sex, Visits, Hba1c.")
    expect(found).to_be_visible()
    page.fill("#at-least", "1")
    expect(page).to_have_url(re.compile("features=age&features=sex&features=visits%3Dcount"))
    page.reload()
    expect(row(page, "visits").locator(".feature select")).to_have_value("count")
    page.get_by_label("Choose:").check()
    page.get_by_label("Number of clusters").last.fill("3")
    page.get_by_role("button", name="Find the clusters").click()
    page.wait_for_url("**/runs/*")
    features = page.locator("#features")
    expect(features).to_contain_text("What sets the clusters apart")
    expect(features).to_contain_text("Share of missing values")
    expect(features.locator(".influence li")).to_have_count(5)
    features.evaluate("part => part.scrollIntoView()")
    picture(page, "features")
    expect(page.locator("#again")).to_contain_text("--feature age --feature sex")
    page.fill("#why-codes", "428, age=82, sex = female")
    page.get_by_role("button", name="Ask", exact=True).click()
    expect(page.locator("#why")).to_contain_text("age=82")
    expect(page.locator("#why")).to_contain_text("sex=female")
    sign = page.locator("#relevance li", has_text="Hba1c").first
    sign.hover()
    sign.get_by_role("button", name="Hba1c").click()
    page.wait_for_url("**/runs/*left_out=hba1c*")
    expect(page.locator("#features .influence li")).to_have_count(4)


def test_a_feature_that_can_not_be_one_is_said_while_choosing(new_page, server, local, visits):
    page = new_page(server.base, expect="422")
    page.context.add_cookies(local)
    upload(page, server, visits)
    row(page, "sex").locator(".feature input").check()
    row(page, "sex").locator(".feature select").select_option("count")
    expect(page.locator(".go .size")).to_contain_text("The column 'sex' holds texts")
    expect(page.get_by_role("button", name="Find the clusters")).to_be_disabled()
