"""The README of a model folder: in plain words, which texts of users it holds."""

from collections.abc import Sequence

from repcl.classifier.records import Revision

README = "README.md"

TEMPLATE = """\
# A text classifier made by repcl

This folder was written by `repcl`. Open it with `ContinualClassifier.load(...)` or `repcl predict`.
It holds weights (safetensors), JSON and JSONL; nothing in it is executed when it is opened.

## Which texts of users it holds

| revision | made (UTC) | classes | exemplars | held-back texts |
|---|---|---|---|---|
{rows}

- *Exemplars* are training texts, kept word for word so that old classes can be rehearsed when new ones are
  learned.
- *Held-back texts* were given for learning but are never learned from; they are kept word for word to measure
  whether an update harms old classes, and to calibrate confidence.
- Both are in `blobs/*.jsonl`, with their labels. Names of classes are in `revisions/*.json`.
- Trained weights can carry traces of the texts they were trained on; statistics of the frozen learners
  (`instant`, `lda`, `ncm`, `refit`) are computed from them.

Who may read this folder may read these texts. `repcl classes remove MODEL CLASS --purge` removes a class and
every revision that holds it. To hold no text at all, use a method without exemplars (`instant`, `ncm`, `lda`,
`refit`) with `memory_per_class=0` and `holdout_per_class=0`.

## How it is laid out

`current.json` says which revision is in use; `revisions/NNNNNN.json` lists the files of each; files in
`blobs/` are named by the sha256 of their bytes and shared between revisions. Do not edit them; use
`repcl classes`, `repcl rollback` and `repcl history`.
"""


def folder_readme(revisions: Sequence[Revision]) -> str:
    """The README for a folder with these revisions."""
    return TEMPLATE.format(rows="\n".join(_row(revision) for revision in revisions))


def _row(revision: Revision) -> str:
    held = revision.contents
    return (
        f"| {revision.number} | {revision.when} | {len(held.classes)} "
        f"| {held.memory.count} | {held.held_back.count} |"
    )
