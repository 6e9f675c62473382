"""`python -m repcl` is the command line."""

from repcl.cli import main

if __name__ == "__main__":
    main()
