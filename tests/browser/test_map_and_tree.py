"""The map of patients and the tree of splits, and what else the hand meets, on three screens."""

import json
import random
import re

import pytest
from playwright.sync_api import expect

SHARE = re.compile(r"^Shared?$")
SIZES = [(1440, 900), (1024, 768), (390, 844)]
STOPS = """[...document.querySelectorAll("a[href], button, input, select, textarea, [tabindex]")]
  .filter((one) => one.tabIndex >= 0 && !one.disabled && one.offsetParent !== null).length"""


@pytest.fixture(scope="module")
def made(chromium, server, local, records) -> str:
    """The address of a run whose number of clusters was chosen."""
    context = chromium.new_context(locale="en-GB")
    context.add_cookies(local)
    context.set_default_timeout(120_000)
    page = context.new_page()
    page.goto(server.base)
    page.set_input_files("#file", records)
    page.wait_for_url("**/data/*")
    page.get_by_role("button", name="Find the clusters").click()
    page.wait_for_url("**/runs/*")
    page.wait_for_selector("#tree")
    context.close()
    return page.url


@pytest.mark.parametrize(("width", "height"), SIZES)
def test_the_map_and_the_tree_on_every_screen(page, made, picture, width, height):
    page.set_viewport_size({"width": width, "height": height})
    page.goto(made)
    page.wait_for_selector("#why")
    page.locator("nav a", has_text=re.compile("^Tree$")).click()
    assert page.url.endswith("#tree")
    found = int(re.search(r"\d+", page.locator("#tree output").inner_text())[0])
    names = page.locator(".card h3 > span:last-child").all_inner_texts()
    assert page.locator(".groups strong").all_inner_texts() == names
    scroll, line = (page.locator(one).bounding_box() for one in ("#tree .scroll", ".splits .cut"))
    assert scroll["x"] < line["x"] < scroll["x"] + scroll["width"]
    cut = page.locator("#cut")
    cut.focus()
    page.keyboard.press("Home")
    expect(page.locator(".groups li")).to_have_count(1)
    expect(page.locator(".groups")).to_contain_text("splits further")
    page.keyboard.press("ArrowRight")
    page.keyboard.press("ArrowRight")
    expect(page.locator(".groups li")).to_have_count(3)
    page.keyboard.press("Home")
    page.locator(".splits").scroll_into_view_if_needed()
    tree = page.locator(".splits").bounding_box()
    page.mouse.move(tree["x"] + 87, tree["y"] + 60)
    page.mouse.down()
    page.mouse.move(tree["x"] + 237, tree["y"] + 60)
    page.mouse.up()
    expect(page.locator("#tree output")).to_have_text("2 groups")
    expect(page.get_by_role("button", name="Find 2 groups")).to_be_enabled(enabled=found != 2)
    picture(page, f"tree-{width}")
    page.keyboard.press("p")
    expect(page.locator("#map h2")).to_be_focused()
    expect(page.locator("#map")).to_contain_text("cluster that most of its patients belong to")
    canvas = page.locator(".patients canvas")
    canvas.scroll_into_view_if_needed()
    box = canvas.bounding_box()
    page.get_by_role("button", name="Draw a region").click()
    corners = [(0.1, 0.1), (0.9, 0.1), (0.9, 0.9), (0.1, 0.9)]
    for number, (x, y) in enumerate(corners):
        page.mouse.move(box["x"] + x * box["width"], box["y"] + y * box["height"])
        if not number:
            page.mouse.down()
    page.mouse.up()
    expect(page.locator("#map .controls")).to_contain_text("records in the region")
    picture(page, f"map-{width}")
    canvas.focus()
    page.keyboard.press("Escape")
    expect(page.get_by_role("button", name="Cluster these patients")).to_be_disabled()
    for key in ("ArrowLeft", "ArrowUp"):
        for _ in range(30):
            page.keyboard.press(key)
    for steps in ((0, "ArrowRight"), (60, "ArrowRight"), (60, "ArrowDown"), (60, "ArrowLeft")):
        for _ in range(steps[0]):
            page.keyboard.press(steps[1])
        page.keyboard.press("Enter")
    expect(page.get_by_role("button", name="Cluster these patients")).to_be_enabled()
    expect(page.locator("#map .controls")).to_contain_text("records in the region")
    assert page.evaluate("document.documentElement.scrollWidth") <= width


def test_a_region_becomes_a_run_and_a_cluster_is_split(page, made, server):
    page.goto(f"{made}#map")
    expect(page.locator("#map")).to_contain_text("cluster that most of its patients belong to")
    canvas = page.locator(".patients canvas")
    canvas.focus()
    for key in ("Enter", *["ArrowRight"] * 9, "Enter", *["ArrowDown"] * 9, "Enter"):
        page.keyboard.press(key)
    page.get_by_role("button", name="Cluster these patients").click()
    page.locator("dialog select").select_option("2")
    page.locator("dialog .primary").click()
    expect(page.locator(".bar")).to_contain_text("Region")
    expect(page.locator(".card")).to_have_count(2)
    expect(page.locator(".rules")).to_contain_text("inside a region of the map")
    page.get_by_role("button", name="One cluster fewer").click()
    expect(page.locator(".facts")).to_contain_text(re.compile(r"\b1 cluster$"))
    page.goto(f"{server.base}/data/tertiary?k=3")
    page.get_by_role("button", name="Find the clusters").click()
    expect(page.locator(".card")).to_have_count(3)
    page.locator(".card").first.get_by_role("button", name="Split").click()
    page.locator("dialog .primary").click()
    expect(page.locator(".card")).to_have_count(4)
    expect(page.locator(".rules")).to_contain_text("cluster 1 split into 2 by hand")


def test_where_there_is_one_group_finer_ones_are_shown_anyway(page, server, tmp_path):
    deal = random.Random(3)
    codes = [str(number) for number in (*range(410, 418), *range(420, 430))]
    rows = (";".join(code for code in codes if deal.random() < 0.5) for _ in range(600))
    file = tmp_path / "one.csv"
    file.write_text("id,codes\n" + "".join(f"{i},{row}\n" for i, row in enumerate(rows)))
    page.goto(server.base)
    page.set_input_files("#file", file)
    page.wait_for_url("**/data/*")
    page.get_by_role("button", name="Find the clusters").click()
    page.wait_for_selector("#tree")
    expect(page.locator(".findings")).to_have_text("All records are one group.")
    first = page.url
    page.get_by_role("button", name="Show finer groups anyway").click()
    page.wait_for_url(lambda url: "/runs/" in url and url != first)
    page.wait_for_selector(".board")
    assert page.locator(".board tbody tr").count() > 1


def test_a_run_is_shared_with_a_link_and_deleted_with_a_way_back(page, made, server):
    page.goto(f"{made}#frequency")
    page.wait_for_selector("#why")
    expect(page.locator("#frequency h2")).to_be_focused()
    page.get_by_role("button", name=SHARE).click()
    expect(page.locator("#share-link")).to_have_value(f"{made}#frequency")
    assert made in page.locator("#share-message").input_value()
    expect(page.locator("dialog")).to_contain_text("on this computer alone")
    page.get_by_role("button", name="Copy the link").click()
    expect(page.locator("dialog")).to_contain_text("Copied.")
    page.get_by_label("Everyone who may sign in here").check()
    page.locator("dialog .primary").click()
    expect(page.get_by_role("button", name="Shared")).to_be_visible()
    page.get_by_role("button", name="Duplicate").click()
    expect(page.locator("h1")).to_contain_text("(2)")
    page.get_by_role("button", name="Delete").click()
    page.wait_for_url(f"{server.base}/")
    expect(page.locator("[aria-labelledby=runs-title] .sources")).not_to_contain_text("(2)")
    page.get_by_role("button", name="Undo").click()
    expect(page.locator("[aria-labelledby=runs-title] .sources")).to_contain_text("(2)")


def test_the_keyboard_has_few_stops_and_a_way_past_the_tools(page, made):
    page.goto(made)
    page.wait_for_selector("#why")
    assert page.evaluate(STOPS) < 100
    page.keyboard.press("Tab")
    expect(page.locator("#skip")).to_be_focused()
    page.keyboard.press("Enter")
    expect(page.locator("main")).to_be_focused()
    page.locator(".card").first.focus()
    page.keyboard.press("ArrowRight")
    expect(page.locator(".card").nth(1)).to_be_focused()
    rows = page.locator("#frequency tbody th")
    rows.first.focus()
    page.keyboard.press("ArrowDown")
    expect(rows.nth(1)).to_be_focused()
    page.keyboard.press("Tab")
    expect(rows.nth(1).get_by_role("button")).to_be_focused()
    expect(rows.nth(5).get_by_role("button")).to_be_visible()


@pytest.mark.parametrize(("width", "height"), SIZES)
def test_axe_finds_nothing_on_the_map_and_the_tree(page, made, axe, width, height):
    page.set_viewport_size({"width": width, "height": height})
    page.goto(made)
    page.wait_for_selector("#why")
    if width < 640:
        page.locator(".tools summary").click()
    page.get_by_role("button", name=SHARE).click()
    page.evaluate(axe)
    told = [page.evaluate("violations()")]
    page.keyboard.press("Escape")
    told.append(page.evaluate("violations()"))
    found = {
        each["id"]: [n["html"][:120] for n in each["nodes"][:3]]
        for one in told
        for each in one["violations"]
    }
    assert not found, json.dumps(found, indent=1)
