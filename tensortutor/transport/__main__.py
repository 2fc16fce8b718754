"""Starts the near end of a transport: `PYTHON .../transport/__main__.py PLACE CONTROL_FD`.

PLACE: an `options.Place` as JSON. Runs as a script, so that it is this package's own code,
wherever that lies.
"""

import sys
from pathlib import Path

if __name__ == "__main__":
    sys.path[0] = str(Path(__file__).resolve().parents[2])
    from tensortutor.transport.near import main

    main(sys.argv[1], int(sys.argv[2]))
