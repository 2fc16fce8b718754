"""How long the editor waits for names: from the question to the answer, with the real worker.

    python -m tests.bench.completion [ROUNDS]

Also: how long the assistant takes until it has read PyTorch, the very first time and after that,
and the memory that it needs beyond a waiting process.
"""

import statistics
import sys
import tempfile
import time
from pathlib import Path

from tensortutor.protocol.assist import Question, Typed
from tensortutor.runner import Runner, Settings
from tests.bench.latency import worker_processes

ROUNDS = 15
WANTED_MS = 150.0
IMPORTS = "import torch\nimport torch.nn.functional as F\nfrom torch import nn\n\n"
KNOWN = (Typed("loss", "torch.Tensor"), Typed("f.x", "torch.Tensor"))
QUESTIONS = {
    "torch.": "torch.|",
    "F.": "F.|",
    "nn.Li": "nn.Li|",
    "x., from the text": "x = torch.zeros(3)\ny = x.sum(0)\ny.|",
    "loss., from the last run": "loss = model(x)\nloss.|",
    "x., a function's, from the last check": "def f(x):\n    y = x.view(-1)\n    y.|\n",
    "self., of a module": "class N(nn.Module):\n    def forward(self, x):\n        self.|",
    "print(": "print(|",
    "about torch.softmax": "torch.softmax|",
    "about x.view": "x = torch.zeros(3)\nx.view|",
}


def question(text: str, kind: str) -> Question:
    """About the place at the bar."""
    source = IMPORTS + text
    before = source[: source.index("|")]
    line, column = before.count("\n") + 1, len(before) - before.rfind("\n") - 1
    return Question(kind, 1, source.replace("|", ""), line, column, KNOWN)


def learnt_s(runner: Runner) -> float:
    """Seconds until the assistant has read what it reads first."""
    begun = time.perf_counter()
    runner.attend()
    while True:
        answer = runner.ask(question("x|", "complete"))
        if answer is not None and not answer.learning:
            return time.perf_counter() - begun
        time.sleep(0.2)


def measure(runner: Runner, rounds: int) -> dict[str, list[float]]:
    """Milliseconds of each round by question, the questions in turns."""
    times: dict[str, list[float]] = {name: [] for name in QUESTIONS}
    for number in range(rounds + 1):
        for name, text in QUESTIONS.items():
            kind = "explain" if name.startswith("about") else "complete"
            begun = time.perf_counter()
            assert runner.ask(question(text, kind)) is not None
            if number:
                times[name].append((time.perf_counter() - begun) * 1000)
    return times


def main(rounds: int) -> None:
    """Measure and print."""
    with tempfile.TemporaryDirectory() as folder:
        settings = Settings(scratch=Path(folder), device="cpu")
        for word in ("for the very first time", "when it has been read before"):
            with Runner(settings) as runner:
                runner.prepare()
                time.sleep(5)  # the worker imports the rest of torch once it is quiet
                before = sum(worker_processes(runner).values())
                print(f"PyTorch is read {word}: {learnt_s(runner):.1f} s")
                if word.startswith("when"):
                    times = measure(runner, rounds)
                    grown = sum(worker_processes(runner).values()) - before
    for name, ms in times.items():
        print(f"{name:40}{statistics.median(ms):8.1f} ms   slowest {max(ms):8.1f} ms")
    print(f"wanted: {WANTED_MS:g} ms; memory of the assistant (PSS): {grown:.0f} MiB")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else ROUNDS)
