"""Pages: the API's own page, every text for the browser, and a form that is too long."""

import html
import json

from comorb.fields import rules_of
from comorb.records.spec import CohortSpec
from comorb.views.words import languages
from comorb.web.server.pages import router


def test_the_page_of_the_api_has_every_call(client):
    eva = client("eva")
    paths = eva.get("/api/v1/openapi.json").json()["paths"]
    page = eva.get("/docs").text
    assert paths
    assert all(path in page for path in paths)
    assert not {route.path for route in router.routes} & set(paths)


def test_the_browser_gets_the_texts_of_every_language(client):
    texts = client("eva").get("/texts.json").json()
    assert sorted(texts) == sorted(languages())
    assert len({frozenset(one) for one in texts.values()}) == 1


def test_a_form_that_is_too_long_is_refused(client):
    answer = client("eva").post("/login", content=b"token=" + b"x" * 20_000)
    assert answer.status_code == 413


def test_a_page_gets_the_declared_rules_and_has_a_sentence_for_each(client):
    eva = client("eva")
    page, texts = eva.get("/").text, eva.get("/texts.json").json()["en"]
    rules = json.loads(html.unescape(page.partition('data-rules="')[2].partition('"')[0]))
    assert [one["name"] for one in rules] == [one.name for one in rules_of(CohortSpec) if one.web]
    assert all(f"rule.{one['name']}" in texts for one in rules)
    forms = {one["name"]: one["form"] for one in rules}
    assert [forms[name] for name in ("having", "age", "dates", "sex", "chronic", "at_least")] == [
        *("codes", "bounds", "days", "list", "flag", "number")
    ]
    assert [one["name"] for one in rules if one["coding"]] == ["level", "code_map", "chronic"]
