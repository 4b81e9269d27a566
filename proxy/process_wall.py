"""A wall around a process that the operating system holds: no new files, sockets or processes until it ends.

Linux alone has one. seccomp(2) refuses every system call but the few that a program computes with; landlock(7) refuses
every file and every connection once more, by name; and a process of root's becomes one of nobody's.
"""

import ctypes
import os
import platform
import pwd
import struct
import sys
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Final

from proxy.process_isolation import seal


@dataclass(frozen=True, slots=True)
class Wall:
    """Which walls stand. `seccomp` alone keeps a process that was taken over from files, sockets and processes."""

    seccomp: bool
    landlock: bool
    other_user: bool


NO_WALL: Final = Wall(seccomp=False, landlock=False, other_user=False)
WITHOUT_SECCOMP: Final = (
    "this system has no seccomp(2), so nothing keeps a planner process that a statement has taken over from the files "
    "and the network of the proxy's user (docs/privacy.md)"
)


def raise_wall() -> Wall:
    """Give up all but memory, the clock, standard input and writing to open files. Modules are loaded before.

    Each wall that the system lacks is left out. Landlock holds the calling thread alone, seccomp all threads.
    """
    other_user = _become_nobody()
    seal()
    if not _IS_KNOWN:
        return replace(NO_WALL, other_user=other_user)
    _LIBC.prctl(_SET_NO_NEW_PRIVILEGES, 1, 0, 0, 0)
    landlock = _refuse_files()  # before seccomp, which refuses this too
    return Wall(_refuse_calls(), landlock, other_user)


def find_wall() -> Wall:
    """The walls that this system offers, by its kernel's own word."""
    action = struct.pack("I", _REFUSE & 0xFFFF0000)  # without the number of the error
    has_seccomp = _IS_KNOWN and _call("seccomp", _HAS_ACTION, 0, action) == 0
    return Wall(has_seccomp, _IS_KNOWN and _landlock_version() > 0, os.geteuid() == 0)


def _become_nobody() -> bool:
    """Leave root for a user that owns nothing. A container may have no other user."""
    if os.geteuid() != 0:
        return False
    with suppress(OSError, KeyError):
        nobody = pwd.getpwnam("nobody")
        os.setgroups([])
        os.setgid(nobody.pw_gid)
        os.setuid(nobody.pw_uid)
    return os.geteuid() != 0


def _refuse_files() -> bool:
    """Refuse every file, connection and signal that Landlock knows of: all rights are handled, and none is given."""
    version = _landlock_version()
    if version < 1:
        return False
    file_rights = (1 << {1: 13, 2: 14, 3: 15, 4: 15}.get(version, 16)) - 1
    connections = 0b11 if version >= 4 else 0  # bind and connect
    scopes = 0b11 if version >= 6 else 0  # abstract sockets and signals
    rights = struct.pack("QQQ", file_rights, connections, scopes)
    ruleset = _call("landlock_create_ruleset", rights, len(rights), 0)
    if ruleset < 0:
        return False
    is_held = _call("landlock_restrict_self", ruleset, 0) == 0
    os.close(ruleset)
    return is_held


def _landlock_version() -> int:
    return _call("landlock_create_ruleset", None, 0, 1)


def _refuse_calls() -> bool:
    """Let `_ALLOWED` pass, in all threads; every other call fails with EPERM, so that libraries can go on without."""
    program = _program()
    instructions = ctypes.create_string_buffer(b"".join(program))
    filter_ = struct.pack("HP", len(program), ctypes.addressof(instructions))
    return _call("seccomp", _SET_FILTER, _ALL_THREADS, filter_) == 0


def _program() -> Sequence[bytes]:
    """BPF over struct seccomp_data: the call's number at 0, the machine at 4, the arguments from 16."""
    allow, refuse = _bpf(_RETURN, _ALLOW), _bpf(_RETURN, _REFUSE)
    program = [_bpf(_LOAD, 4), _bpf(_IF_EQUAL, _MACHINES[_MACHINE], 1, 0), refuse, _bpf(_LOAD, 0)]
    for name, number in _ALLOWED.items():
        if name in _WITH_ARGUMENT:
            place, value = _WITH_ARGUMENT[name]
            program += [_bpf(_IF_EQUAL, number, 0, 4), _bpf(_LOAD, 16 + 8 * place)]
            program += [_bpf(_IF_EQUAL, value, 0, 1), allow, refuse]
        else:
            program += [_bpf(_IF_EQUAL, number, 0, 1), allow]
    return (*program, refuse)


def _bpf(code: int, value: int, if_true: int = 0, if_false: int = 0) -> bytes:
    return struct.pack("HBBI", code, if_true, if_false, value)


def _call(name: str, *arguments: int | bytes | None) -> int:
    result: int = _LIBC.syscall(_SETTING_UP[name][_COLUMN], *arguments)
    return result


_MACHINE: Final = platform.machine()
_MACHINES: Final = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7}  # AUDIT_ARCH_…: others number calls otherwise
_IS_KNOWN: Final = sys.platform == "linux" and _MACHINE in _MACHINES and sys.maxsize > 2**32
_COLUMN: Final = 0 if _MACHINE == "x86_64" else 1

_LIBC: Final = ctypes.CDLL(None, use_errno=True)
_SET_NO_NEW_PRIVILEGES: Final = 38  # prctl(2)
_SET_FILTER, _HAS_ACTION, _ALL_THREADS = 1, 2, 1  # seccomp(2)
_REFUSE, _ALLOW = 0x00050001, 0x7FFF0000  # SECCOMP_RET_ERRNO with EPERM, SECCOMP_RET_ALLOW
_LOAD, _IF_EQUAL, _RETURN = 0x20, 0x15, 0x06  # bpf(4) in its classic form

_SETTING_UP: Final = {
    "seccomp": (317, 277),
    "landlock_create_ruleset": (444, 444),
    "landlock_restrict_self": (446, 446),
}
_ALLOWED: Final = {
    name: numbers[_COLUMN]
    for name, numbers in {
        "read": (0, 63),
        "write": (1, 64),
        "close": (3, 57),
        "mmap": (9, 222),
        "mprotect": (10, 226),
        "munmap": (11, 215),
        "brk": (12, 214),
        "rt_sigaction": (13, 134),
        "rt_sigprocmask": (14, 135),
        "rt_sigreturn": (15, 139),
        "sched_yield": (24, 124),
        "mremap": (25, 216),
        "madvise": (28, 233),
        "nanosleep": (35, 101),
        "getpid": (39, 172),
        "exit": (60, 93),
        "gettimeofday": (96, 169),
        "sigaltstack": (131, 132),
        "gettid": (186, 178),
        "futex": (202, 98),
        "restart_syscall": (219, 128),
        "clock_gettime": (228, 113),
        "clock_nanosleep": (230, 115),
        "exit_group": (231, 94),
        "getrandom": (318, 278),
    }.items()
}
_WITH_ARGUMENT: Final = {  # an argument by its place, and its low 32 bits
    "read": (0, 0),  # of standard input
    "mmap": (4, 0xFFFFFFFF),  # of no file
}
