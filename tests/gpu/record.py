"""Write what a card printed into the course: `python -m tests.gpu.record gpu-kit.json`."""

import argparse
import json
import sys
from pathlib import Path

from tensortutor.course.cuda_outputs import FILE, write_cuda_outputs
from tests.gpu.kit import ROOT


def main(arguments: list[str] | None = None) -> int:
    """Write the outputs of a kit's JSON beside the lessons. Returns 0, or 2 with a sentence."""
    parser = argparse.ArgumentParser("python -m tests.gpu.record", description=__doc__)
    parser.add_argument("json", type=Path, help="what `python -m tests.gpu` has written on a card")
    parser.add_argument("--to", type=Path, default=ROOT / FILE, help="the file to write")
    options = parser.parse_args(arguments)
    try:
        found = json.loads(options.json.read_text(encoding="utf-8"))
        rows = found["outputs"]
        if not str(found["device"]).startswith("cuda") or not rows:
            print(f"{options.json} holds no outputs of a CUDA GPU.", file=sys.stderr)
            return 2
        write_cuda_outputs(options.to, found, rows)
    except (OSError, ValueError, KeyError, TypeError) as error:
        print(f"{options.json} cannot be used: {error!r}", file=sys.stderr)
        return 2
    print(f"{len(rows)} outputs of {found['label']}: {options.to}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
