"""serve, and what it refuses."""


def test_serve_refuses_missing_records_and_open_addresses(comorb):
    missing = comorb("serve", "none.csv", "--no-browser")
    assert (missing.exit_code, "There is no file none.csv" in missing.stderr) == (1, True)
    told = comorb("serve", "--host", "0.0.0.0", "--no-browser")
    assert told.exit_code == 1
    assert "expected users before listening on 0.0.0.0" in told.stderr
