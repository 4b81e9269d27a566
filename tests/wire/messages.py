"""All messages by their kind, for each of the two directions in which the same letter means different things."""

from proxy.wire.authentication import Authentication, NegotiateProtocolVersion, decode_authentication
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
    FunctionCallResponse,
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
from proxy.wire.codec import ProtocolViolation
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


def decode_frontend(raw: bytes) -> FrontendMessage:
    """The message in a whole frame that a client sent. Kind p is SASLResponse: its bytes, whatever was asked."""
    message = FRONTEND.get(raw[:1])
    if message is None:
        raise ProtocolViolation("invalid frontend message type")
    return message.decode(raw)


def decode_backend(raw: bytes) -> BackendMessage:
    """The message in a whole frame that a server sent."""
    if raw[:1] == b"R":
        return decode_authentication(raw)
    message = _BACKEND.get(raw[:1])
    if message is None:
        raise ProtocolViolation("invalid backend message type")
    return message.decode(raw)
