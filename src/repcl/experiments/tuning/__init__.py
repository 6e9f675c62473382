"""The search for settings on the first three tasks."""
