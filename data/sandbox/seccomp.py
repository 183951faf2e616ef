"""Which system calls model-written code may not make, as a classic BPF program for seccomp(2)."""

from __future__ import annotations

import errno
import platform
import struct
from typing import Final

# Name to number on x86_64 and aarch64; None where an architecture has no such call.
_Numbers = dict[str, tuple[int | None, int | None]]

# Tracing others, changing the namespaces and the machine, and memory that no limit counts.
_DENIED: Final[_Numbers] = {
    "ptrace": (101, 117),
    "process_vm_readv": (310, 270),
    "process_vm_writev": (311, 271),
    "process_madvise": (440, 440),
    "pidfd_getfd": (438, 438),
    "kcmp": (312, 272),
    "mount": (165, 40),
    "umount2": (166, 39),
    "pivot_root": (155, 41),
    "chroot": (161, 51),
    "unshare": (272, 97),
    "setns": (308, 268),
    "open_tree": (428, 428),
    "move_mount": (429, 429),
    "fsopen": (430, 430),
    "fsconfig": (431, 431),
    "fsmount": (432, 432),
    "fspick": (433, 433),
    "mount_setattr": (442, 442),
    "open_by_handle_at": (304, 265),
    "name_to_handle_at": (303, 264),
    "bpf": (321, 280),
    "perf_event_open": (298, 241),
    "userfaultfd": (323, 282),
    "fanotify_init": (300, 262),
    "io_uring_setup": (425, 425),
    "io_uring_enter": (426, 426),
    "io_uring_register": (427, 427),
    "keyctl": (250, 219),
    "add_key": (248, 217),
    "request_key": (249, 218),
    "init_module": (175, 105),
    "finit_module": (313, 273),
    "delete_module": (176, 106),
    "kexec_load": (246, 104),
    "kexec_file_load": (320, 294),
    "swapon": (167, 224),
    "swapoff": (168, 225),
    "reboot": (169, 142),
    "quotactl": (179, 60),
    "quotactl_fd": (443, 443),
    "acct": (163, 89),
    "syslog": (103, 116),
    "memfd_create": (319, 279),
    "memfd_secret": (447, 447),
    "shmget": (29, 194),
    "msgget": (68, 186),
    "semget": (64, 190),
    "mq_open": (240, 180),
}

# Where the code runs under the user's own id: what would reach that user's other processes and files.
_DENIED_AS_USER: Final[_Numbers] = {
    "tkill": (200, 130),
    "rt_sigqueueinfo": (129, 138),
    "rt_tgsigqueueinfo": (297, 240),
    "pidfd_open": (434, 434),
    "pidfd_send_signal": (424, 424),
    "process_mrelease": (448, 448),
    "setpriority": (141, 140),
    "ioprio_set": (251, 30),
    "chmod": (90, None),
    "fchmodat": (268, 53),
    "fchmodat2": (452, 452),
    "chown": (92, None),
    "lchown": (94, None),
    "fchownat": (260, 54),
    "setxattr": (188, 5),
    "lsetxattr": (189, 6),
    "removexattr": (197, 14),
    "lremovexattr": (198, 15),
    "utime": (132, None),
    "utimes": (235, None),
    "futimesat": (261, None),
    "utimensat": (280, 88),
}
# Allowed there on the process itself only: the first argument is 0 or its own id.
_SIGNALS_SELF_ONLY: Final[_Numbers] = {"kill": (62, 129), "tgkill": (234, 131)}
_SELF_ONLY: Final[_Numbers] = {
    "prlimit64": (302, 261),
    "sched_setscheduler": (144, 119),
    "sched_setparam": (142, 118),
    "sched_setattr": (314, 274),
    "sched_setaffinity": (203, 122),
    "migrate_pages": (256, 238),
    "move_pages": (279, 239),
}
_SOCKET: Final = (41, 198)
_CLONE: Final = (56, 220)
_CLONE3: Final = 435
_X32_BIT: Final = 0x40000000
_AUDIT_ARCH: Final = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7}
# All CLONE_NEW* flags but NEWTIME, which clone(2) cannot take.
_NEW_NAMESPACES: Final = 0x7E020000
# AF_UNIX, AF_INET, AF_INET6, AF_NETLINK: harmless in a network namespace without a way out. Not vsock, not raw packets.
_FAMILIES: Final = (1, 2, 10, 16)

_LOAD, _JUMP_EQ, _JUMP_GE, _JUMP_SET, _RETURN = 0x20, 0x15, 0x35, 0x45, 0x06
_ALLOW, _KILL, _ERRNO = 0x7FFF0000, 0x80000000, 0x00050000
# Offsets in struct seccomp_data: the call's number, its architecture, the low half of its first argument.
_NR, _ARCH, _ARG0 = 0, 4, 16


def supported(machine: str = platform.machine()) -> bool:
    """Whether the numbers of this architecture are known here."""
    return machine in _AUDIT_ARCH


def seccomp_program(
    own_network: bool, as_user: int | None, signals_scoped: bool = False, machine: str = platform.machine()
) -> bytes:
    """The filter, 8 bytes an instruction.

    Args:
        own_network: the process has a network namespace of its own; otherwise no socket can be made at all.
        as_user: process id, where it runs under an id that owns other processes and files; ``None`` where not.
        signals_scoped: Landlock keeps its signals in already, so that it may end its own children.
        machine: as ``platform.machine()`` names it.
    """
    column = list(_AUDIT_ARCH).index(machine)
    denied = _DENIED if as_user is None else _DENIED | _DENIED_AS_USER
    code = [_op(_LOAD, _ARCH), _op(_JUMP_EQ, _AUDIT_ARCH[machine], 1, 0), _return(_KILL), _op(_LOAD, _NR)]
    code += [_op(_JUMP_GE, _X32_BIT, 0, 1), _return(_ERRNO | errno.ENOSYS)]
    # ENOSYS makes the C library fall back to clone, whose flags a filter can read.
    code += _when(_CLONE3, [_return(_ERRNO | errno.ENOSYS)])
    for numbers in denied.values():
        if (number := numbers[column]) is not None:
            code += _when(number, [_return(_ERRNO | errno.EPERM)])
    code += _when(_CLONE[column], [_op(_LOAD, _ARG0), _op(_JUMP_SET, _NEW_NAMESPACES, 0, 1), *_deny_or_allow()])
    code += _when(_SOCKET[column], _one_of(_FAMILIES if own_network else ()))
    if as_user is not None:
        own = _SELF_ONLY if signals_scoped else _SELF_ONLY | _SIGNALS_SELF_ONLY
        for numbers in own.values():
            code += _when(numbers[column] or 0, _one_of((0, as_user)))
    return b"".join([*code, _return(_ALLOW)])


def _op(code: int, value: int, if_true: int = 0, if_false: int = 0) -> bytes:
    return struct.pack("=HBBI", code, if_true, if_false, value)


def _return(value: int) -> bytes:
    return _op(_RETURN, value)


def _deny_or_allow() -> list[bytes]:
    return [_return(_ERRNO | errno.EPERM), _return(_ALLOW)]


def _when(number: int, then: list[bytes]) -> list[bytes]:
    """``then``, which returns, for this system call; past it for any other."""
    return [_op(_JUMP_EQ, number, 0, len(then)), *then]


def _one_of(allowed: tuple[int, ...]) -> list[bytes]:
    """Allow the call if its first argument is one of these."""
    tests = [_op(_JUMP_EQ, value, len(allowed) - index, 0) for index, value in enumerate(allowed)]
    return [_op(_LOAD, _ARG0), *tests, *_deny_or_allow()]
