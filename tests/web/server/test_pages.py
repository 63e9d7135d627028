"""Pages: the API's own page, every text for the browser, and a form that is too long."""

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
