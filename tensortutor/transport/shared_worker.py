"""One zygote for all sessions of one user on this machine: `tensortutor worker --listen SOCKET`.

A session hands its control socket over (`join_worker.py`). The worker starts the zygote that the
first one asks for, passes orders on to it, and each process that it makes to the session that has
asked: what a run says goes from its process to its session, not through here.
"""

import contextlib
import errno
import fcntl
import hmac
import os
import secrets
import select
import socket
import time
from collections import deque
from typing import Any

from tensortutor.protocol.framing import Decoder, ProtocolError, encode
from tensortutor.protocol.setup import (
    Failed,
    Load,
    MakeSpare,
    Ready,
    Setup,
    SpareMade,
    message_from_json,
    message_to_json,
)
from tensortutor.runner.launch import start_zygote
from tensortutor.transport.join_worker import (
    MOST_BYTES,
    OTHERS,
    SECRET_BYTES,
    TAKEN,
    is_not_a_socket,
    lock_path,
    owner_of,
)

IDLE_S = 60.0
"""Without a session for so long, the worker ends."""
OTHER = (
    "The shared worker serves other settings (the sandbox, the interpreter, folders of your own). "
    "Start without it, or with another socket."
)


class SharedWorker:
    """Serves all in one thread: bubblewrap ends with the thread that has started it."""

    def __init__(self, server: socket.socket, secret: bytes, idle_s: float) -> None:
        """secret: what a session must know, SECRET_BYTES long."""
        self._server, self._secret, self._idle_s = server, secret, idle_s
        self._commands: dict[socket.socket, str] = {}
        self._decoders: dict[socket.socket, Decoder] = {}
        self._asked: deque[socket.socket] = deque()
        self._descriptors: deque[int] = deque()
        self._serves: tuple[str, Setup] | None = None
        self._zygote: socket.socket | None = None
        self._ready: Ready | None = None

    def serve(self) -> None:
        """Until the zygote ends, or nobody has been there for idle_s."""
        used = time.monotonic()
        while self._commands or time.monotonic() - used < self._idle_s:
            used = time.monotonic() if self._commands else used
            sources = [self._server, *self._decoders]
            for source in select.select(sources, [], [], min(1.0, self._idle_s))[0]:
                if source is self._server:
                    self._welcome()
                elif not self._hear(source):
                    if source is self._zygote:
                        for session in self._commands:
                            tell(session, Failed("The shared PyTorch process has ended."))
                        return
                    self._forget(source)

    def _welcome(self) -> None:
        connection, _ = self._server.accept()
        with connection, contextlib.suppress(OSError, UnicodeDecodeError):
            if owner_of(connection) != os.getuid():
                return
            connection.settimeout(1.0)
            data, descriptors, _, _ = socket.recv_fds(connection, MOST_BYTES, 1)
            secret, command = data[:SECRET_BYTES], data[SECRET_BYTES:]
            for descriptor in descriptors:
                session = socket.socket(fileno=descriptor)
                if not hmac.compare_digest(secret, self._secret):
                    return
                self._commands[session], self._decoders[session] = command.decode(), Decoder()
                connection.send(b"k")

    def _hear(self, source: socket.socket) -> bool:
        """Whether there is somebody still."""
        try:
            data, descriptors, _, _ = socket.recv_fds(source, 1 << 16, 16)
            if source is self._zygote:
                self._descriptors += descriptors
            for message in map(message_from_json, self._decoders[source].feed(data)):
                if source is self._zygote:
                    self._pass_on(message)
                elif isinstance(message, Setup):
                    self._join(source, message)
                elif isinstance(message, (MakeSpare, Load)) and self._zygote is not None:
                    if isinstance(message, MakeSpare):
                        self._asked.append(source)
                    self._zygote.sendall(encode(message_to_json(message)))
        except (OSError, ProtocolError):
            return False
        return bool(data)

    def _join(self, session: socket.socket, setup: Setup) -> None:
        """Start the zygote for the first session. Raises OSError."""
        wanted = self._commands[session], setup
        if self._serves is None:
            self._serves = wanted
            _, self._zygote = start_zygote(wanted[0].split("\0"), setup)
            self._decoders[self._zygote] = Decoder()
        if self._serves != wanted:
            tell(session, Failed(OTHER))
        elif self._ready is not None:
            tell(session, self._ready)

    def _pass_on(self, message: Any) -> None:
        """To all; a process to who has asked for it, and nobody else holds a descriptor of it."""
        if not isinstance(message, SpareMade):
            self._ready = message if isinstance(message, Ready) else self._ready
            for session in self._commands:
                tell(session, message)
            return
        ends = [self._descriptors.popleft() for _ in range(4)]
        with contextlib.suppress(OSError):  # who has left does not listen: the process ends
            frame = encode(message_to_json(message))
            socket.send_fds(self._asked.popleft(), [frame], ends)
        for end in ends:
            os.close(end)

    def _forget(self, session: socket.socket) -> None:
        del self._commands[session], self._decoders[session]
        session.close()


def tell(control: socket.socket, message: object) -> None:
    """Send a message to who may have gone."""
    with contextlib.suppress(OSError):
        control.sendall(encode(message_to_json(message)))


def listen(path: str, idle_s: float = IDLE_S) -> None:
    """Be the worker at this socket. Raises BlockingIOError where there is one, or OSError."""
    if is_not_a_socket(path):
        raise FileExistsError(errno.EEXIST, TAKEN, path)
    os.makedirs(os.path.dirname(os.path.abspath(path)), mode=0o700, exist_ok=True)
    lock = os.open(lock_path(path), os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o600)
    if os.fstat(lock).st_size not in (0, SECRET_BYTES):
        raise FileExistsError(errno.EEXIST, f"{lock_path(path)} is no worker's", lock_path(path))
    fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    secret = secrets.token_bytes(SECRET_BYTES)
    os.pwrite(lock, secret, 0)
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as server:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(path)  # its worker was killed, or it would hold the lock
        usual = os.umask(OTHERS)
        server.bind(path)
        os.umask(usual)
        server.listen()
        try:
            SharedWorker(server, secret, idle_s).serve()
        finally:
            with contextlib.suppress(FileNotFoundError):
                os.unlink(path)
