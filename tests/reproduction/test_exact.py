from comorb_reproduction import exact


def test_only_biased_moments_give_a_wrong_model(tmp_path, quiet):
    section = exact.run(tmp_path, True, quiet)
    assert [claim.verdict for claim in section.claims] == ["confirmed", "confirmed"]
