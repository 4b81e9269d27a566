"""Messages of every kind, and ways to cut bytes."""

from hypothesis import strategies as st

from proxy.wire import authentication, backend, frontend
from proxy.wire.authentication import NegotiateProtocolVersion
from tests.wire.messages import BackendMessage, FrontendMessage, FunctionCallResponse

texts = st.binary(max_size=20).map(lambda data: data.replace(b"\0", b"x"))
names = texts.filter(bool)
strings = texts.map(lambda data: data.decode("utf-8", "surrogateescape"))
values = st.none() | st.binary(max_size=20)
int16s = st.integers(-(2**15), 2**15 - 1)
int32s = st.integers(-(2**31), 2**31 - 1)
oids = st.integers(0, 2**32 - 1)
targets = st.sampled_from([frontend.STATEMENT, frontend.PORTAL])


def _tuples(items: st.SearchStrategy[object]) -> st.SearchStrategy[tuple[object, ...]]:
    return st.lists(items, max_size=5).map(tuple)


@st.composite
def binds(draw: st.DrawFn) -> frontend.Bind:
    parameters = draw(st.lists(values, max_size=5).map(tuple))
    size = draw(st.sampled_from([0, 1, len(parameters)]))
    formats = tuple(draw(st.lists(int16s, min_size=size, max_size=size)))
    result_formats = tuple(draw(st.lists(int16s, max_size=3)))
    return frontend.Bind(draw(texts), draw(texts), formats, parameters, result_formats)


frontend_messages: st.SearchStrategy[FrontendMessage] = st.one_of(
    st.builds(frontend.Query, texts),
    st.builds(frontend.Parse, texts, texts, _tuples(oids)),
    binds(),
    st.builds(frontend.Describe, targets, texts),
    st.builds(frontend.Execute, texts, int32s),
    st.builds(frontend.Close, targets, texts),
    st.sampled_from([frontend.Sync(), frontend.Flush(), frontend.Terminate(), frontend.CopyDone()]),
    st.builds(frontend.CopyData, st.binary(max_size=50)),
    st.builds(frontend.CopyFail, texts),
    st.builds(frontend.FunctionCall, oids, _tuples(int16s), _tuples(values), int16s),
    st.builds(frontend.SASLResponse, st.binary(max_size=50)),
)

_fields = st.builds(backend.Field, texts, oids, int16s, oids, int16s, int32s, st.sampled_from([0, 1]))
_codes = st.integers(1, 127).map(chr)
_reports = st.dictionaries(_codes, strings, max_size=6)
_bytes = st.integers(0, 255)

backend_messages: st.SearchStrategy[BackendMessage] = st.one_of(
    st.sampled_from(
        [
            authentication.AuthenticationOk(),
            authentication.AuthenticationCleartextPassword(),
            backend.ParseComplete(),
            backend.BindComplete(),
            backend.CloseComplete(),
            backend.NoData(),
            backend.EmptyQueryResponse(),
            backend.PortalSuspended(),
            frontend.CopyDone(),
        ]
    ),
    st.builds(authentication.AuthenticationMD5Password, st.binary(min_size=4, max_size=4)),
    st.builds(authentication.AuthenticationSASL, _tuples(names)),
    st.builds(authentication.AuthenticationSASLContinue, st.binary(max_size=50)),
    st.builds(authentication.AuthenticationSASLFinal, st.binary(max_size=50)),
    st.builds(NegotiateProtocolVersion, st.integers(0, 2**16 - 1), _tuples(texts)),
    st.builds(backend.ParameterStatus, strings, strings),
    st.builds(backend.BackendKeyData, int32s, st.binary(min_size=4, max_size=256)),
    st.builds(backend.ReadyForQuery, st.sampled_from([backend.IDLE, backend.IN_TRANSACTION, backend.FAILED])),
    st.builds(backend.ErrorResponse, _reports),
    st.builds(backend.NoticeResponse, _reports),
    st.builds(backend.NotificationResponse, int32s, texts, texts),
    st.builds(backend.RowDescription, _tuples(_fields)),
    st.builds(backend.ParameterDescription, _tuples(oids)),
    st.builds(backend.DataRow, _tuples(values)),
    st.builds(backend.CommandComplete, texts),
    st.builds(backend.CopyInResponse, _bytes, _tuples(int16s)),
    st.builds(backend.CopyOutResponse, _bytes, _tuples(int16s)),
    st.builds(backend.CopyBothResponse, _bytes, _tuples(int16s)),
    st.builds(frontend.CopyData, st.binary(max_size=50)),
    st.builds(FunctionCallResponse, values),
)


@st.composite
def cut(draw: st.DrawFn, data: bytes) -> list[bytes]:
    """The same bytes in pieces."""
    ends = sorted(draw(st.lists(st.integers(0, len(data)), max_size=10)))
    return [data[start:end] for start, end in zip([0, *ends], [*ends, len(data)], strict=True)]
