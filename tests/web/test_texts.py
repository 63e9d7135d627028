"""Every text is there in every language, and every text that a script asks for is there."""

import json
import re
from pathlib import Path

import pytest

from comorb.web.server import pages

STATIC = Path(pages.__file__).parents[1] / "static"
OWN = json.loads((STATIC / "texts.json").read_text(encoding="utf-8"))


@pytest.mark.parametrize("language", ["es", "ca"])
def test_the_page_of_the_report_is_translated_too(language):
    texts = pages.texts()
    for key, text in texts[language].items():
        places = re.findall(r"\{\w+\}", texts["en"][key])
        assert sorted(re.findall(r"\{\w+\}", text)) == sorted(places), key


@pytest.mark.parametrize("language", ["es", "ca"])
def test_the_languages_have_the_same_texts_with_the_same_places(language):
    assert OWN[language].keys() == OWN["en"].keys()
    for key, text in OWN["en"].items():
        places = re.findall(r"\{\w+\}", text)
        assert sorted(re.findall(r"\{\w+\}", OWN[language][key])) == sorted(places), key


def test_every_text_that_is_asked_for_is_there():
    known = pages.texts()["en"]
    for path in STATIC.glob("*.js"):
        for key in re.findall(r'\bt\("([\w.]+)"', path.read_text(encoding="utf-8")):
            assert key in known, (path.name, key)


def test_no_script_writes_markup_from_data():
    for path in STATIC.glob("*.js"):
        text = path.read_text(encoding="utf-8")
        assert not re.search(r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|eval\(", text)
        assert "https://" not in text
