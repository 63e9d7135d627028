"""Who gets in and what is refused, as a person sees it."""

import subprocess
import sys

from playwright.sync_api import expect

from tests.browser.test_journey import first_run


def add_user(workspace, name: str, role: str) -> str:
    command = [sys.executable, "-m", "comorb", "user", "add", name, "--role", role]
    done = subprocess.run(
        [*command, "--workspace", str(workspace)], capture_output=True, text=True, check=True
    )
    return done.stdout.strip()


def sign_in(page, base: str, token: str) -> None:
    page.goto(base)
    page.get_by_label("Token").fill(token)
    page.get_by_role("button", name="Sign in").click()


def share(page):
    page.get_by_role("button", name="Share", exact=True).click()
    page.locator("dialog input[value=everyone]").check()
    page.locator("dialog .primary").click()
    expect(page.get_by_role("button", name="Shared")).to_be_visible()


def test_two_users_at_once_and_a_restart_in_the_middle(start, new_page, records, tmp_path, picture):
    tokens = {
        name: add_user(tmp_path, name, role)
        for name, role in (("ana", "analyst"), ("vera", "viewer"))
    }
    server = start(tmp_path, str(records))
    ana, vera = (new_page(server.base, expect="Failed to load resource") for _ in range(2))
    sign_in(vera, server.base, "wrong")
    expect(vera.get_by_role("alert")).to_contain_text("not known here")
    picture(vera, "sign-in")
    sign_in(ana, server.base, tokens["ana"])
    sign_in(vera, server.base, tokens["vera"])
    expect(vera.locator("main")).to_contain_text("Nothing was shared with you yet")
    expect(vera.locator(".drop")).to_have_count(0)
    first_run(ana, server, records)
    key = ana.url.partition("/runs/")[2]
    vera.goto(f"{server.base}/runs/{key}")
    expect(vera.get_by_role("alert")).to_contain_text("no such page")
    share(ana)
    vera.goto(f"{server.base}/runs/{key}")
    expect(vera.locator(".card")).to_have_count(5)
    expect(vera.get_by_role("button", name="Merge")).to_have_count(0)
    vera.get_by_role("button", name="Download").click()
    expect(vera.locator("dialog")).not_to_contain_text("assignments.csv")
    ana.goto(f"{server.base}/data/heart-failure")
    ana.get_by_role("button", name="Find the clusters").click()
    ana.wait_for_url("**/runs/*")
    waiting = ana.url.partition("/runs/")[2]
    ana.get_by_role("button", name="Cancel").wait_for()
    server.stop()
    again = start(tmp_path, str(records))
    ana, vera = (new_page(again.base) for _ in range(2))
    sign_in(ana, again.base, tokens["ana"])
    ana.goto(f"{again.base}/runs/{waiting}")
    ana.get_by_role("button", name="Cancel").click()
    expect(ana.locator("main")).to_contain_text("Cancelled")
    ana.goto(again.base)
    expect(ana.locator(".sources").last).to_contain_text("Heart failure · visits")
    ana.goto(f"{again.base}/runs/{key}")
    expect(ana.locator(".card")).to_have_count(5)


def test_who_may_export_switches_to_what_others_see(start, new_page, records, tmp_path, picture):
    people = {"eva": "exporter", "ana": "analyst", "vera": "viewer"}
    tokens = {name: add_user(tmp_path, name, role) for name, role in people.items()}
    server = start(tmp_path, str(records))
    eva, ana, vera = (new_page(server.base) for _ in people)
    for page, token in zip((eva, ana, vera), tokens.values(), strict=True):
        sign_in(page, server.base, token)
    eva.locator(".sources a", has_text="visits").click()
    eva.get_by_label("Choose:").check()
    expect(eva.locator(".go .size")).to_contain_text("of 4,000 records")
    data = eva.url.partition("?")[0]
    eva.get_by_role("button", name="Find the clusters").click()
    eva.wait_for_selector(".card")
    run = eva.url
    share(eva)
    exact = eva.locator(".card .size").all_inner_texts()
    expect(eva.locator(".views [aria-current]")).to_have_text("Full")
    eva.get_by_role("link", name="Protected").click()
    expect(eva.locator(".views [aria-current]")).to_have_text("Protected")
    protected = eva.locator(".card .size").all_inner_texts()
    assert protected != exact
    eva.get_by_role("button", name="Download").click()
    link = eva.locator("dialog a", has_text="report.html")
    assert "view" not in link.get_attribute("href")
    eva.get_by_label("With full counts").check()
    assert link.get_attribute("href").endswith("view=full")
    picture(eva, "download-full")
    eva.keyboard.press("Escape")
    eva.get_by_role("button", name="One cluster more").click()
    eva.wait_for_url("**/runs/*?view=protected*")
    vera.goto(run)
    expect(vera.locator(".card")).to_have_count(5)
    assert vera.locator(".card .size").all_inner_texts() == protected
    expect(vera.locator(".views")).to_have_count(0)
    ana.goto(data)
    expect(ana.locator(".go .size")).to_contain_text("Questions left on these data: 30.")
    ana.get_by_role("button", name="Count", exact=True).click()
    expect(ana.locator(".go .size")).to_contain_text("Questions left on these data: 29.")
    assert "4,000 records" in ana.locator(".go .size").inner_text()
    ana.get_by_label("Choose:").check()
    expect(ana.locator(".go .size")).to_contain_text("Questions left on these data: 29.")
    picture(ana, "questions")


def test_files_that_cannot_be_read_get_a_clear_line_and_leave_nothing(
    new_page, server, local, tmp_path
):
    page = new_page(server.base, expect="Failed to load resource")
    page.context.add_cookies(local)
    folder = server.workspace / "data"
    page.goto(server.base)
    before = sorted(folder.iterdir())
    cases = {
        "large.csv": (b"x" * 21_000_000, "larger than 20 MB"),
        "broken.parquet": (b"PAR1", "broken.parquet"),
        "empty.csv": (b"", "empty"),
        "numbers.csv": (b"a,b\n1,2\n", "numbers.csv"),
        "one.csv": (b"id,dx1,dx2,dx3\n1,4280,25000,4019\n", "too few records"),
    }
    for name, (content, said) in cases.items():
        (tmp_path / name).write_bytes(content)
        page.set_input_files("#file", tmp_path / name)
        expect(page.locator("#notice")).to_contain_text(said)
    assert sorted(folder.iterdir()) == before


def test_wrong_host_forged_form_and_used_link_get_a_clear_page(new_page, server, local):
    page = new_page(server.base, expect="Failed to load resource")
    page.context.add_cookies(local)
    used = page.goto(server.link)
    assert used.status == 403
    expect(page.get_by_role("alert")).to_contain_text("used already")
    foreign = page.request.get(server.base, headers={"host": "evil.example"})
    assert foreign.status == 400
    assert "does not answer to that address" in foreign.text()
    forged = page.request.post(
        f"{server.base}/login", form={"token": "x"}, headers={"origin": "http://evil.example"}
    )
    assert forged.status == 403
    assert "came from another site" in forged.text()
