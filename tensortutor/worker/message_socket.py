"""Messages over a socket, for the processes of the worker."""

import socket
import threading
from typing import Any

from tensortutor.protocol.framing import Decoder, encode
from tensortutor.protocol.setup import message_from_json, message_to_json


class MessageSocket:
    """Frames in both directions over one socket."""

    def __init__(self, sock: socket.socket) -> None:
        self.sock = sock
        self._decoder = Decoder()
        self._waiting: list[Any] = []
        self._lock = threading.Lock()

    def send(self, message: Any) -> None:
        """Send one message of protocol.setup."""
        self.send_json(message_to_json(message))

    def send_json(self, *data: dict[str, Any]) -> None:
        """Send JSON objects, at once. Raises OSError when the other side is gone."""
        with self._lock:
            self.sock.sendall(b"".join(map(encode, data)))

    def receive(self) -> Any | None:
        """The next message, or None when the other side is gone. Blocks."""
        while not self._waiting:
            try:
                data = self.sock.recv(1 << 16)
            except ConnectionError:
                return None
            if not data:
                return None
            self._waiting += map(message_from_json, self._decoder.feed(data))
        return self._waiting.pop(0)

    def receive_all(self) -> list[Any]:
        """Every message that has come; the last is None when the other side is gone.

        Blocks until there is one.
        """
        first = self.receive()
        rest, self._waiting = self._waiting, []
        return [first, *rest]
