"""Cells with several labels."""

from repcl.data.label_cells import cell_of_labels, labels_of_cell


def test_blanks_and_empty_places_in_a_cell_do_not_count():
    assert labels_of_cell(" a | b||") == ["a", "b"]
    assert labels_of_cell("a") == ["a"]
    assert labels_of_cell(" | ") == []


def test_labels_make_a_cell():
    assert cell_of_labels(["a", 2]) == "a|2"
