"""All messages by their kind, for each of the two directions in which the same letter means different things."""

from dataclasses import dataclass

from proxy.wire.authentication import (
    Authentication,
    AuthenticationCleartextPassword,
    AuthenticationMD5Password,
    AuthenticationOk,
    AuthenticationSASL,
    AuthenticationSASLContinue,
    AuthenticationSASLFinal,
    NegotiateProtocolVersion,
)
from proxy.wire.backend import (
    BackendKeyData,
    BindComplete,
    CloseComplete,
    CommandComplete,
    CopyBothResponse,
    CopyInResponse,
    CopyOutResponse,
    DataRow,
    EmptyQueryResponse,
    ErrorResponse,
    NoData,
    NoticeResponse,
    NotificationResponse,
    ParameterDescription,
    ParameterStatus,
    ParseComplete,
    PortalSuspended,
    ReadyForQuery,
    RowDescription,
)
from proxy.wire.codec import VALUE, Message, ProtocolViolation, Reader
from proxy.wire.frontend import (
    Bind,
    Close,
    CopyData,
    CopyDone,
    CopyFail,
    Describe,
    Execute,
    Flush,
    FunctionCall,
    Parse,
    Query,
    SASLResponse,
    Sync,
    Terminate,
)

FrontendMessage = (
    Query
    | Parse
    | Bind
    | Describe
    | Execute
    | Close
    | Sync
    | Flush
    | CopyData
    | CopyDone
    | CopyFail
    | FunctionCall
    | Terminate
    | SASLResponse
)


@dataclass(frozen=True, slots=True)
class FunctionCallResponse(Message):
    kind, layout = b"V", (VALUE,)
    result: bytes | None


BackendMessage = (
    Authentication
    | NegotiateProtocolVersion
    | ParameterStatus
    | BackendKeyData
    | ReadyForQuery
    | ErrorResponse
    | NoticeResponse
    | NotificationResponse
    | RowDescription
    | ParameterDescription
    | DataRow
    | CommandComplete
    | ParseComplete
    | BindComplete
    | CloseComplete
    | NoData
    | EmptyQueryResponse
    | PortalSuspended
    | CopyInResponse
    | CopyOutResponse
    | CopyBothResponse
    | CopyData
    | CopyDone
    | FunctionCallResponse
)

FRONTEND: dict[bytes, type[FrontendMessage]] = {
    message.kind: message
    for message in (
        Query,
        Parse,
        Bind,
        Describe,
        Execute,
        Close,
        Sync,
        Flush,
        CopyData,
        CopyDone,
        CopyFail,
        FunctionCall,
        Terminate,
        SASLResponse,
    )
}

_BACKEND: dict[bytes, type[BackendMessage]] = {
    message.kind: message
    for message in (
        NegotiateProtocolVersion,
        ParameterStatus,
        BackendKeyData,
        ReadyForQuery,
        ErrorResponse,
        NoticeResponse,
        NotificationResponse,
        RowDescription,
        ParameterDescription,
        DataRow,
        CommandComplete,
        ParseComplete,
        BindComplete,
        CloseComplete,
        NoData,
        EmptyQueryResponse,
        PortalSuspended,
        CopyInResponse,
        CopyOutResponse,
        CopyBothResponse,
        CopyData,
        CopyDone,
        FunctionCallResponse,
    )
}


_AUTHENTICATION: dict[bytes, type[Authentication]] = {
    message.prefix: message
    for message in (
        AuthenticationOk,
        AuthenticationCleartextPassword,
        AuthenticationMD5Password,
        AuthenticationSASL,
        AuthenticationSASLContinue,
        AuthenticationSASLFinal,
    )
}


def decode_frontend(raw: bytes) -> FrontendMessage:
    """The message in a whole frame that a client sent. Kind p is SASLResponse: its bytes, whatever was asked."""
    message = FRONTEND.get(raw[:1])
    if message is None:
        raise ProtocolViolation("invalid frontend message type")
    return message.decode(raw)


def decode_backend(raw: bytes) -> BackendMessage:
    """The message in a whole frame that a server sent."""
    if raw[:1] == b"R":
        return _decode_authentication(raw)
    message = _BACKEND.get(raw[:1])
    if message is None:
        raise ProtocolViolation("invalid backend message type")
    return message.decode(raw)


def _decode_authentication(raw: bytes) -> Authentication:
    """Any message of kind R that we can answer."""
    request = _AUTHENTICATION.get(Reader(raw).take(4))
    if request is None:
        raise ProtocolViolation("the server requests an unsupported authentication method")
    return request.decode(raw)
