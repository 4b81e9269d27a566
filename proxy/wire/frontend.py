"""A client's messages: each as a value, from and to a whole frame.

Texts that are in the client's encoding (SQL, names) stay bytes; only their reader knows the encoding.
"""

from dataclasses import dataclass

from proxy.wire.codec import BYTE, INT16, INT32, REST, TEXT, UINT32, VALUE, Message, ProtocolViolation, counted

STATEMENT = b"S"
PORTAL = b"P"


@dataclass(frozen=True, slots=True)
class Sync(Message):
    kind = b"S"


@dataclass(frozen=True, slots=True)
class Flush(Message):
    kind = b"H"


@dataclass(frozen=True, slots=True)
class Terminate(Message):
    kind = b"X"


@dataclass(frozen=True, slots=True)
class CopyDone(Message):
    """The end of the data of COPY; both sides say it."""

    kind = b"c"


@dataclass(frozen=True, slots=True)
class CopyData(Message):
    """A piece of the data of COPY; both sides say it."""

    kind, layout = b"d", (REST,)
    data: bytes


@dataclass(frozen=True, slots=True)
class CopyFail(Message):
    kind, layout = b"f", (TEXT,)
    message: bytes


@dataclass(frozen=True, slots=True)
class Query(Message):
    """One string of SQL, of any number of statements."""

    kind, layout = b"Q", (TEXT,)
    sql: bytes


@dataclass(frozen=True, slots=True)
class Parse(Message):
    kind, layout = b"P", (TEXT, TEXT, counted(UINT32))
    statement: bytes
    sql: bytes
    types: tuple[int, ...] = ()  # OIDs of the first parameters; 0: infer


@dataclass(frozen=True, slots=True)
class Bind(Message):
    kind, layout = b"B", (TEXT, TEXT, counted(INT16), counted(VALUE), counted(INT16))
    portal: bytes
    statement: bytes
    parameter_formats: tuple[int, ...] = ()  # none: all text; one: all so; else one a parameter
    parameters: tuple[bytes | None, ...] = ()
    result_formats: tuple[int, ...] = ()

    def check(self) -> None:
        if len(self.parameter_formats) not in (0, 1, len(self.parameters)):
            raise ProtocolViolation("bind message has parameter formats that do not match its parameters")

    def format_of(self, parameter: int) -> int:
        """Return the format of a parameter, counted from 0: 0 is text, 1 binary."""
        match self.parameter_formats:
            case ():
                return 0
            case (single,):
                return single
            case formats:
                return formats[parameter]


class _AboutTarget(Message):
    """A message about a statement or a portal."""

    __slots__ = ()
    target: bytes

    def check(self) -> None:
        if self.target not in (STATEMENT, PORTAL):
            raise ProtocolViolation("a message must name a statement or a portal")


@dataclass(frozen=True, slots=True)
class Describe(_AboutTarget):
    kind, layout = b"D", (BYTE, TEXT)
    target: bytes
    name: bytes


@dataclass(frozen=True, slots=True)
class Close(_AboutTarget):
    kind, layout = b"C", (BYTE, TEXT)
    target: bytes
    name: bytes


@dataclass(frozen=True, slots=True)
class Execute(Message):
    kind, layout = b"E", (TEXT, INT32)
    portal: bytes
    max_rows: int = 0  # 0: all


@dataclass(frozen=True, slots=True)
class FunctionCall(Message):
    """The call of a function by OID, without SQL: known so that it can be refused."""

    kind, layout = b"F", (UINT32, counted(INT16), counted(VALUE), INT16)
    function: int
    argument_formats: tuple[int, ...]
    arguments: tuple[bytes | None, ...]
    result_format: int


@dataclass(frozen=True, slots=True)
class PasswordMessage(Message):
    kind, layout = b"p", (TEXT,)
    password: bytes


@dataclass(frozen=True, slots=True)
class SASLInitialResponse(Message):
    """The mechanism that the client chose, and its first words."""

    kind, layout = b"p", (TEXT, VALUE)
    mechanism: bytes
    data: bytes | None


@dataclass(frozen=True, slots=True)
class SASLResponse(Message):
    kind, layout = b"p", (REST,)
    data: bytes


@dataclass(frozen=True, slots=True)
class Encoded:
    """A message that is sent often, as its bytes."""

    kind: bytes
    raw: bytes

    def encode(self) -> bytes:
        return self.raw
