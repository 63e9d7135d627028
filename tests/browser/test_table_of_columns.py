"""The table of columns: what each is, corrected in place, pasted, and named where nothing was."""

import json
import re
from pathlib import Path

import pytest
from playwright.sync_api import expect

from comorb.records.datasets import region
from comorb.records.export import export


def upload(page, server, path: Path) -> None:
    page.goto(server.base)
    page.set_input_files("#file", path)
    page.wait_for_url("**/data/*")
    page.wait_for_selector("table.roles")


def role(page, name: str):
    return page.get_by_label(f"Role of {name}", exact=True)


def row(page, name: str):
    head = page.get_by_role("rowheader", name=name, exact=True)
    return page.locator("table.roles tbody tr").filter(has=head)


def read_again(page) -> None:
    with page.expect_navigation():
        page.get_by_role("button", name="Read again").click()
    page.wait_for_selector("table.roles")


@pytest.fixture
def plain(tmp_path) -> Path:
    """A table whose names say nothing: no code is recognised in it."""
    path = tmp_path / "ward.csv"
    words = ["asthma,gout,stroke", "gout,anaemia,asthma", "stroke,anaemia,gout"]
    lines = [f"{i},{40 + i % 9},{i % 4},{words[i % 3]}" for i in range(90)]
    path.write_text("\n".join(["k,a,b,c1,c2,c3", *lines, ""]))
    return path


def test_a_role_is_corrected_in_its_row(page, server, records, picture):
    upload(page, server, records)
    expect(role(page, "length_of_stay")).to_have_value("los")
    expect(role(page, "record_id")).to_have_value("id")
    expect(page.locator("table.roles")).to_contain_text("dx1 …")
    expect(row(page, "record_id").locator("td").nth(2)).to_be_empty()
    expect(row(page, "sex").locator("td").nth(2)).to_contain_text("female")
    page.locator("#columns-title").evaluate("part => part.scrollIntoView()")
    picture(page, "columns")
    role(page, "died").select_option("ignored")
    role(page, "length_of_stay").select_option("cost")
    read_again(page)
    expect(role(page, "died")).to_have_value("ignored")
    expect(role(page, "length_of_stay")).to_have_value("cost")
    expect(row(page, "died")).to_contain_text("as you said")
    expect(page.locator(".correction")).to_contain_text("Cost")
    expect(page.locator(".correction")).not_to_contain_text("Length of stay")
    role(page, "died").select_option("died")
    read_again(page)
    expect(role(page, "died")).to_have_value("died")
    page.get_by_role("button", name="Forget all corrections").click()
    expect(role(page, "length_of_stay")).to_have_value("los")
    expect(page.get_by_role("button", name="Forget")).to_have_count(0)


def test_which_values_count_is_said_beside_the_role(new_page, server, local, tmp_path):
    page = new_page(server.base, expect="422 (Unprocessable")
    page.context.add_cookies(local)
    path = tmp_path / "endings.csv"
    lines = [f"v{i},I10,E11.9,I50.9,{('kr', 'kr', 'mw')[i % 3]}" for i in range(60)]
    path.write_text("\n".join(["visit_id,dx1,dx2,dx3,how", *lines, ""]))
    upload(page, server, path)
    counting = page.get_by_label("Values of how that count")
    expect(counting).to_be_hidden()
    role(page, "how").select_option("died")
    page.get_by_role("button", name="Read again").click()
    expect(page.locator("#notice")).to_contain_text("can't be read as yes or no")
    counting.fill("mw")
    read_again(page)
    expect(role(page, "how")).to_have_value("died")
    expect(counting).to_have_value("mw")
    expect(page.locator("main")).to_contain_text("died is column 'how' where it is 'mw'")


def test_one_role_is_not_given_to_two_columns(page, server, records):
    upload(page, server, records)
    role(page, "sex").select_option("site")
    role(page, "died").select_option("site")
    page.get_by_role("button", name="Read again").click()
    expect(page.locator("#notice")).to_contain_text("Only one column can have the role Hospital.")


@pytest.mark.parametrize("pasted", ["dx1-dx3", "dx1, dx2\ndx3", "dx1 dx2 dx3", '"dx1";"dx2";dx3'])
def test_code_columns_are_pasted(page, server, records, pasted):
    upload(page, server, records)
    page.get_by_label("Code columns").fill(pasted)
    read_again(page)
    expect(page.get_by_label("Role of dx1 … dx3 (3)")).to_have_value("codes")
    expect(role(page, "dx4")).to_have_value("category")


def test_a_pasted_column_that_is_not_there_is_told(new_page, server, local, records):
    page = new_page(server.base, expect="422 (Unprocessable")
    page.context.add_cookies(local)
    upload(page, server, records)
    page.get_by_label("Code columns").fill("dx1, dx_two")
    page.get_by_role("button", name="Read again").click()
    expect(page.locator("#notice")).to_contain_text("has no column 'dx_two'; the nearest are")


def test_a_table_that_is_not_understood_is_named(page, server, plain, picture):
    upload(page, server, plain)
    expect(page.get_by_role("alert")).to_contain_text("ward.csv: no column was recognised")
    picture(page, "name-columns")
    role(page, "k").select_option("id")
    role(page, "a").select_option("age")
    page.get_by_label("Code columns").fill("c1-c3")
    page.locator("#fix-system").select_option("opaque")
    read_again(page)
    expect(page.locator(".understood .facts")).to_contain_text("90 records")
    expect(page.locator(".go .size")).to_contain_text("90 of 90 records")
    expect(role(page, "a")).to_have_value("age")
    page.goto(server.base)
    expect(page.locator(".sources").first).to_contain_text("90 records")


def test_a_map_chronic_conditions_and_scores(page, server, records, tmp_path, picture):
    groups = tmp_path / "groups.csv"
    groups.write_text("code,group,name\n428,hf,Weak heart\n250,dm,Sugar\n401,ht,Pressure\n")
    upload(page, server, records)
    page.get_by_text("More choices").click()
    page.set_input_files("#map-file", groups)
    expect(page.locator("#notice")).to_contain_text("groups.csv was read: 3 groups.")
    expect(page.locator("#code-map")).to_contain_text("groups.csv: 3 groups")
    expect(page.locator("#level")).to_be_disabled()
    page.locator("#at-least").fill("1")
    expect(page.locator(".go .size")).to_contain_text("3 different codes")
    page.get_by_role("combobox", name="With any of these").fill("weak")
    page.locator("[role=option]", has_text="Weak heart").click()
    page.get_by_label("Charlson score", exact=True).check()
    expect(page.locator(".go .size")).to_contain_text("2,539 of 4,000")
    page.locator("#level").evaluate("part => part.scrollIntoView()")
    picture(page, "choices")
    page.get_by_label("Choose:").check()
    page.get_by_role("spinbutton", name="Number of clusters").fill("2")
    page.reload()
    expect(page.locator("#code-map")).to_contain_text("groups.csv: 3 groups")
    expect(page.get_by_label("Charlson score", exact=True)).to_be_checked()
    expect(page.locator(".code-chip")).to_contain_text("Weak heart")
    page.get_by_role("button", name="Find the clusters").click()
    page.wait_for_selector(".card")
    expect(page.locator(".rules")).to_contain_text("groups of an own map")
    command = page.locator("#again code").first
    expect(command).to_contain_text(re.compile("--map groups.csv --score charlson --having hf"))
    expect(page.locator("#outcomes")).to_contain_text("Charlson")


def test_a_map_is_pasted_and_only_chronic_conditions_count(page, server, records):
    upload(page, server, records)
    page.get_by_text("More choices").click()
    size = page.locator(".go .size")
    expect(size).to_contain_text("different codes")
    before = size.inner_text()
    page.get_by_label("Chronic conditions only").check()
    expect(size).not_to_have_text(before)
    expect(size).to_contain_text("different codes")
    page.get_by_text("Or paste it").click()
    page.locator("#map-text").fill("428,hf\n250,dm\n")
    page.get_by_role("button", name="Use this").click()
    expect(page.locator("#code-map")).to_contain_text("map.csv: 2 groups")
    assert "chronic=1" in page.url
    assert "code_map=" in page.url


def test_the_table_fits_and_axe_finds_nothing(page, server, records, plain, axe):
    for path in (records, plain):
        upload(page, server, path)
        for language in ("en", "es", "ca"):
            page.locator("#language").select_option(language)
            page.wait_for_selector("table.roles")
            for width, height in ((1440, 900), (1024, 768)):
                page.set_viewport_size({"width": width, "height": height})
                assert page.evaluate("document.documentElement.scrollWidth") <= width
                head, cell = (
                    page.locator(f"table.roles {part}").first.bounding_box()
                    for part in ("thead th:last-child", "tbody td:last-child")
                )
                assert head["x"] == cell["x"]
                assert head["width"] > 80
            for details in page.locator("details").all():
                details.evaluate("part => { part.open = true; }")
            page.evaluate(axe)
            told = page.evaluate("violations()")
            assert not told["violations"], json.dumps(told["violations"], indent=1)[:3000]


def test_a_wide_table_of_many_kinds_is_shown_whole(page, server, tmp_path):
    path = tmp_path / "wide.csv"
    export(region(200), path)
    head, *lines = path.read_text().splitlines()
    more = [
        f"{line},a long story about one patient and another {i},x" for i, line in enumerate(lines)
    ]
    path.write_text("\n".join([f"{head},story,constant", *more, ""]))
    upload(page, server, path)
    expect(row(page, "story")).to_contain_text("a long text")
    expect(row(page, "constant")).to_contain_text("one value only")
    expect(page.locator("main")).not_to_contain_text("about one patient")
