"""The paper's numbers, and our runs as its tables."""
