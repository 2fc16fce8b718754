"""A TCP connection from the far end back to the near end, in the place of srun's own stream.

srun cuts what it carries at 1,024 bytes and waits for an acknowledgement: a message of 2 KB takes
44 ms. The near end listens and sends address and token through that stream; the far end tries to
connect, and both go on with srun's stream where it cannot. srun itself needs the same direction.
"""

import contextlib
import hmac
import json
import os
import secrets
import select
import socket
import threading
from collections.abc import Iterator

TRY_S = 2.0
"""For each address, and for the token of who has connected."""
TOKEN_BYTES = 32
STDIO = b"{}\n"
"""The offer that asks for nothing."""


class Listener:
    """Waits at the near end for one connection that knows the token."""

    def __init__(self) -> None:
        self._token = secrets.token_hex(TOKEN_BYTES).encode()
        self._server = socket.create_server(("", 0))
        self._found: socket.socket | None = None
        self._thread = threading.Thread(target=self._accept, daemon=True)
        self._thread.start()

    @property
    def offer(self) -> bytes:
        """A line for the far end. It goes through a stream that nobody else reads."""
        hosts = dict.fromkeys((socket.getfqdn(), socket.gethostname()))
        port = self._server.getsockname()[1]
        said = {"hosts": list(hosts), "port": port, "token": self._token.decode()}
        return json.dumps(said).encode() + b"\n"

    def connection(self) -> socket.socket:
        """What the far end has made, once it has said so. Raises OSError."""
        self._thread.join(TRY_S)
        found, self._found = self._found, None
        if found is None:
            raise OSError("nobody has connected")
        return found

    def close(self) -> None:
        """Listen no more. A connection that was taken stays."""
        with contextlib.suppress(OSError):
            self._server.shutdown(socket.SHUT_RDWR)
        self._server.close()
        self._thread.join(TRY_S)
        if self._found is not None:
            self._found.close()

    def _accept(self) -> None:
        """Others may connect as well: they do not know the token, and are hung up on."""
        while True:
            try:
                found, _ = self._server.accept()
            except OSError:
                return
            if hmac.compare_digest(read_token(found), self._token):
                found.settimeout(None)
                found.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                self._found = found
                return
            found.close()


def read_token(connection: socket.socket) -> bytes:
    """What a connection begins with, b"" if too little comes in time."""
    said = b""
    connection.settimeout(TRY_S)
    with contextlib.suppress(OSError):
        while len(said) < 2 * TOKEN_BYTES and (more := connection.recv(2 * TOKEN_BYTES)):
            said += more
    return said


def read_offer(source: int) -> bytes:
    """The near end's line, byte by byte: what follows it is not for this function."""
    line = b""
    while not line.endswith(b"\n") and (byte := read_byte(source)):
        line += byte
    return line


def read_byte(source: int) -> bytes:
    """One byte, waited for even where the descriptor does not block; b"" at the end."""
    select.select([source], [], [])
    return os.read(source, 1)


def dial(offer: bytes) -> socket.socket | None:
    """A connection to the near end, None where there is none to be had, or none is offered."""
    try:
        said = json.loads(offer)
        port, token = int(said["port"]), str(said["token"]).encode()
        hosts = [str(host) for host in said["hosts"]]
    except (KeyError, TypeError, ValueError):
        return None
    for host in (*launch_node(), *hosts):
        with contextlib.suppress(OSError):
            connection = socket.create_connection((host, port), TRY_S)
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            connection.sendall(token)
            connection.settimeout(None)
            return connection
    return None


def launch_node() -> Iterator[str]:
    """The address of the machine that srun was started on, as Slurm says it."""
    if address := os.environ.get("SLURM_LAUNCH_NODE_IPADDR"):
        yield address
