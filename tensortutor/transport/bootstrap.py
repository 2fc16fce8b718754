"""What the near end sends: the other place needs nothing but a shell and Python with torch."""

import base64
import hashlib
import importlib.util
import io
import shlex
import zipfile
import zlib
from dataclasses import dataclass
from pathlib import Path

PACKAGE = Path(__file__).resolve().parent.parent
SENT = (
    "__init__.py", "options.py", "protocol", "drawing", "lab", "worker", "checking", "runner",
    "transport",
)  # fmt: skip
LIBRARIES = ("jedi", "parso")
"""What the assistant reads programs with: pure Python."""
NOT_SENT = {"__pycache__", "django-stubs", "stubs"}
"""Of other packages than Python's own and torch: three quarters of all bytes."""

MAGIC = b"tensortutor-stream "
"""Everything before it is somebody else's: banners, a shell's start files."""
EMPTY_LINES = 4
"""What start files of a shell read in vain (`read answer` in ~/.bashrc) is then none of ours."""
STAGE = """
import os, signal, sys
sys.path[:] = [p for p in sys.path if p]
import atexit, fcntl, hashlib, io, shutil, tempfile, time, zipfile
source, sink = os.dup(0), os.dup(1)
null = os.open(os.devnull, os.O_RDWR)
os.dup2(null, 0)
os.dup2(2, 1)
try:
    import tty
    for end in (source, sink):
        if os.isatty(end):
            tty.setraw(end)
except Exception:
    pass
def say(text):
    os.write(sink, ("tensortutor" + "-stream " + text + "\\n").encode())
def take(size):
    data = b""
    while len(data) < size:
        signal.alarm(120)  # nobody is there any more, or the line is dead
        more = os.read(source, min(size - len(data), 1 << 16))
        if not more:
            sys.exit(0)
        data += more
    return data
def make_folder():
    while True:
        path = tempfile.mkdtemp(prefix="tensortutor-far-")
        atexit.register(shutil.rmtree, path, True)
        fcntl.flock(os.open(path, os.O_RDONLY), fcntl.LOCK_EX)
        if os.path.isdir(path):  # nobody took it for a dead process's before it was locked
            return path
def remove_unlocked(path):
    try:
        folder = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    except OSError:
        return
    try:
        if os.fstat(folder).st_uid == os.getuid():
            fcntl.flock(folder, fcntl.LOCK_EX | fcntl.LOCK_NB)
            shutil.rmtree(path, ignore_errors=True)
    except OSError:
        pass
    finally:
        os.close(folder)
say("python %d %d %s" % (sys.version_info[0], sys.version_info[1], sys.executable))
digest, size = take(64).decode(), int(take(12))
cache = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
node = os.uname()[1]
prefix = "unpacking-%d-%s-" % (os.getpid(), node)
try:
    cache = os.path.join(cache, "tensortutor")
    os.makedirs(cache, mode=0o700, exist_ok=True)
    work = tempfile.mkdtemp(dir=cache, prefix=prefix)
except OSError:
    cache = make_folder()
    work = tempfile.mkdtemp(dir=cache, prefix=prefix)
atexit.register(shutil.rmtree, work, True)
folder = os.path.join(cache, "sent-" + digest[:20])
if not os.path.isdir(folder):
    say("send")
    data = take(size)
    if hashlib.sha256(data).hexdigest() != digest:
        sys.exit("What was sent did not arrive as it was sent: the line changes bytes.")
    zipfile.ZipFile(io.BytesIO(data)).extractall(work)
    try:
        os.rename(work, folder)
    except OSError:
        pass
shutil.rmtree(work, ignore_errors=True)
def is_stale(name, days):
    if name.startswith("sent-"):
        return days > 30
    if not name.startswith("unpacking-"):
        return False
    pid, where = name.split("-", 2)[1:]
    if days > 1 or where.rpartition("-")[0] != node:
        return days > 1
    try:
        os.kill(int(pid), 0)
    except ProcessLookupError:
        return True
    except OSError:
        pass
    return False
try:
    os.utime(folder)
    for name in os.listdir(cache):
        other = os.path.join(cache, name)
        if is_stale(name, (time.time() - os.path.getmtime(other)) / 86400):
            shutil.rmtree(other, ignore_errors=True)
except (OSError, ValueError):
    pass
try:
    for name in os.listdir(tempfile.gettempdir()):
        if name.startswith("tensortutor-far-"):
            remove_unlocked(os.path.join(tempfile.gettempdir(), name))
except OSError:
    pass
say("start")
sys.path.insert(0, folder)
from tensortutor.transport.dial_back import dial, read_offer
connection = dial(read_offer(source))
signal.alarm(0)  # from here on the far end looks after that
say("tcp" if connection else "stdio")
if connection:
    # The old stream stays open: who launched this ends it through it.
    kept, source, sink = (source, sink), connection.fileno(), os.dup(connection.fileno())
from tensortutor.transport.far import main
main(source, sink, make_folder)
"""
"""Runs in the place, on any Python 3: says its version, takes the archive if it is not there from
an earlier time, removes those that nobody has used for thirty days and what was left behind by ones
that were killed, and becomes the far end. Where the home cannot be written to, the archive goes to
a temporary folder, which its process keeps locked: without the lock, its process has ended."""


@dataclass(frozen=True)
class Archive:
    """A zip file of our own code. digest: its SHA-256, 64 hexadecimal digits."""

    data: bytes
    digest: str

    @property
    def header(self) -> bytes:
        """What is said before it."""
        return f"{self.digest}{len(self.data):012d}".encode()


def script(python: str, setup: str) -> bytes:
    """The lines for the shell of the place.

    The last is one line, shorter than a terminal takes at once (4096 bytes): no shell that has lost
    the begin of it carries out the rest.
    """
    begin = "\n" * EMPTY_LINES + (f"{setup}\n" if setup else "")
    packed = base64.b64encode(zlib.compress(STAGE.encode(), 9)).decode()
    stage = f"import base64, zlib; exec(zlib.decompress(base64.b64decode('{packed}')))"
    return f"{begin}exec {shlex.quote(python)} -u -c {shlex.quote(stage)}\n".encode()


def pack() -> Archive:
    """The archive, the same bytes for the same files."""
    roots = [(PACKAGE / part, PACKAGE.parent) for part in SENT]
    for name in LIBRARIES:
        spec = importlib.util.find_spec(name)
        if spec is not None and spec.origin:
            folder = Path(spec.origin).parent
            roots.append((folder, folder.parent))
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive:
        for root, base in roots:
            for path in sorted(root.rglob("*")) if root.is_dir() else [root]:
                inside = path.relative_to(base)
                if path.is_file() and not NOT_SENT.intersection(inside.parts):
                    entry = zipfile.ZipInfo(str(inside))  # without the file's own date
                    archive.writestr(entry, path.read_bytes(), zipfile.ZIP_DEFLATED)
    data = buffer.getvalue()
    return Archive(data, hashlib.sha256(data).hexdigest())
