"""The parts of `benchmarks/speed.py`: each measures one thing and gives rows of a table."""
