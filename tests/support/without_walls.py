"""`noisegate` where the kernel refuses seccomp and Landlock, as that of a container may: `python -m` this `check …`."""

import sys

from proxy import process_wall as wall
from proxy.cli import main


def forbid() -> None:
    """Refuse what raises walls, here and in every process that is started from here."""
    refuse, allow = wall._bpf(wall._RETURN, wall._REFUSE), wall._bpf(wall._RETURN, wall._ALLOW)
    tests = [(wall._bpf(wall._IF_EQUAL, numbers[wall._COLUMN], 0, 1), refuse) for numbers in wall._SETTING_UP.values()]
    program = (wall._bpf(wall._LOAD, 0), *(line for test in tests for line in test), allow)
    wall._LIBC.prctl(wall._SET_NO_NEW_PRIVILEGES, 1, 0, 0, 0)
    wall._program = lambda: program
    assert wall._refuse_calls()


if __name__ == "__main__":
    forbid()
    sys.exit(main())
