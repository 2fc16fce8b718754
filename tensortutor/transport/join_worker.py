"""Hands a session's control socket to the shared worker of a Unix socket (see shared_worker.py).

    PYTHON .../join_worker.py SOCKET COMMAND CONTROL_FD

COMMAND: the zygote's, as JSON. Starts the worker where there is none. Ends when it is done.
"""

import json
import os
import socket
import stat
import struct
import subprocess
import sys
import time
from pathlib import Path

START_S = 60.0
LOOK_S = 0.05
MOST_BYTES = 1 << 17
"""Of a command: bubblewrap's names every folder that programs may read."""
OTHERS = 0o077
"""What is not for other users."""
TAKEN = "what is there is no socket"
SECRET_BYTES = 32
"""What a worker has written into its lock file. Landlock lets a program connect to any socket that
has a path, but not read that file: only who is not shut in is a session."""


def owner_of(connection: socket.socket) -> int:
    """The user at the other end of a Unix socket (on Linux)."""
    said = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, struct.calcsize("3i"))
    return int(struct.unpack("3i", said)[1])


def lock_path(path: str) -> str:
    """The file beside a worker's socket that it keeps locked, and its secret in."""
    return f"{path}.lock"


def is_not_a_socket(path: str) -> bool:
    """Whether a file is there that is no socket: somebody's own, which must stay."""
    try:
        return not stat.S_ISSOCK(os.lstat(path).st_mode)
    except FileNotFoundError:
        return False


def join(path: str, command: bytes, control: int) -> bool:
    """Whether a worker has taken it. Exits with a sentence where none ever will."""
    try:
        with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as connection:
            connection.connect(path)
            if owner_of(connection) != os.getuid():
                sys.exit(f"the worker at {path} is another user's")
            secret = Path(lock_path(path)).read_bytes()
            socket.send_fds(connection, [secret + command], [control])
            return bool(connection.recv(1))
    except (FileNotFoundError, ConnectionError):
        if is_not_a_socket(path):
            sys.exit(f"{path} leads to no worker: {TAKEN}")
        return False  # nobody is there yet, or was about to end
    except OSError as error:
        sys.exit(f"{path} leads to no worker: {error.strerror or error}")


def main(path: str, command: str, control: int) -> None:
    """Join, if need be a worker that is started for it."""
    words = "\0".join(json.loads(command)).encode()
    deadline, worker = time.monotonic() + START_S, None
    while not join(path, words, control):
        if time.monotonic() > deadline:
            sys.exit(f"no worker answers at {path}")
        if worker is None:
            code = "import sys; sys.path.insert(0, sys.argv[1]); from tensortutor.transport"
            code += ".shared_worker import listen; listen(sys.argv[2])"
            package = str(Path(__file__).resolve().parents[2])
            # With -c Python imports from where it is started: not from a folder of the learner's.
            worker = subprocess.Popen(
                [sys.executable, "-c", code, package, path], cwd="/", start_new_session=True,
                stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
            )  # fmt: skip
        time.sleep(LOOK_S)


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], int(sys.argv[3]))
