"""How a run ended, in a sentence that a learner can use."""

import signal

from tensortutor.protocol.events import Finished, Raised
from tensortutor.protocol.jobs import Limits
from tensortutor.protocol.setup import Ended, Exited

SIGNALS = {
    signal.SIGSEGV: "it touched memory that is not its own (segmentation fault)",
    signal.SIGABRT: "it gave up on itself (abort)",
    signal.SIGKILL: "most likely the machine ran out of memory",
    signal.SIGBUS: "a mapped file or /dev/shm was too small (bus error)",
    signal.SIGFPE: "an integer was divided by zero",
    signal.SIGILL: "this processor does not know an instruction of it",
    signal.SIGXCPU: "it used up its processor time",
    signal.SIGXFSZ: "a file grew over the limit",
}
NO_MEMORY = ("can't allocate memory", "Cannot allocate memory", "CUDA out of memory")


def after_ended(ended: Ended, error: Raised | None, limits: Limits, ms: float) -> Finished:
    """The program ran to its end or to an exception."""
    code = ended.code & 0xFF
    if error is not None and code == 130:
        return Finished("stopped", 130, "Stopped.", ms)
    if ended.sentence:
        return Finished("raised" if error is not None else "exited", code, ended.sentence, ms)
    if error is not None and is_memory(error):
        return Finished("memory", code, memory_sentence(error, limits), ms)
    if error is not None:
        where = f" in line {error.frames[-1].line}" if error.frames else ""
        return Finished("raised", code, f"{error.type}{where}.", ms)
    if code:
        return Finished("exited", code, f"The program ended itself with status {code}.", ms)
    return Finished("done", 0, f"Done in {duration(ms)}.", ms)


def after_exited(exited: Exited, limits: Limits, ms: float) -> Finished:
    """The program's process went away without a word of its own."""
    if exited.sentence:
        return Finished("lost", 70, exited.sentence, ms)
    if exited.reason == "processes":
        text = f"Ended: it started more than {limits.processes} processes."
        return Finished("processes", exited.code, text, ms)
    if exited.reason == "memory":
        text = f"Ended: its processes together took more than {limits.memory_bytes / 2**30:g} GiB."
        return Finished("memory", exited.code, text, ms)
    if exited.reason == "files":
        text = f"Ended: its files grew over {limits.file_bytes / 2**30:g} GiB."
        return Finished("files", exited.code, text, ms)
    if exited.signal:
        name = signal.Signals(exited.signal).name if exited.signal in list(signal.Signals) else ""
        why = SIGNALS.get(signal.Signals(exited.signal), "") if name else ""
        text = f"Killed by signal {exited.signal}" + (f" ({name})" if name else "")
        return Finished("killed", exited.code, f"{text}{': ' + why if why else ''}.", ms)
    text = f"The process ended at once with status {exited.code}, without the usual clean-up."
    return Finished("exited", exited.code, text, ms)


def after_time(limits: Limits, ms: float) -> Finished:
    """The wall clock ran out."""
    text = (
        f"Stopped after {limits.wall_s:g} s, the limit of a run. "
        "Look for a loop that does not end, or give it less to do."
    )
    return Finished("time", 137, text, ms)


def is_memory(error: Raised) -> bool:
    """The exception says that memory ran out."""
    return error.type in ("MemoryError", "OutOfMemoryError") or any(
        words in error.message for words in NO_MEMORY
    )


def memory_sentence(error: Raised, limits: Limits) -> str:
    """Whose memory, and how much there was."""
    if error.type == "OutOfMemoryError":
        return "The device has no memory left for this; the next run starts with a clean device."
    return f"Out of memory: a run may use {limits.memory_bytes / 2**30:g} GiB."


def duration(ms: float) -> str:
    """3 ms, 1.2 s, 2 min 5 s."""
    if ms < 1000:
        return f"{ms:.0f} ms"
    if ms < 60_000:
        return f"{ms / 1000:.1f} s"
    return f"{ms // 60_000:.0f} min {ms % 60_000 / 1000:.0f} s"
