"""Values: what is written in a cell, and that nothing is lost in silence."""

from datetime import date

import pytest

from comorb.records.values import (
    is_missing,
    read_ages,
    read_dates,
    read_numbers,
    read_sexes,
    sexes_of,
    yes_no,
)


@pytest.mark.parametrize("text", ["", " ", "?", ".", "-", "na", "NULL", "NaN", "<NA>", "unknown"])
def test_missing(text):
    assert is_missing(text)


@pytest.mark.parametrize("text", ["0", "no", "V58", "--", "nation"])
def test_not_missing(text):
    assert not is_missing(text)


@pytest.mark.parametrize(
    ("text", "answer"),
    [
        ("1", True),
        ("TRUE", True),
        ("Sí", True),
        ("ja", True),
        ("0.0", False),
        ("No", False),
        ("2", None),
        ("maybe", None),
    ],
)
def test_yes_and_no(text, answer):
    assert yes_no(text) is answer


@pytest.mark.parametrize(
    ("text", "years"),
    [
        ("70", 70),
        ("070", 70),
        ("0,5", 0.5),
        ("70 years", 70),
        ("70 años", 70),
        ("[70-80)", 75),
        ("(70.0, 80.0]", 75),
        ("70-79", 74.5),
        ("70 – 79 Jahre", 74.5),
        ("70 bis 79", 74.5),
        ("90+", 90),
        ("85 and over", 85),
        ("85 years and older", 85),
        ("85 ans et plus", 85),
        ("85 und älter", 85),
        ("85 o más", 85),
        (">= 85", 85),
        ("≥85", 85),
        ("<1", 0.5),
        ("under 18", 9),
        ("3 months", 0.25),
        ("3 m", 0.25),
        ("6 Monate", 0.5),
        ("6 mois", 0.5),
        ("6 meses", 0.5),
        ("6-11 months", 8.5 / 12),
        ("12 days", 12 / 365.25),
        ("2 Wochen", 2 / 52.18),
        ("12 h", 12 / 8766),
    ],
)
def test_ages(text, years):
    assert read_ages({text: 1}, "age").of == {text: pytest.approx(years)}


def test_how_ages_were_read_and_what_was_lost_is_said():
    counts = {"70": 90, "90+": 4, "70-79": 3, "3 months": 2, "old": 1, "NA": 7}
    ages = read_ages(counts, "Alter")
    assert ages.kind is float
    assert ages.of == {"70": 70, "90+": 90, "70-79": 74.5, "3 months": 0.25, "old": None}
    assert ages.notes == (
        "3 ages of column 'Alter' are ranges, read as the middle",
        "4 ages of column 'Alter' have an open end, read as that end",
        "2 ages of column 'Alter' are in months, weeks, days or hours, read as parts of a year",
        "1 values of column 'Alter' can't be read as an age and are missing",
    )
    assert read_ages({"70": 5, "": 1}, "age").notes == ()


def test_a_column_that_holds_no_ages_stays_text():
    ages = read_ages({"adult": 3, "child": 2, "70": 1}, "age")
    assert (ages.kind, ages.of) == (str, None)
    assert ages.notes == ("most values of column 'age' can't be read as an age, so it stays text",)


@pytest.mark.parametrize(
    "text",
    [
        "2009-04-12",
        "20090412",
        "20090412.0",
        "2009/4/12",
        "2009-04-12 10:00",
        "2009-04-12T10:00:00Z",
        "12.04.2009",
        "12.4.2009 10:15",
        "12APR2009",
        "12-Apr-2009",
    ],
)
def test_dates(text):
    assert read_dates({text: 1}, "date").of == {text: date(2009, 4, 12)}


def test_days_above_twelve_tell_days_from_months():
    first = read_dates({"03/04/2009": 5, "25/12/2009": 1}, "date").of
    assert first == {"03/04/2009": date(2009, 4, 3), "25/12/2009": date(2009, 12, 25)}
    last = read_dates({"03/04/2009": 5, "12/25/2009": 1}, "date").of
    assert last == {"03/04/2009": date(2009, 3, 4), "12/25/2009": date(2009, 12, 25)}


@pytest.mark.parametrize("texts", [["03/04/2009"], ["25/12/2009", "12/25/2009"]])
def test_dates_that_may_be_two_days_stay_text(texts):
    days = read_dates(dict.fromkeys(texts, 1), "admission")
    assert (days.kind, days.of) == (str, None)
    assert days.notes == (
        "the dates of column 'admission' may be day/month or month/day, so they stay text; write "
        "them as YYYY-MM-DD",
    )


def test_dates_that_are_none_are_counted():
    days = read_dates({"2009-04-12": 9, "2009-13-45": 2, "unknown": 3}, "admission")
    assert days.of == {"2009-04-12": date(2009, 4, 12), "2009-13-45": None}
    assert days.notes == ("2 values of column 'admission' can't be read as a date and are missing",)
    text = read_dates({"2009-13-45": 1, "20091": 1}, "admission")
    assert text.of is None
    assert text.notes[0].startswith("most values of column 'admission' can't be read as a date")


@pytest.mark.parametrize(
    ("texts", "sexes"),
    [
        (["F", "m"], ["female", "male"]),
        (["Female", "Male", "Other"], ["female", "male", "other"]),
        (["weiblich", "männlich", "divers"], ["female", "male", "other"]),
        (["femme", "homme"], ["female", "male"]),
        (["femenino", "masculino"], ["female", "male"]),
        (["mujer", "varón"], ["female", "male"]),
        (["M", "H"], ["female", "male"]),
        (["vrouw", "man"], ["female", "male"]),
        (["femmina", "maschio"], ["female", "male"]),
        (["mulher", "homem"], ["female", "male"]),
    ],
)
def test_sexes(texts, sexes):
    assert sexes_of(texts) == dict(zip(texts, sexes, strict=True))


def test_numbers_are_sexes_where_the_column_is_named_after_the_standard():
    named = read_sexes({"1": 3, "2": 4, "0": 1, "9": 1}, "sex_iso5218")
    assert named.of == {"1": "male", "2": "female", "9": "other"}
    assert named.notes == ()
    assert read_sexes({"1": 3, "2": 4}, "sex").of == {"1": "1", "2": "2"}


def test_the_words_of_the_file_are_kept_and_strange_ones_are_said():
    sexes = read_sexes({"Femme": 3, "Homme": 4, "q": 2, "?": 1}, "sexe")
    assert sexes.of == {"Femme": "Femme", "Homme": "Homme", "q": "q"}
    assert sexes.notes == (
        "2 values of column 'sexe' are no sex that is known; a rule about sex must use these very "
        "words",
    )


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("3", 3),
        ("-2.5", -2.5),
        ("1.234,50", 1234.5),
        ("1,234.50", 1234.5),
        ("1 234,5", 1234.5),
        ("1.234.567", 1234567),
        ("0,5", 0.5),
        ("3 days", None),
        ("", None),
    ],
)
def test_numbers(text, number):
    assert (read_numbers({text: 1, "7": 3, "0,25": 2}, "x").of or {}).get(text) == number


def test_numbers_that_are_none_are_counted():
    found = read_numbers({"1": 5, "many": 2, "NA": 9}, "cost")
    assert found.notes == ("2 values of column 'cost' can't be read as a number and are missing",)
    assert read_numbers({"a": 3, "1": 2}, "cost").notes == (
        "most values of column 'cost' can't be read as a number, so it stays text",
    )


def test_commas_that_may_be_of_two_kinds_leave_text():
    found = read_numbers({"1,234": 2, "17": 1}, "cost")
    assert found.kind is str
    assert found.notes == (
        "the commas of column 'cost' may stand before thousands or before decimals, so it stays "
        "text; write the numbers without",
    )


@pytest.mark.parametrize(
    ("column", "years"),
    [
        ("idade", {"467": 67, "301": 1 / 12, "215": 15 / 365.25, "503": 103, "999": None}),
        ("EDAD", {"4067": 67, "3006": 0.5, "2010": 10 / 365.25, "4998": None}),
        ("startage", {"67": 67, "7001": 0, "7007": 319 / 365.25, "80": 80}),
        ("age", {"67": 67, "999": None, "-1": None, "130": None, "31": 31, "5": 5, "50": 50}),
        ("age_months", {"18": 1.5, "600": 50, "9999": None}),
        ("EdadDias", {"730.5": 2, "3652.5": 10}),
    ],
)
def test_ages_with_a_unit_and_impossible_ones(column, years):
    counts = {text: 7 if value and value > 60 else 1 for text, value in years.items()}
    ages = read_ages(counts, column)
    assert ages.of == {text: value and pytest.approx(value) for text, value in years.items()}
    assert ages.notes


@pytest.mark.parametrize(
    ("texts", "days"),
    [
        (["27112018", "03042019"], [date(2018, 11, 27), date(2019, 4, 3)]),
        (["11272018", "4032019"], [date(2018, 11, 27), date(2019, 4, 3)]),
        (["20181127", "20190403"], [date(2018, 11, 27), date(2019, 4, 3)]),
    ],
)
def test_dates_without_marks(texts, days):
    read = read_dates(dict.fromkeys(texts, 1), "day")
    assert list(read.of.values()) == days
    assert bool(read.notes) == (texts[0] != "20181127")


def test_ambiguous_dates_without_marks_stay_text():
    assert read_dates({"03042019": 1, "05062019": 1}, "day").of is None
