"""Learners on a frozen encoder, which forget nothing: their ledger of exact sums, and four ways to use it."""
