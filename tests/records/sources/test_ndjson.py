import json

from comorb.records.reading import read_records
from tests.records.helpers import sets


def test_plain_ndjson_with_lists(tmp_path):
    rows = [{"id": "007", "codes": ["428.0", "250.00"]}, {"id": "008", "codes": ["001.0"]}]
    path = tmp_path / "export.ndjson"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    assert sets(read_records(path)) == {"007": {"428", "250"}, "008": {"001"}}
