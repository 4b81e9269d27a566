"""Values that only the kernel makes, and nobody can copy, change or extend.

Amounts rest on relations and statements having been made by the kernel's constructors. So their classes want a seal
that the modules of this package alone have, and cannot be pickled, copied, replaced or subclassed: the one way to have
one is to build it. They are frozen dataclasses with slots of their own writing: `slots=True` would let them be loaded.
"""

from typing import NoReturn

SEAL = object()


class Sealed:
    """The base of sealed values: made with the seal, which is their last argument, and never otherwise."""

    __slots__ = ()

    def __post_init__(self, seal: object) -> None:
        if seal is not SEAL:
            raise TypeError(f"only the kernel makes a {type(self).__name__}")

    def __init_subclass__(cls) -> None:
        if not cls.__module__.startswith("rules.kernel.") or any(base is not Sealed for base in cls.__bases__):
            raise TypeError(f"{cls.__name__} would extend a sealed class")

    def _refuse(self, *arguments: object, **named: object) -> NoReturn:
        raise TypeError(f"a {type(self).__name__} is made anew, never copied")

    __copy__ = __deepcopy__ = __replace__ = __reduce_ex__ = __setstate__ = _refuse
