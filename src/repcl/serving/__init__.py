"""A model folder behind HTTP: answers while it learns, and a page to teach, try and trust it."""
