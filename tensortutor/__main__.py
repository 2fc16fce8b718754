"""`python -m tensortutor`."""

import sys

from tensortutor.cli import main

if __name__ == "__main__":
    sys.exit(main())
