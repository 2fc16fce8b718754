"""What the kernel holds in the buffers of sockets, which no process has mapped.

Unix sockets are asked for by sock_diag(7); what lies in TCP and UDP sockets stands in /proc/net.
"""

import contextlib
import os
import socket
import struct
from collections.abc import Iterator

NETLINK_SOCK_DIAG, SOCK_DIAG_BY_FAMILY = 4, 20
NLM_F_REQUEST, NLM_F_DUMP, NLMSG_ERROR, NLMSG_DONE = 1, 0x300, 2, 3
UDIAG_SHOW_MEMINFO, UNIX_DIAG_MEMINFO = 0x20, 5
WMEM_ALLOC = 2
"""The place in the answer of the bytes sent from a socket that nobody has read yet."""
HEADER, REQUEST, ANSWER, ATTRIBUTE = "=IHHII", "=BBHIII8x", "=BBBBI8x", "=HH"
ANSWER_BYTES = 1 << 16
TABLES = ("tcp", "tcp6", "udp", "udp6")


def socket_bytes(pids: list[str]) -> int:
    """Bytes that wait in the sockets that some processes have open.

    A socket that is on its way to another process, and open in none, is not seen here.
    """
    own = set(inodes(pids))
    if not own:
        return 0
    held = 0
    with contextlib.suppress(OSError):  # a kernel without sock_diag
        held += sum(bytes for inode, bytes in unix_sockets() if inode in own)
    return held + sum(bytes for inode, bytes in inet_sockets() if inode in own)


def inodes(pids: list[str]) -> Iterator[int]:
    """The numbers of the sockets that processes have open."""
    return (inode for _, inode in _open_sockets(pids))


def files_in_flight(pids: list[str]) -> bool:
    """Whether open files are on their way through Unix sockets: sent, and not yet received.

    Their sender may have closed them since. Kernels before 5.9 do not tell.
    """
    for path, _ in _open_sockets(pids):
        with contextlib.suppress(OSError), open(path) as file:
            if any(line.startswith("scm_fds:") and int(line.split()[1]) for line in file):
                return True
    return False


def _open_sockets(pids: list[str]) -> Iterator[tuple[str, int]]:
    """Where /proc describes each socket that processes have open, and its number."""
    for pid in pids:
        with contextlib.suppress(OSError):  # it has just ended
            for name in os.listdir(f"/proc/{pid}/fd"):
                with contextlib.suppress(OSError):
                    target = os.readlink(f"/proc/{pid}/fd/{name}")
                    if target.startswith("socket:["):
                        yield f"/proc/{pid}/fdinfo/{name}", int(target[8:-1])


def unix_sockets() -> Iterator[tuple[int, int]]:
    """The number of each Unix socket of this network namespace, and the bytes sent from it.

    Raises OSError where the kernel does not answer.
    """
    with socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, NETLINK_SOCK_DIAG) as link:
        asked = struct.pack(REQUEST, socket.AF_UNIX, 0, 0, 0xFFFFFFFF, 0, UDIAG_SHOW_MEMINFO)
        length = struct.calcsize(HEADER) + len(asked)
        kind, flags = SOCK_DIAG_BY_FAMILY, NLM_F_REQUEST | NLM_F_DUMP
        link.send(struct.pack(HEADER, length, kind, flags, 1, 0) + asked)
        while True:
            answer = link.recv(ANSWER_BYTES)
            while answer:
                length, kind, *_ = struct.unpack_from(HEADER, answer)
                if kind in (NLMSG_DONE, NLMSG_ERROR):
                    return
                yield _unix_socket(answer[struct.calcsize(HEADER) : length])
                answer = answer[aligned(length) :]


def _unix_socket(message: bytes) -> tuple[int, int]:
    inode = struct.unpack_from(ANSWER, message)[4]
    message = message[struct.calcsize(ANSWER) :]
    while message:
        length, kind = struct.unpack_from(ATTRIBUTE, message)
        if kind == UNIX_DIAG_MEMINFO:
            return inode, struct.unpack_from("=I", message, 4 + 4 * WMEM_ALLOC)[0]
        message = message[aligned(length) :]
    return inode, 0


def aligned(length: int) -> int:
    """netlink(7) begins each part at a multiple of four bytes."""
    return max(length + 3 & ~3, 4)


def inet_sockets() -> Iterator[tuple[int, int]]:
    """The number of each TCP and UDP socket of this network namespace, and its waiting bytes."""
    empty = empty_tables()
    for table in TABLES:
        if table in empty:
            continue
        with contextlib.suppress(OSError), open(f"/proc/self/net/{table}") as file:
            for line in list(file)[1:]:
                words = line.split()
                sent, _, received = words[4].partition(":")
                yield int(words[9]), int(sent, 16) + int(received, 16)


def empty_tables() -> set[str]:
    """Those of TABLES that have no line now.

    To read a table, the kernel walks through room for hundreds of thousands of connections, which
    takes milliseconds. The counts cost nothing (proc(5), /proc/net/sockstat: `TCP: inuse 0 ...`).
    """
    found: set[str] = set()
    for counts in ("sockstat", "sockstat6"):
        with contextlib.suppress(OSError), open(f"/proc/self/net/{counts}") as file:
            found |= {line.partition(":")[0].lower() for line in file if line.split()[2] == "0"}
    return found.intersection(TABLES)
