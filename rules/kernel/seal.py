"""Values that only their own module can make, and nobody can copy, change or extend.

Amounts rest on relations and statements having been made by the kernel's constructors. So these classes want a key
that their module keeps to itself, and cannot be pickled, copied, replaced or subclassed: the one way to have one is to
build it.
"""

from typing import ClassVar, NoReturn

from rules.refusal import Mismatch


class Key:
    """What a constructor shows to make a sealed value. Each module of the kernel that seals has one of its own."""

    __slots__ = ()


class Sealed:
    """The base of sealed values: immutable, unique, and made with the key of their module alone."""

    __slots__ = ("_is_made",)
    _key: ClassVar[Key]  # of the module that makes the class's values

    def __init__(self, key: Key) -> None:
        if key is not type(self)._key:
            raise Mismatch("this value is made by the kernel alone")
        object.__setattr__(self, "_is_made", True)

    def __init_subclass__(cls) -> None:
        if not cls.__module__.startswith("rules.kernel.") or any(base is not Sealed for base in cls.__bases__):
            raise TypeError(f"{cls.__name__} would extend a sealed class")

    def __setattr__(self, name: str, value: object) -> None:
        if getattr(self, "_is_made", False):
            raise AttributeError(f"{type(self).__name__} does not change")
        object.__setattr__(self, name, value)

    def __delattr__(self, name: str) -> None:
        raise AttributeError(f"{type(self).__name__} does not change")

    def __reduce_ex__(self, protocol: object) -> NoReturn:
        raise TypeError(f"{type(self).__name__} cannot be pickled")

    def __copy__(self) -> NoReturn:
        raise TypeError(f"{type(self).__name__} cannot be copied")

    def __deepcopy__(self, memo: object) -> NoReturn:
        raise TypeError(f"{type(self).__name__} cannot be copied")
