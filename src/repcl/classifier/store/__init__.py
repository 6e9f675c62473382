"""The model folder: numbered revisions of a classifier, each a record and the files that it names."""
