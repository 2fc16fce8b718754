"""Run the GPU kit: `python -m tests.gpu [SECTION ...]`. README.md beside this file says more."""

import argparse
import importlib
import sys
import time
import traceback
from pathlib import Path

from tests.gpu.kit import Kit, about_machine, use_wheels
from tests.gpu.report import Report, sections_in_order

SECTIONS = {
    "sandbox": "a card is reached in each layer, and nothing else is",
    "faults": "out of memory, asserts, endless kernels: a sentence each, and the next run works",
    "latency": "a run on a waiting process, beside a warm notebook cell",
    "memory": "what waiting processes hold, on the card and off it",
    "lens": "what the lens costs a loop on the card, and that it never waits for the card",
    "profile": "the profiler's device columns",
    "claims": "what lessons, reference and atlas claim of CUDA",
    "lessons": "every lesson's programs, solution, starter and mutants on the card",
}
"""In the order in which they run: what says most in the least time comes first."""

NO_CARD = 3


def main(arguments: list[str] | None = None) -> int:
    """Run sections. Returns 0, 1 if something failed, 2 for bad arguments, 3 without a card."""
    use_wheels()
    options = parse(arguments)
    try:
        sections = sections_in_order(options.sections, list(SECTIONS))
    except ValueError as error:
        print(error, file=sys.stderr)
        return 2
    about = about_machine(options.device)
    if options.device.startswith("cuda") and about["why"]:
        print(f"The kit needs a card, and there is none to use: {no_card(about)}")
        print("To try the kit itself on the processor: python -m tests.gpu --device cpu --quick")
        return NO_CARD
    report = Report(about)
    report.say(f"{about['label']}, driver {about['driver']}, torch {about['torch']}")
    kit = Kit(options.device, report, options.quick)
    deadline = time.monotonic() + options.minutes * 60
    for section in sections:
        kit.section = section
        begun = time.monotonic()
        if begun > deadline:
            kit.skip(section, f"the {options.minutes:g} minutes were over")
        else:
            run_section(kit, section, deadline)
        report.seconds[section] = time.monotonic() - begun
        report.write(options.json)  # whoever has the card for a short time keeps what there is
    report.say("\n" + report.table())
    report.say(f"\nEverything as JSON: {options.json}")
    return 1 if report.failed else 0


def run_section(kit: Kit, section: str, deadline: float) -> None:
    """Run a section. One that breaks is reported and keeps no other from its turn."""
    try:
        importlib.import_module(f"tests.gpu.sections.{section}").main(kit, deadline)
    except ModuleNotFoundError as error:
        kit.skip(section, f"the package {error.name!r} is missing (tests/gpu/README.md)")
    except Exception as error:
        traceback.print_exc()
        kit.ok(section, False, f"ended early by {type(error).__name__}: {error}")


def parse(arguments: list[str] | None) -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(
        "python -m tests.gpu",
        description="Everything that only a machine with a card can show.",
        epilog="Sections: " + "; ".join(f"{name}: {what}" for name, what in SECTIONS.items()),
    )
    parser.add_argument("sections", nargs="*", help="run these alone; without one, all of them")
    parser.add_argument("--device", default="cuda:0", help="cuda:0, cuda:1, ... or cpu")
    parser.add_argument("--quick", action="store_true", help="few rounds, one chapter")
    parser.add_argument("--minutes", type=float, default=9.0, help="begin no section after that")
    parser.add_argument("--json", type=Path, default=Path("gpu-kit.json"), help="the file to write")
    return parser.parse_args(arguments)


def no_card(about: dict[str, object]) -> str:
    """Why there is no card, with what helps."""
    if not about["cuda"]:
        return f"this PyTorch ({about['torch']}) was built without CUDA. Install a build with it."
    if about["driver"] == "none":
        return f"no NVIDIA driver is loaded on this machine ({about['why']})."
    return f"{about['why']}. Is CUDA_VISIBLE_DEVICES empty or wrong, or the driver too old?"


if __name__ == "__main__":
    sys.exit(main())
