from comorb.records.codes.vocabulary import Raw, build_vocabulary


def test_codes_become_features_with_names():
    words = build_vocabulary(
        {(None, "428.0"): 3, (None, "4281"): 2, (None, "?"): 1, (None, "oops"): 1, (None, "38"): 4},
        "icd9cm",
        ("category",),
        {},
    )
    assert words.codes == ("038", "428")
    assert words.names[1] == "Heart failure"
    assert words.places.ravel().tolist() == [1, 1, -1, -1, 0]
    assert words.missing.tolist() == [False, False, True, False, False]
    assert words.malformed.tolist() == [False, False, False, True, False]
    assert words.notes == ("4 codes repaired: lost leading zeros, or the '.0' of a number",)


def test_a_code_that_nothing_mentions_has_no_feature():
    words = build_vocabulary({(None, "428.0"): 1, (None, "250"): 0}, None, ("category",), {})
    assert words.codes == ("428",)


def test_editions_keep_codes_apart():
    counts = {("icd9cm", "V58"): 1, ("icd10cm", "V58"): 1, (None, "428"): 1}
    words = build_vocabulary(counts, None, ("category",), {})
    assert words.codes == ("icd10cm:V58", "icd9cm:428", "icd9cm:V58")
    assert words.system == "icd10cm+icd9cm"


def test_a_few_strays_are_malformed_and_many_are_mixed():
    few: dict[Raw, int] = {(None, "428"): 200, (None, "250"): 100, (None, "I10"): 1}
    assert build_vocabulary(few, None, ("category",), {}).malformed.sum() == 1
    many = few | {(None, "I10"): 100, (None, "V58"): 7}
    words = build_vocabulary(many, None, ("category",), {})
    assert words.notes == (
        "icd9cm and icd10cm are mixed and no column says which is which: 7 mentions fit both and "
        "were taken as icd9cm; name the column with the version",
    )


def test_names_that_the_source_brings_along():
    words = build_vocabulary({(None, "316139"): 1}, "opaque", ("full",), {"316139": "Failure"})
    assert words.names == ("Failure",)


def test_nothing():
    words = build_vocabulary({}, None, ("category",), {})
    assert (words.codes, words.places.shape) == ((), (0, 1))
