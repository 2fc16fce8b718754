"""The Linux system calls that confine a process and that Python has no words for.

Everything here fails with OSError, or answers False where the caller has another way. Constants
are from the kernel's uapi headers.
"""

import ctypes
import os
import platform
import struct
import sys
from collections.abc import Sequence
from typing import NoReturn

LINUX = sys.platform == "linux"
_libc = ctypes.CDLL(None, use_errno=True)

CLONE_NEWNS = 0x00020000
CLONE_NEWCGROUP = 0x02000000
CLONE_NEWIPC = 0x08000000
CLONE_NEWUSER = 0x10000000
CLONE_NEWPID = 0x20000000
MS_RDONLY, MS_NOSUID, MS_NODEV, MS_NOEXEC, MS_REMOUNT, MS_BIND, MS_REC = 1, 2, 4, 8, 32, 4096, 16384
PR_SET_PDEATHSIG, PR_SET_DUMPABLE, PR_SET_SECCOMP = 1, 4, 22
PR_CAPBSET_DROP, PR_SET_CHILD_SUBREAPER, PR_SET_NO_NEW_PRIVS = 24, 36, 38
CAPABILITY_VERSION_3 = 0x20080522


def _fail(what: str) -> NoReturn:
    code = ctypes.get_errno()
    raise OSError(code, f"{what}: {os.strerror(code)}")


def prctl(option: int, value: int = 0) -> None:
    """prctl(2) with one argument."""
    if _libc.prctl(option, ctypes.c_ulong(value), 0, 0, 0) != 0:
        _fail(f"prctl {option}")


def unshare(flags: int) -> None:
    """unshare(2)."""
    if _libc.unshare(flags) != 0:
        _fail("unshare")


def mount(source: str, target: str, kind: str, flags: int, options: str = "") -> None:
    """mount(2)."""
    arguments = (source.encode(), target.encode(), kind.encode() or None)
    if _libc.mount(*arguments, ctypes.c_ulong(flags), options.encode() or None) != 0:
        _fail(f"mount {target}")


def drop_capabilities() -> None:
    """Give up every capability, for this process and all that it will become."""
    for capability in range(64):
        # Beyond the kernel's last capability the call answers EINVAL: then we are done.
        if _libc.prctl(PR_CAPBSET_DROP, ctypes.c_ulong(capability), 0, 0, 0) != 0:
            break
    header = struct.pack("Ii", CAPABILITY_VERSION_3, 0)
    nothing = struct.pack("6I", *[0] * 6)
    if _libc.capset(header, nothing) != 0:
        _fail("capset")


def map_own_user(uid: int, gid: int) -> None:
    """In a new user namespace: be the user that one was before."""
    write("/proc/self/setgroups", "deny")
    write("/proc/self/uid_map", f"{uid} {uid} 1")
    write("/proc/self/gid_map", f"{gid} {gid} 1")


def write(path: str, text: str) -> None:
    """Write a small kernel file at once."""
    descriptor = os.open(path, os.O_WRONLY)
    try:
        os.write(descriptor, text.encode())
    finally:
        os.close(descriptor)


# --- Landlock: what a process may reach in the file system (security/landlock.rst) ---

LANDLOCK_CREATE, LANDLOCK_ADD, LANDLOCK_RESTRICT = 444, 445, 446
READ = 1 << 0 | 1 << 2 | 1 << 3  # execute, read file, read folder
WRITE_FILE, TRUNCATE, REFER, IOCTL_DEV = 1 << 1, 1 << 14, 1 << 13, 1 << 15
CHANGE = sum(1 << bit for bit in range(4, 13))  # remove and make every kind of file
FILE_RIGHTS = 1 << 0 | WRITE_FILE | 1 << 2 | TRUNCATE | IOCTL_DEV
SCOPE_ABSTRACT_SOCKETS, SCOPE_SIGNALS = 1, 2


def landlock_version() -> int:
    """The Landlock ABI that this kernel speaks, 0 if none."""
    if not LINUX:
        return 0
    return max(0, int(_libc.syscall(LANDLOCK_CREATE, None, ctypes.c_size_t(0), 1)))


class Landlock:
    """A rule set: paths that stay readable or writable; everything else is closed."""

    def __init__(self) -> None:
        version = landlock_version()
        self.rights = READ | WRITE_FILE | CHANGE
        self.rights |= REFER if version >= 2 else 0
        self.rights |= TRUNCATE if version >= 3 else 0
        self.rights |= IOCTL_DEV if version >= 5 else 0
        scopes = SCOPE_ABSTRACT_SOCKETS | SCOPE_SIGNALS if version >= 6 else 0
        attributes = struct.pack("QQQ", self.rights, 0, scopes)
        size = 24 if version >= 6 else 16 if version >= 4 else 8
        self._set = _libc.syscall(LANDLOCK_CREATE, attributes, ctypes.c_size_t(size), 0)
        if self._set < 0:
            _fail("landlock_create_ruleset")

    def allow(self, path: str, *, write: bool = False, make: bool = False) -> None:
        """Keep a path (with all below it) readable, writable, and open to new files."""
        rights = READ | (WRITE_FILE | TRUNCATE | IOCTL_DEV if write else 0)
        rights |= CHANGE | REFER if make else 0
        try:
            descriptor = os.open(path, os.O_PATH | os.O_CLOEXEC)
        except OSError:
            return  # what is not there needs no rule
        try:
            if not os.path.isdir(path):
                rights &= FILE_RIGHTS
            rule = struct.pack("=Qi", rights & self.rights, descriptor)
            if _libc.syscall(LANDLOCK_ADD, self._set, 1, rule, 0) != 0:
                _fail(f"landlock_add_rule {path}")
        finally:
            os.close(descriptor)

    def enforce(self) -> None:
        """From here on, for this process and its children. Needs no_new_privs."""
        if _libc.syscall(LANDLOCK_RESTRICT, self._set, 0) != 0:
            _fail("landlock_restrict_self")
        os.close(self._set)


# --- seccomp: which system calls a process may make ---

MACHINES = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7}
# name: (x86_64, aarch64). Calls that reach out of the sandbox or into other processes.
REFUSED = {
    "ptrace": (101, 117), "process_vm_readv": (310, 270), "process_vm_writev": (311, 271),
    "mount": (165, 40), "umount2": (166, 39), "pivot_root": (155, 41), "chroot": (161, 51),
    "open_tree": (428, 428), "move_mount": (429, 429), "fsopen": (430, 430),
    "fsconfig": (431, 431), "fsmount": (432, 432), "fspick": (433, 433),
    "mount_setattr": (442, 442), "setns": (308, 268), "unshare": (272, 97),
    "keyctl": (250, 219), "add_key": (248, 217), "request_key": (249, 218),
    "bpf": (321, 280), "perf_event_open": (298, 241), "userfaultfd": (323, 282),
    "io_uring_setup": (425, 425), "io_uring_enter": (426, 426), "io_uring_register": (427, 427),
    "open_by_handle_at": (304, 265), "name_to_handle_at": (303, 264), "pidfd_getfd": (438, 438),
    "kexec_load": (246, 104), "init_module": (175, 105), "finit_module": (313, 273),
    "delete_module": (176, 106), "reboot": (169, 142), "swapon": (167, 224),
    "swapoff": (168, 225), "acct": (163, 89), "syslog": (103, 116), "quotactl": (179, 60),
    "settimeofday": (164, 170), "clock_settime": (227, 112), "adjtimex": (159, 171),
    # System V memory belongs to no process: it is neither mapped nor open, so it cannot be counted.
    # Semaphores, queues and POSIX queues take the kernel's own memory, and outlive processes too.
    "shmget": (29, 194), "semget": (64, 190), "msgget": (68, 186), "mq_open": (240, 180),
    # Memory of files that no other process can look into.
    "memfd_secret": (447, 447),
}  # fmt: skip
OWN_ALONE = {
    "prlimit64": (302, 261), "sched_setscheduler": (144, 119), "sched_setparam": (142, 118),
    "sched_setattr": (314, 274),
}  # fmt: skip
"""Calls that change the process named first, if it is the same user's; 0 is the caller.

With another one's limits a program would end the app, or keep its keeper from opening /proc.
"""
GROUP_ALONE = {"setpriority": ((141, 140), 2), "ioprio_set": ((251, 30), 3)}
"""The same with a kind in front, and the first kind that is more than a group of processes."""
CALL_PRCTL = (157, 167)
SIGNAL_TO = {
    "kill": (62, 129), "tgkill": (234, 131), "rt_sigqueueinfo": (129, 138),
    "rt_tgsigqueueinfo": (297, 240), "pidfd_open": (434, 434),
}  # fmt: skip
SIGNAL_OTHERWISE = {"tkill": (200, 130), "pidfd_send_signal": (424, 424)}
"""Their argument is a thread or a descriptor, which a filter cannot tell from one's own."""
EVERYBODY = -1
CALL_TRUNCATE, CALL_OPEN, CALL_OPENAT, CALL_OPENAT2 = (76, 45), 2, (257, 56), (437, 437)
CLONE = (56, 220)
CLONE3 = (435, 435)
SOCKET = (41, 198)
NEW_NAMESPACES = 0x7E020000
EPERM, ENOSYS, EAFNOSUPPORT = 1, 38, 97
ALLOW, ERRNO = 0x7FFF0000, 0x00050000
LOAD, AND, JUMP_EQUAL, JUMP_SET, JUMP_ABOVE, RETURN = 0x20, 0x54, 0x15, 0x45, 0x35, 0x06
NUMBER, ARCHITECTURE, FIRST_ARGUMENT, SECOND_ARGUMENT, THIRD_ARGUMENT = 0, 4, 16, 24, 32
Row = tuple[int, int, int, int]
"""An instruction: opcode, rows to skip if true, rows to skip if false, value."""
AF_UNIX, AF_INET, AF_INET6, AF_NETLINK = 1, 2, 10, 16


def refused_if(number: int, *tests: tuple[Row, ...]) -> list[Row]:
    """Refuse a call to which one of the tests applies: rows that end in a jump."""
    body: list[Row] = []
    for test in tests:
        body += [*test, (RETURN, 0, 0, ERRNO | EPERM)]
    body.append((RETURN, 0, 0, ALLOW))
    return [(JUMP_EQUAL, 0, len(body), number), *body]


def argument_is(argument: int, value: int) -> tuple[Row, ...]:
    """A test: the argument is this one."""
    return (LOAD, 0, 0, argument), (JUMP_EQUAL, 0, 1, value & 0xFFFFFFFF)


def argument_is_not(argument: int, value: int) -> tuple[Row, ...]:
    """A test: the argument is another one. Of its 64 bits the lower 32 count, as for any id."""
    return (LOAD, 0, 0, argument), (JUMP_EQUAL, 1, 0, value)


def truncates_unwritten(argument: int) -> tuple[Row, ...]:
    """A test: the flags of an open say to empty a file that is opened for reading alone."""
    mask = os.O_TRUNC | os.O_ACCMODE
    return (LOAD, 0, 0, argument), (AND, 0, 0, mask), (JUMP_EQUAL, 0, 1, os.O_TRUNC)


def seccomp_program(
    machine: str, *, network: bool, truncation: bool = True, protected: Sequence[int] = ()
) -> bytes:
    """The filter, as the kernel's bytecode.

    network: sockets may also be TCP and UDP; else Unix sockets alone. truncation: a file may be cut
    by its name, as where Landlock says which (from version 3 on). protected: who gets no signals:
    processes and, as negative numbers, groups of them; if there is any, not all at once either.
    """
    which = 0 if machine == "x86_64" else 1
    rows: list[Row] = [
        (LOAD, 0, 0, ARCHITECTURE),
        (JUMP_EQUAL, 1, 0, MACHINES[machine]),
        (RETURN, 0, 0, ERRNO | ENOSYS),
        (LOAD, 0, 0, NUMBER),
    ]
    if machine == "x86_64":  # the x32 twins of the calls below
        rows += [(JUMP_ABOVE, 0, 1, 0x40000000), (RETURN, 0, 0, ERRNO | ENOSYS)]
    for numbers in REFUSED.values():
        rows += [(JUMP_EQUAL, 0, 1, numbers[which]), (RETURN, 0, 0, ERRNO | EPERM)]
    for numbers in OWN_ALONE.values():
        rows += refused_if(numbers[which], argument_is_not(FIRST_ARGUMENT, 0))
    for numbers, beyond in GROUP_ALONE.values():
        wide: tuple[Row, ...] = (LOAD, 0, 0, FIRST_ARGUMENT), (JUMP_ABOVE, 0, 1, beyond)
        rows += refused_if(numbers[which], wide, argument_is_not(SECOND_ARGUMENT, 0))
    # The keeper must be able to look into every process of the run.
    rows += refused_if(CALL_PRCTL[which], argument_is(FIRST_ARGUMENT, PR_SET_DUMPABLE))
    if protected:
        whom = [argument_is(FIRST_ARGUMENT, one) for one in (EVERYBODY, *protected)]
        for numbers in SIGNAL_TO.values():
            rows += refused_if(numbers[which], *whom)
        for numbers in SIGNAL_OTHERWISE.values():
            rows += [(JUMP_EQUAL, 0, 1, numbers[which]), (RETURN, 0, 0, ERRNO | EPERM)]
    if not truncation:
        rows += [(JUMP_EQUAL, 0, 1, CALL_TRUNCATE[which]), (RETURN, 0, 0, ERRNO | EPERM)]
        rows += [(JUMP_EQUAL, 0, 1, CALL_OPENAT2[which]), (RETURN, 0, 0, ERRNO | ENOSYS)]
        rows += refused_if(CALL_OPENAT[which], truncates_unwritten(THIRD_ARGUMENT))
        if machine == "x86_64":
            rows += refused_if(CALL_OPEN, truncates_unwritten(SECOND_ARGUMENT))
    # The C library falls back to clone, whose flags a filter can read.
    rows += [(JUMP_EQUAL, 0, 1, CLONE3[which]), (RETURN, 0, 0, ERRNO | ENOSYS)]
    rows += [
        (JUMP_EQUAL, 0, 4, CLONE[which]),
        (LOAD, 0, 0, FIRST_ARGUMENT),
        (JUMP_SET, 0, 1, NEW_NAMESPACES),
        (RETURN, 0, 0, ERRNO | EPERM),
        (RETURN, 0, 0, ALLOW),
    ]
    families = [AF_UNIX, AF_INET, AF_INET6, AF_NETLINK] if network else [AF_UNIX]
    rows += [(JUMP_EQUAL, 0, len(families) + 2, SOCKET[which]), (LOAD, 0, 0, FIRST_ARGUMENT)]
    for left in range(len(families), 0, -1):
        rows.append((JUMP_EQUAL, left, 0, families[-left]))
    rows.append((RETURN, 0, 0, ERRNO | EAFNOSUPPORT))
    rows.append((RETURN, 0, 0, ALLOW))
    return b"".join(struct.pack("HBBI", *row) for row in rows)


def seccomp(*, network: bool, truncation: bool = True, protected: Sequence[int] = ()) -> bool:
    """Install the filter (see `seccomp_program`); False on a machine whose calls are not known."""
    machine = platform.machine()
    if machine not in MACHINES:
        return False
    program = ctypes.create_string_buffer(
        seccomp_program(machine, network=network, truncation=truncation, protected=protected)
    )
    count = (len(program) - 1) // 8
    header = struct.pack("HxxxxxxP", count, ctypes.addressof(program))
    if _libc.prctl(PR_SET_SECCOMP, ctypes.c_ulong(2), header, 0, 0) != 0:
        _fail("seccomp")
    return True
