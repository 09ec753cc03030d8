"""`python -m fedhedge` is the command `fedhedge`."""

import sys

from fedhedge.cli import main

if __name__ == "__main__":
    sys.exit(main())
