"""`python -m dpwitness`."""

import sys

from _dpwitness_command import main

if __name__ == "__main__":
    sys.exit(main())
