"""The command line, started by `python -m dpwitness`."""

import sys

from dpwitness.cli import main

if __name__ == "__main__":
    sys.exit(main())
