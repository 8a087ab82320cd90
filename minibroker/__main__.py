"""`python -m minibroker`: the same as the `minibroker` command."""

import sys

from minibroker.cli import main

if __name__ == "__main__":
    sys.exit(main())
