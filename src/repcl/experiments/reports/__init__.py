"""Reports: tables and figures of finished runs, as one page and as files."""
