"""What the guard around a learner's code notices, on interpreters with versions of dicts or none.

In processes of their own: what is replaced here is put back by what is tested.
"""

import subprocess
import sys

import pytest

CHANGES = """
import os
import sys
from tensortutor.worker import integrity

print(integrity.HAVE_VERSIONS, flush=True)
import torch
from tensortutor.checking import expect

class Yes:
    def __eq__(self, other):
        return True

class Name(str):
    def __eq__(self, other):
        return True
    __hash__ = str.__hash__

def rename():
    names = vars(expect)
    kept = dict(names)
    names.clear()
    names.update({Name(k + "_") if k == "fail" else k: v for k, v in kept.items()})

CHANGES = {
    "a name of a module": lambda: setattr(torch, "isclose", Yes()),
    "a name of torch that is deleted": lambda: delattr(torch, "allclose"),
    "a name that is another": rename,
    "a method": lambda: setattr(torch.Tensor, "backward", Yes()),
    "an added method": lambda: setattr(torch.Tensor, "all", Yes()),
    "code": lambda: setattr(expect.fail, "__code__", (lambda m, *, hint="": None).__code__),
    "defaults": lambda: setattr(expect._none, "__defaults__", (Yes(),)),
    "keywords": lambda: expect.fail.__kwdefaults__.update(hint=Yes()),
    "builtins": lambda: setattr(sys.modules["builtins"], "isinstance", Yes()),
    "the guard": lambda: setattr(integrity, "restore", lambda *_: None),
}
SEEN = {
    "a name of a module": lambda: torch.isclose,
    "a name of torch that is deleted": lambda: torch.allclose,
    "a name that is another": lambda: vars(expect)["fail"],
    "a method": lambda: torch.Tensor.backward,
    "an added method": lambda: vars(torch.Tensor).get("all"),
    "code": lambda: expect.fail.__code__,
    "defaults": lambda: expect._none.__defaults__,
    "keywords": lambda: expect.fail.__kwdefaults__["hint"],
    "builtins": lambda: isinstance,
    "the guard": lambda: integrity.restore,
}
# A process forked for each: what is told apart there is not looked up when it is imported.
for versions in (True, False):
    if os.fork():
        status = os.wait()[1]
        if status:
            sys.exit(f"with versions {versions}: {status}")
    else:
        break
else:
    sys.exit()
integrity.HAVE_VERSIONS = integrity.HAVE_VERSIONS and versions
snapshot = integrity.Snapshot()
for what, change in CHANGES.items():
    before = SEEN[what]()
    after = snapshot.mark()
    change()
    after()
    assert SEEN[what]() is before, what
    # Without versions the order counts as well, and what was deleted comes back at the end.
    assert not (integrity.HAVE_VERSIONS and integrity.is_changed(snapshot.within)), what
print(len(CHANGES), "put back")
"""


@pytest.fixture(scope="module")
def told() -> list[str]:
    """What a process says in which everything is changed: torch is imported once for both tests."""
    done = subprocess.run([sys.executable, "-c", CHANGES], capture_output=True, text=True)
    return [*done.stdout.splitlines(), done.stderr]


def test_every_kind_of_change_is_put_back_with_versions_and_without(told: list[str]) -> None:
    assert told[1:] == ["10 put back"] * 2 + [""]


def test_dicts_tell_their_version_where_interpreters_have_them(told: list[str]) -> None:
    assert told[0] == str(sys.version_info < (3, 14)), told
