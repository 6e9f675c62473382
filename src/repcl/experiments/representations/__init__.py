"""What a run saves of its representations, and what an analysis finds in them."""
