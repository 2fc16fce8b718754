"""Puts a check file's checks to a program that has run, and signs what they find."""

import contextlib
import functools
import gc
import hashlib
import json
import linecache
import random
import sys
import time
import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from types import CodeType, FrameType, FunctionType, ModuleType
from typing import Any

import torch
from torch.overrides import TorchFunctionMode, handle_torch_function, has_torch_function

from tensortutor.checking.answer import Answer, MissingName
from tensortutor.checking.call_arguments import told
from tensortutor.checking.declare import Check, Declarations, base_name, declared
from tensortutor.checking.expect import Advised, Unmet
from tensortutor.protocol.events import CheckStarted, Verdict, event_to_json
from tensortutor.protocol.jobs import Judge
from tensortutor.protocol.setup import Foresee
from tensortutor.worker.capture import Channel
from tensortutor.worker.check_errors import error_parts
from tensortutor.worker.integrity import Snapshot, own_classes, threads_left
from tensortutor.worker.typenames import TypeNames

CHECKS = "the_checks"
"""The name under which the check file is a module."""
THREADS = "The program leaves threads running. End them before the checks begin."

TAMPERED = "While it was checked, the program changed what judges it."


class Judging:
    """One judging: made before the learner's program runs, used after."""

    def __init__(
        self, judge: Judge, signer: "Signer", channel: Channel, device: torch.device,
        snapshot: Snapshot, compiled: "Compiled | None" = None,
    ) -> None:  # fmt: skip
        """snapshot: taken before anything of the learner's ran. compiled: a check file that was
        expected; it need not be the one that has come.
        """
        self._judge = judge
        self._signer = signer
        self._channel = channel
        self._device = device
        self._declared = load(judge, compiled)
        self._snapshot = snapshot
        classes = own_classes(sys.modules[CHECKS])
        self._kinds = tuple(kind for kind in classes if issubclass(kind, torch.Tensor))
        self._snapshot.add(sys.modules[CHECKS], sys.modules[__name__])
        self.after_program = self._snapshot.mark(whole=True)
        """To be called when the program has run, before anything is looked up by name."""
        gc.freeze()  # what is frozen is in no list of the garbage collector: copies stay unseen
        self._variant: set[CodeType] = set()

    def put_to(
        self, namespace: dict[str, Any], source: str, path: str, output: str,
        types: TypeNames | None = None,
    ) -> None:  # fmt: skip
        """Run every check on the program's names; one verdict each.

        types: where to note what the program's functions are called with.
        """
        self._substitute(namespace)
        answer = Answer(namespace, source, output)
        answer.guard = self._snapshot.mark
        answer.own_kinds = self._kinds
        if types is not None:
            answer.witness = types.take_call
        busy = threads_left()
        found: list[dict[str, Any]] = []  # goes out with the next beginning: one message a check
        for check in self._declared.checks:
            self._channel.send_json(*found, event_to_json(CheckStarted(check.name)))
            verdict = Verdict(check.name, False, 0, 0.0, THREADS)
            if not busy:
                verdict = self._try(check, answer, path)
            found = [self._signer.signed(verdict)]
            if not verdict.passed and check.name in self._judge.until:
                break
        self._channel.send_json(*found)

    def _substitute(self, namespace: dict[str, Any]) -> None:
        for substitute in self._declared.substitutes:
            if substitute.name == self._judge.variant:
                namespace[substitute.value.__name__] = substitute.value
                self._variant |= code_of(substitute.value)

    def _try(self, check: Check, answer: Answer, path: str) -> Verdict:
        begun = time.perf_counter()
        verdict = Verdict(check.name, True, 0, 0.0)
        for seed in self._judge.seeds:
            answer.last_call = answer.last_result = ""
            answer.last_inputs = ()
            answer.calls = Counter()
            answer.keeps_subclasses = check.subclasses
            whose = Whose(path, self._judge.filename, self._variant)
            watch = Watch(check, answer, whose)
            with calm(), own_warnings(whose), watch if check.watched else contextlib.nullcontext():
                put_back = self._snapshot.mark(whole=True)
                wrong = judge_once(check, answer, seed, self._device, path, self._judge.filename)
                # Before the verdict: the text of an error is the program's as well.
                if put_back() and wrong is None:
                    wrong = {"message": TAMPERED}
            known = wrong or {"called": answer.last_call}
            verdict = watch.overrule(Verdict(check.name, wrong is None, seed, 0.0, **known))
            if verdict.passed == self._judge.every:
                break  # no other seed can change it
        milliseconds = (time.perf_counter() - begun) * 1000
        return Verdict(**{**vars(verdict), "ms": milliseconds})


class Signer:
    """Signs verdicts with a keyed hash: only who has the key can make one that counts."""

    def __init__(self, key: str) -> None:
        # The hash object holds the key where Python code cannot read it.
        self._hash = hashlib.blake2b(key=bytes.fromhex(key))

    def signed(self, verdict: Verdict) -> dict[str, Any]:
        """The verdict as JSON, with its signature (hex) under "mac"."""
        data = event_to_json(verdict)
        keyed = self._hash.copy()
        keyed.update(json.dumps(data, sort_keys=True).encode())
        return {**data, "mac": keyed.hexdigest()}


@dataclass(frozen=True)
class Compiled:
    """A check file that was compiled while there was time."""

    file: Foresee
    code: CodeType

    @classmethod
    def of(cls, file: Foresee) -> "Compiled":
        """Compile it. Raises SyntaxError."""
        return cls(file, compile(file.source, file.filename, "exec"))


def load(judge: Judge, compiled: Compiled | None = None) -> Declarations:
    """Execute a check file and take what it declares."""
    file = Foresee(judge.filename, judge.source)
    if compiled is None or compiled.file != file:
        compiled = Compiled.of(file)
    declared.checks, declared.substitutes = [], []
    module = ModuleType(CHECKS)
    module.__file__ = judge.filename
    sys.modules[module.__name__] = module
    exec(compiled.code, vars(module))
    # The sandbox has no such file, and what a check was doing is told in its own words.
    lines = judge.source.splitlines(keepends=True)
    linecache.cache[judge.filename] = (len(judge.source), None, lines, judge.filename)
    found = Declarations(declared.checks, declared.substitutes)
    declared.checks, declared.substitutes = [], []  # the program finds none there
    return found


def judge_once(
    check: Check, answer: Answer, seed: int, device: torch.device, path: str, check_path: str
) -> dict[str, Any] | None:
    """One check with the inputs of one seed. What is wrong, as fields of a verdict, or None.

    The paths: of the program, and of the check file.
    """
    rng = random.Random(seed)
    seed_torch(rng.randrange(2**31), device)
    try:
        check.run(answer, rng, device)
    except Unmet as unmet:
        return {**vars(unmet), "hint": unmet.hint or check.hint, **called(answer)}
    except MissingName as missing:
        return {"message": str(missing)}
    except Advised as advised:
        said = {
            **error_parts(advised.error, path, answer),
            "got": "",
            "cause": "",
            "hint": advised.hint,
        }
        return {**said, **called(answer)}
    except KeyboardInterrupt:
        raise
    except BaseException as error:  # SystemExit, GeneratorExit: whatever the program may raise
        return {**error_parts(error, path, answer, check_path, check.hint), **called(answer)}
    return None


def called(answer: Answer) -> dict[str, Any]:
    """The call that has failed: how it reads, and the small ones of its tensors."""
    return {"called": answer.last_call, "input": told(answer.last_inputs)}


def seed_torch(seed: int, device: torch.device) -> None:
    """Seed the generators that a check on this device draws from.

    For each device that is not awake torch.manual_seed formats the stack: half of the time that a
    small check takes.
    """
    if device.type == "cpu":
        torch.default_generator.manual_seed(seed)
    else:
        torch.manual_seed(seed)


@contextlib.contextmanager
def calm() -> Iterator[None]:
    """What one check or its program sets globally does not reach the next."""
    dtype = torch.get_default_dtype()
    grad = torch.is_grad_enabled()
    deterministic = torch.are_deterministic_algorithms_enabled()
    try:
        yield
    finally:
        torch.set_default_dtype(dtype)
        torch.set_grad_enabled(grad)
        if torch.are_deterministic_algorithms_enabled() != deterministic:
            torch.use_deterministic_algorithms(deterministic)
        torch.set_default_device(None)
        # Older versions, 2.6 among them, cannot tell the default device once it has been None.
        vars(torch._GLOBAL_DEVICE_CONTEXT).pop("device_context", None)


class Whose:
    """Tells whether the code that runs is the learner's or the check's.

    It is the learner's when their file is nearer on the stack than the check file, so helpers of
    the check itself may do what the learner may not. The code of a variant stands in the check
    file, but takes the place of the learner's.
    """

    def __init__(self, path: str, check_path: str, variant: set[CodeType]) -> None:
        self._own = {path: True, check_path: False}
        self._variant = variant

    def is_learners(self, frame: FrameType | None) -> bool:
        """Of the code that has led to this frame."""
        while frame is not None:
            if frame.f_code in self._variant:
                return True
            own = self._own.get(frame.f_code.co_filename)
            if own is not None:
                return own
            frame = frame.f_back
        return False


@contextlib.contextmanager
def own_warnings(whose: Whose) -> Iterator[None]:
    """What the check itself does may warn as it likes: only the learner's warnings are shown."""
    show = warnings.showwarning

    def show_learners(*args: Any, **kwargs: Any) -> None:
        if whose.is_learners(sys._getframe(1)):
            show(*args, **kwargs)

    warnings.showwarning = show_learners
    try:
        yield
    finally:
        warnings.showwarning = show


def seen(backward: Callable[..., None]) -> Callable[..., None]:
    """`torch.autograd.backward` as later versions have it: a mode sees that it is called.

    Up to 2.9 at least, it goes past every mode, and so past what a check forbids.
    """
    if "handle_torch_function" in backward.__code__.co_names:
        return backward

    @functools.wraps(backward)
    def passed_on(tensors: Any, *args: Any, **kwargs: Any) -> None:
        given = tensors if isinstance(tensors, (tuple, list)) else (tensors,)
        if has_torch_function(tuple(given)):
            handle_torch_function(passed_on, tuple(given), tensors, *args, **kwargs)
        else:
            backward(tensors, *args, **kwargs)

    return passed_on


class Watch(TorchFunctionMode):
    """Counts the torch functions that the learner's code calls, and refuses the forbidden ones."""

    def __init__(self, check: Check, answer: Answer, whose: Whose) -> None:
        super().__init__()
        self._check = check
        self._answer = answer
        self._whose = whose
        self._refused = ""

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        name = base_name(function_name(func))
        if self._whose.is_learners(sys._getframe(1)):
            self._answer.calls[name] += 1
            if name in self._check.forbid:
                self._refused = name
                raise Forbidden(name)
        return func(*args, **(kwargs or {}))

    def overrule(self, verdict: Verdict) -> Verdict:
        """A forbidden call fails the check even where the program swallowed the refusal."""
        if not self._refused:
            return verdict
        return Verdict(
            verdict.check,
            False,
            verdict.seed,
            verdict.ms,
            called=verdict.called,
            input=verdict.input,
            message=f"`{self._refused}` is called, and it is what you are to build here",
            where=verdict.where,
        )


def code_of(value: Any) -> set[CodeType]:
    """The code of a function, or of all methods of a class, with what is defined inside."""
    functions = vars(value).values() if isinstance(value, type) else [value]
    found = [f.__code__ for f in functions if isinstance(f, FunctionType)]
    for code in found:  # grows while it is walked
        found += [inner for inner in code.co_consts if isinstance(inner, CodeType)]
    return set(found)


class Forbidden(RuntimeError):
    """A learner's code called a torch function that the check forbids."""

    def __init__(self, name: str) -> None:
        super().__init__(f"`{name}` is not allowed here: it is what you are to build")


def function_name(func: Any) -> str:
    """The name of what torch is about to call; for a property the property's name."""
    name = getattr(func, "__name__", "") or ""
    if name in ("__get__", "__set__"):
        return str(getattr(getattr(func, "__self__", None), "__name__", name))
    return str(name)
