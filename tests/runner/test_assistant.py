"""Names completed and explained by the real worker, with real PyTorch."""

import os
import signal
import socket
import threading
from types import SimpleNamespace

import pytest

from tensortutor.protocol.assist import Completions, Documentation, Question, Typed, Types
from tensortutor.protocol.framing import encode
from tensortutor.protocol.jobs import Job, Judge
from tensortutor.protocol.setup import message_to_json
from tensortutor.runner import Runner, Settings
from tensortutor.runner.assistant import Assistant
from tensortutor.runner.zygote import Spare
from tensortutor.worker.processes import children

IMPORTS = "import torch\nimport torch.nn.functional as F\nfrom torch import nn\n"
CHECKS = """\
import torch
from tensortutor.checking import check

@check("calls it")
def calls(answer, rng, device):
    answer.pick(torch.zeros(2, 3), [torch.ones(1)], key=None)
"""


@pytest.fixture(scope="module")
def learnt(runner_on_cpu) -> Runner:
    """A runner whose assistant has read PyTorch. Once for all: it takes seconds."""
    runner_on_cpu.prepare()
    runner_on_cpu.attend()
    pause = threading.Event()
    while ask(runner_on_cpu, "x|").learning:
        pause.wait(0.3)
    return runner_on_cpu


def ask(runner: Runner, text: str, kind: str = "complete", known: tuple[Typed, ...] = ()):
    """The answer to a question at the bar."""
    before = text[: text.index("|")]
    source = text.replace("|", "", 1)
    line, column = before.count("\n") + 1, len(before) - before.rfind("\n") - 1
    answer = runner.ask(Question(kind, 7, source, line, column, known))
    assert answer is not None
    assert answer.number == 7
    return answer


def types(runner: Runner, source: str, judge: Judge | None = None) -> dict[str, str]:
    (event,) = [e for e in runner.start(Job(source, judge=judge, types=True)) if type(e) is Types]
    return {typed.name: typed.type for typed in event.names}


def test_what_a_library_prints_holds_up_no_answer():
    (channel, theirs), (status, keeper) = socket.socketpair(), socket.socketpair()
    (out, out_end), (err, err_end) = os.pipe(), os.pipe()
    assistant = Assistant(lambda: Spare("cpu", channel, status, out, err), ())

    def answer() -> None:
        os.write(err_end, bytes(1 << 16))  # as much as a pipe holds
        os.write(err_end, b"more")
        theirs.sendall(encode(message_to_json(Completions(7, 0, ()))))

    thread = threading.Thread(target=answer, daemon=True)
    thread.start()
    try:
        assert assistant.ask(Question("complete", 7, "x", 1, 1)) == Completions(7, 0, ())
    finally:
        assistant.close()
        for end in (theirs, keeper):
            end.close()
        for pipe in (out_end, err_end):
            os.close(pipe)
        thread.join()


@pytest.mark.parametrize(
    ("text", "names", "start"),
    [
        ("torch.|", {"softmax", "nn", "float32", "Tensor"}, 6),
        ("y = F.cross|", {"cross_entropy"}, 6),
        ("nn.|", {"Linear", "Module", "functional"}, 3),
        ("x = torch.zeros(3)\nx.vi|", {"view", "view_as"}, 2),
        ("loss = F.mse_loss(1, 2)\nloss.back|", {"backward"}, 5),
        ("opt = torch.optim.SGD([])\nopt.zero|", {"zero_grad"}, 4),
        ("F.mse_loss(1, 2, red|)", {"reduction="}, 17),
        ("def f(x):\n    return x.su|m()\n\nf(torch.zeros(3))\n", {"sum", "sub"}, 13),
        ("class N(nn.Module):\n    def f(self):\n        self.par|", {"parameters"}, 13),
        ("from torch.nn import Lin|", {"Linear"}, 21),
        ("pri|", {"print"}, 0),
        ("torch._util|", {"_utils"}, 6),
    ],
)
def test_names_that_fit(learnt, text, names, start):
    answer = ask(learnt, IMPORTS + text)
    assert isinstance(answer, Completions)
    assert names <= set(answer.names)
    assert answer.start == start


def test_names_of_a_module_are_its_own(learnt):
    names = ask(learnt, IMPORTS + "torch.|").names
    assert not {"os", "sys", "builtins", "Callable", "Any", "_C"} & set(names)
    assert "os" not in ask(learnt, IMPORTS + "F.|").names


def test_common_names_come_first(learnt):
    of_torch = ask(learnt, IMPORTS + "torch.|").names
    assert of_torch.index("softmax") < of_torch.index("saddmm")
    of_tensor = ask(learnt, IMPORTS + "x = torch.ones(3)\nx.|").names
    assert of_tensor.index("view") < of_tensor.index("abs_")
    of_layer = ask(learnt, IMPORTS + "layer = torch.nn.Linear(2, 2)\nlayer.|").names
    assert of_layer.index("parameters") < of_layer.index("add_module")


def test_a_name_that_means_something_else_is_not_taken_for_the_module(learnt):
    text = "import torch\ntorch = 'a word'\ntorch.|"
    assert "upper" in ask(learnt, text).names


def test_what_a_run_has_made_is_known_of_names_that_the_text_does_not_tell(learnt):
    known = (
        Typed("x", "torch.Tensor"), Typed("xs", "list[torch.Tensor]"),
        Typed("layer", "torch.nn.modules.linear.Linear"), Typed("d", "dict[str, torch.Tensor]"),
        Typed("f.a", "torch.Tensor"), Typed("f.b", "str"), Typed("odd", "no.such.Class"),
        Typed("bad", "__import__('os').system('true')"),
    )  # fmt: skip
    begin = IMPORTS + "x, xs, layer, d = make()\n"
    assert not ask(learnt, begin + "x.vi|").names
    for text, name in (
        ("x.vi|", "view"), ("for y in xs:\n    y.vi|", "view"), ("layer.wei|", "weight"),
        ("d['a'].vi|", "view"), ("def f(a, b):\n    a.vi|", "view"),
        ("def f(a, b):\n    c = a.view(-1)\n    c.su|", "sum"),
        ("def f(a, b):\n    a = b = make()\n    b.upp|", "upper"),
    ):  # fmt: skip
        assert name in ask(learnt, begin + text, known=known).names, text
    assert ask(learnt, begin + "odd.|", known=known).names == ()
    assert ask(learnt, begin + "bad.|", known=known).names == ()


def test_a_run_tells_the_types_of_its_names(learnt):
    source = IMPORTS + (
        "x = torch.zeros(2)\nparts = [x]\npair = (x, 3)\nnets = {'a': nn.ReLU()}\nnone = None\n"
        "class Net: pass\nnet = Net()\ndef f(a):\n    b = a + 1\n    raise ValueError\nf(x)\n"
    )
    found = types(learnt, source)
    assert found == {
        "device": "torch.device", "x": "torch.Tensor", "parts": "list[torch.Tensor]",
        "pair": "tuple[torch.Tensor, int]", "none": "None", "net": "Net",
        "nets": "dict[str, torch.nn.modules.activation.ReLU]",
        "f.a": "torch.Tensor", "f.b": "torch.Tensor",
    }  # fmt: skip
    assert not any(type(e) is Types for e in learnt.start(Job(source)))


def test_a_check_tells_what_it_has_called_the_functions_with(learnt):
    judge = Judge(CHECKS, "checks/a.py")
    found = types(learnt, "def pick(x, rest, key=3):\n    return x\n", judge)
    assert found["pick.x"] == "torch.Tensor"
    assert found["pick.rest"] == "list[torch.Tensor]"
    assert found["pick.key"] == "None"


def test_objects_that_resist_do_no_harm(learnt):
    found = types(
        learnt,
        "class M(type):\n    __module__ = property(lambda s: 1 / 0)\nclass A(metaclass=M):\n"
        "    __class__ = property(lambda s: 1 / 0)\n    def __bool__(self): raise SystemExit\n"
        "a = A()\nx = [a]\nself = []\nself.append(self)\n",
    )
    assert found["self"].startswith("list")


@pytest.mark.parametrize(
    ("text", "name", "signature", "word"),
    [
        ("torch.soft|max", "torch.softmax", "softmax(input, dim, *", "Alias"),
        ("x = torch.zeros(1)\nx.view|", "torch.Tensor.view", "view(*shape)", "new tensor"),
        ("nn.Linear|", "torch.nn.Linear", "Linear(in_features: int", "linear transformation"),
        ("F.relu|", "torch.nn.functional.relu", "relu(input, in", "rectified"),
        ("def own(a, b=2):\n    'Does it.'\nown|", "own", "own(a, b=2)", "Does it."),
        ("len|", "len", "len(obj, /)", "number of items"),
    ],
)  # fmt: skip
def test_what_a_name_says_of_itself(learnt, text, name, signature, word):
    answer = ask(learnt, IMPORTS + text, "explain")
    assert isinstance(answer, Documentation)
    assert answer.name == name
    assert answer.signatures[0].startswith(signature)
    assert word in answer.text


def test_what_a_variable_holds(learnt):
    answer = ask(learnt, IMPORTS + "layer = nn.Linear(2, 3)\nlayer|", "explain")
    assert (answer.name, answer.kind) == ("layer", "torch.nn.Linear")
    assert ask(learnt, IMPORTS + "nobody|", "explain").name == ""


def assistant_of(runner: Runner) -> list[int]:
    """The processes below the zygote, the newest last."""
    found = [str(runner._zygote._process.pid)]
    for pid in found:
        found += children(pid)
    return sorted(map(int, found))


def test_a_dead_or_silent_assistant_is_replaced(learnt, monkeypatch):
    question = Question("complete", 1, "import torch\ntorch.|".replace("|", ""), 2, 6)
    spare = learnt._assistant._spare
    silence = SimpleNamespace(select=lambda *_: ([], [], []))
    with monkeypatch.context() as patch:
        patch.setattr("tensortutor.runner.assistant.select", silence)
        assert learnt.ask(question) is None
    assert "softmax" in learnt.ask(question).names
    assert learnt._assistant._spare is not spare
    before = set(assistant_of(learnt))
    os.kill(max(before), signal.SIGKILL)
    for _ in range(3):  # the one that was killed may have been a waiting spare
        answer = learnt.ask(question)
        if answer is not None:
            break
    assert "softmax" in answer.names


def test_texts_that_cannot_be_understood_get_an_answer_all_the_same(learnt):
    for text in (
        "|",
        "(" * 500 + "x.|",
        "def\n\x00.|",
        "'''|",
        "é.ü.|",
        "x = " + "a." * 3000 + "|",
    ):
        assert ask(learnt, text).number == 7
        assert ask(learnt, text, "explain").number == 7
    assert learnt.ask(Question("complete", 7, "x", 99, 99)).names == ()
    assert learnt.ask(Question("complete", 7, "x" * 1_000_000, 1, 1)) is None


def test_nobody_answers_before_pytorch_is_there(tmp_path):
    with Runner(Settings(scratch=tmp_path, device="cpu")) as runner:
        runner.attend()
        assert runner.ask(Question("complete", 1, "x", 1, 1)) is None
    assert runner.ask(Question("complete", 1, "x", 1, 1)) is None
