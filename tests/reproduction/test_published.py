from comorb_reproduction.published import likenesses, published_clusters, summed_up, verdicts


def test_a_pattern_needs_its_mark_and_most_of_its_codes():
    top = [["410", "414", "401"], ["305", "401", "272"], ["585", "403", "279", "285"], ["197"]]
    found = {one.published.name: one for one in likenesses("tertiary", top)}
    assert found["myocardial infarction"].cluster == 0
    assert found["myocardial infarction"].verdict == "appears"
    assert found["kidneys without coronary disease"].verdict == "appears"
    assert found["kidneys with coronary disease"].verdict == "in part"
    assert found["cancer"].cluster == 3
    assert found["valves"].verdict == "does not appear"


def test_most_codes_without_a_mark_are_a_part():
    found = likenesses("tertiary", [["305", "401", "272"]])
    assert found[1].verdict == "in part"
    assert not found[1].marked


def test_sizes_are_those_of_the_papers_tables():
    tables = {study: published_clusters(study) for study in ("heart failure", "tertiary")}
    assert sum(published.size for published in tables["heart failure"]) == 23_154
    assert sum(published.size for published in tables["tertiary"]) == 16_311
    assert all(
        set(published.marks) <= set(published.codes)
        for table in tables.values()
        for published in table
    )


def test_patterns_in_one_cluster_are_said_to_be():
    found = likenesses("tertiary", [["411", "413", "414", "410", "401", "272"]])
    assert verdicts(found)[:3] == [
        "appears, in one with 'myocardial infarction'",
        "appears, in one with 'coronary intervention'",
        "does not appear",
    ]
    assert summed_up(found).endswith(
        "; does not appear: " + ", ".join(f"'{one.published.name}'" for one in found[2:])
    )
