"""A portion answers for itself until it is told what all chunks of a source answer."""

import pyarrow as pa

from comorb.records.sources.merging import first, summed
from comorb.records.sources.portion import Piece, Whole, merged, of_the_head

ROWS = [pa.table({"a": [1, 2, 3]}), pa.table({"a": [4]})]


def asked(whole, rows):
    numbers = pa.array(range(7, 7 + len(rows)))
    with whole.portion(lambda name: Piece(name, ("doubtful",), rows, numbers)) as source:
        table = source.table("records")
        assert (table.label, source.notes) == ("records", ["doubtful"])
        ((count,),) = source.ask_whole(table, f"SELECT count(*) FROM {table.sql}", summed)
        view = source.view("few", f"SELECT * FROM {table.sql} LIMIT {count}")
        kept = source.ask_whole(view, f"SELECT a FROM {view.sql}", first)
        numbers = source.rows(table, source.numbered(table, "n"))
        return count, kept, numbers, source.found


def test_answers_are_those_of_all_and_depend_on_what_was_defined_before():
    whole = Whole("the table", ("records",))
    one, two = (asked(whole, rows) for rows in ROWS)
    assert (one[0], two[0]) == (3, 1)
    assert two[2] == [(7, 4)]
    answers = merged([one[3], two[3]])
    assert list(answers.values()) == [[(4,)]]
    again = asked(Whole("the table", ("records",), answers), ROWS[1])
    assert again[0] == 4
    assert list(of_the_head(again[3]).values()) == [[(4,)]]
