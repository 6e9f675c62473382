"""The parts of a report: what its tables and figures hold, and how they are written down."""
