"""Classify a statement before the twin may have it: relay, refuse, or look closer.

A text is classified as PostgreSQL reads it, so the settings by which it is read stand here too. Admitted is a client
encoding in which a byte below 128 is always the ASCII character, and no other bytes ever are one: those that PostgreSQL
lets a server have. In the others (SJIS, BIG5, GBK, UHC, GB18030, JOHAB) a backslash may be half of a character, so that
where a string ends depends on who reads it. In EUC_JP, EUC_JIS_2004 and EUC_KR some bytes are other characters to
Python than to PostgreSQL: a1c1 is U+301C or U+FF5E.
"""

import re
from dataclasses import dataclass, field, replace
from typing import Final

from proxy.execute.service import Service
from proxy.session.prepared_statements import RESERVED, Prepared, PreparedStatements
from rules.functions.function import LiteralSettings
from rules.refusal import NotAllowed, NotSupported, Refusal, TooComplex, TooMany
from rules.sql.session_settings import check_setting, is_ours
from rules.sql.statement import Kind, Reading, Statement

READS: Final = frozenset({Kind.QUERY, Kind.DECLARE, Kind.COPY_OUT, Kind.EXPLAIN, Kind.PREPARE})
NAMES: Final = frozenset({Kind.PREPARE, Kind.EXECUTE, Kind.DEALLOCATE, Kind.DISCARD})

_HOLD: Final = re.compile(r"\bwith\s+hold\b", re.IGNORECASE)

UNREADABLE: Final = NotSupported(
    "the proxy cannot parse this statement",
    hint="Rewrite it in standard SQL, and send one statement at a time.",
)
FUNCTION_CALL: Final = NotSupported(
    "function call messages of the protocol are not supported", hint="Use SELECT function(…) instead."
)
TOO_MANY_PREPARED: Final = TooComplex(
    "too many prepared statements", hint="DEALLOCATE the statements that are no longer needed, in all sessions."
)
LEXIS_CHANGED: Final = NotSupported(
    "a setting that changes how strings are parsed was changed earlier in the same query string",
    hint="Send SET in a separate query string.",
)
PERIOD_ENDED: Final = NotSupported(
    "the budget period ended while this query string ran", hint="Send the rest of it in another query string."
)
ODD_ENCODING: Final = NotSupported(
    "the session's client_encoding is not supported", hint="SET client_encoding = 'UTF8';"
)
HIDDEN_SETTING: Final = NotSupported(
    "set_config is not allowed in this statement, because the proxy cannot track its change",
    hint="Call it in a separate SELECT.",
)
WITHOUT_VALUES: Final = NotSupported(
    "EXPLAIN (GENERIC_PLAN) over protected tables needs the values of parameters, which say what it costs",
    hint="Write values in place of $1, or PREPARE q AS SELECT …, and then EXPLAIN EXECUTE q(…) with values.",
)
NESTED_EXECUTE: Final = NotSupported(
    "a prepared EXECUTE must have an ASCII name and must not execute another prepared EXECUTE",
    hint="EXECUTE the inner statement directly.",
)
TOO_MANY_VIEWS: Final = TooMany(
    "this session has made as many temporary views as a session may make",
    hint="Connect again: the limit is that of one session's life, since views leave dead rows in catalogs.",
)
RESERVED_NAME: Final = NotAllowed(f'names that begin with "{RESERVED}" are reserved for the proxy')

_NUMBERED: Final = {
    "LATIN1": "iso8859-1",
    "LATIN2": "iso8859-2",
    "LATIN3": "iso8859-3",
    "LATIN4": "iso8859-4",
    "LATIN5": "iso8859-9",
    "LATIN6": "iso8859-10",
    "LATIN7": "iso8859-13",
    "LATIN8": "iso8859-14",
    "LATIN9": "iso8859-15",
    "LATIN10": "iso8859-16",
    **{f"ISO_8859_{number}": f"iso8859-{number}" for number in (5, 6, 7, 8)},
    **{f"WIN{page}": f"cp{page}" for page in (866, 874, *range(1250, 1259))},
}
ADMITTED: Final = {
    "UTF8": "utf-8",
    "SQL_ASCII": "utf-8",  # no conversion: bytes are the twin's own, which is in UTF8
    "EUC_CN": "gb2312",
    "KOI8R": "koi8-r",
    "KOI8U": "koi8-u",
    **_NUMBERED,
}
"""Codecs that read as PostgreSQL does, by the names under which it reports an encoding."""

_REFUSED: Final = frozenset(
    "big5 win950 windows950 gb18030 gbk win936 windows936 johab sjis mskanji shiftjis win932 windows932 shiftjis2004 "
    "uhc win949 windows949 muleinternal euctw eucjp eucjis2004 euckr".split()
)  # with their other names, as PostgreSQL compares them


_UNADMITTED: Final = "ascii"  # reads what is the same in all encodings, and nothing else


def find_refusal(statement: Statement, service: Service, names: PreparedStatements) -> Refusal | None:
    """Find why a statement is refused for what it is, whatever it reads; its place is in the statement's own text."""
    if statement.kind is Kind.PREPARE and names.are_full:
        return TOO_MANY_PREPARED
    if statement.kind is Kind.VIEW and statement.name is not None and names.made_views >= names.most_views:
        return TOO_MANY_VIEWS
    if statement.kind is Kind.FORBIDDEN:
        return statement.refusal or UNREADABLE
    if (statement.name or "").startswith(RESERVED):
        return RESERVED_NAME
    if hides_setting(statement):
        return HIDDEN_SETTING
    return _setting_refusal(statement, service)


def hides_setting(statement: Statement) -> bool:
    """Tell whether set_config would run as a part of other statements: in a view, or as an argument."""
    return bool(statement.settings) and (statement.names_prepared or statement.kind is Kind.VIEW)


def is_nested(name: str, statement: Statement, names: PreparedStatements) -> bool:
    """Tell whether a prepared EXECUTE would stand in a row with others, which PostgreSQL's EXPLAIN follows forever.

    Names are ASCII here so that they are the same in every encoding.
    """
    target = statement.name or ""
    return not (name + target).isascii() or names.would_nest(name, target)


def odd_encoding(name: str) -> Refusal:
    """For one in which a backslash may be half of a character, or which Python reads in another way."""
    return NotSupported(f'client_encoding "{name}" is not supported', hint="SET client_encoding = 'UTF8';")


def odd_strings() -> Refusal:
    """For a text that PostgreSQL reads in another way than the grammar of the proxy."""
    return NotSupported(
        "standard_conforming_strings = off is not supported", hint="SET standard_conforming_strings = on;"
    )


def is_plain(statement: Statement, service: Service, names: PreparedStatements) -> bool:
    """Return whether the twin may have a statement untouched, and unobserved."""
    if statement.kind is Kind.FORBIDDEN or (statement.name or "").startswith(RESERVED):
        return False
    if any(is_ours(name) or is_encoding(name) for name, _ in statement.settings) or hides_setting(statement):
        return False
    if statement.kind in READS and may_touch(statement, service, names):
        return False
    if statement.names_prepared or statement.kind is Kind.DEALLOCATE:
        return statement.name is not None and names.find_prepared(statement.name) is None
    return statement.kind not in (Kind.DISCARD, Kind.VIEW)


def needs_transaction(statement: Statement) -> bool:
    """Return whether PostgreSQL refuses a statement outside a transaction: nothing should be paid for it there."""
    return statement.kind is Kind.DECLARE and _HOLD.search(statement.text) is None


def may_touch(statement: Statement, service: Service, names: PreparedStatements) -> bool:
    """Return whether a statement names what may be closed, or a temporary view, which may read that."""
    return service.may_touch(statement) or any(names.may_be_view(relation.name) for relation in statement.relations)


def may_be_private(statement: Statement, service: Service, names: PreparedStatements) -> bool:
    """Return whether the tables that a statement names have to be resolved before it runs."""
    if statement.names_prepared:
        return True  # its name may have been prepared a moment ago
    return statement.kind in READS and statement.kind is not Kind.PREPARE and may_touch(statement, service, names)


def needs_look(statement: Statement, service: Service, names: PreparedStatements) -> bool:
    """Return whether a statement, once prepared, may read protected tables or change names when it runs."""
    return (
        statement.kind in NAMES
        or statement.kind is Kind.VIEW
        or statement.names_prepared
        or (statement.kind in READS and may_touch(statement, service, names))
    )


def are_plain(reading: Reading, service: Service, names: PreparedStatements) -> bool:
    return not reading.unreadable and all(is_plain(statement, service, names) for statement in reading.statements)


def is_encoding(name: str) -> bool:
    return name.lower() == "client_encoding"


def effect_of(statement: Statement, names: PreparedStatements, literals: LiteralSettings) -> None:
    """Note the effect of a statement that has run, under these settings, on the names of prepared statements."""
    match statement.kind:
        case Kind.PREPARE if statement.name is not None:
            inside = replace(statement, kind=Kind.QUERY, text=statement.query, start=0, name=None, query="")
            names.has_prepared(statement.name, Prepared(inside, literals, is_as_written=False))
        case Kind.DEALLOCATE if statement.name is not None:
            names.has_prepared(statement.name, None)
        case Kind.DEALLOCATE:
            names.forget_prepared()
        case Kind.DISCARD if statement.name == "all":
            names.forget_prepared()


def without_answer(statement: Statement, position: int | None) -> Refusal:
    """Explain why a statement that names protected tables but holds no query of its own is refused."""
    if statement.kind is Kind.EXPLAIN:
        analyze = " ANALYZE" if statement.analyze else ""
        return NotSupported(
            f"EXPLAIN{analyze} of a statement that reads protected tables is not supported",
            hint="Use EXPLAIN without ANALYZE, which shows the cost and the accuracy and runs nothing.",
            position=position,
        )
    return NotAllowed(
        "COPY of a protected table is not allowed",
        hint="Use COPY (SELECT …) TO STDOUT, with aggregates such as count(*) over protected rows.",
        position=position,
    )


def _setting_refusal(statement: Statement, service: Service) -> Refusal | None:
    """A value that no statement could be answered with is refused when it is SET, as far as it can be seen there."""
    try:
        for name, value in statement.settings:
            if is_ours(name):
                check_setting(name, value, service.limits)
            elif is_encoding(name) and is_refused(value or ""):
                return odd_encoding(value or "")
    except Refusal as refusal:
        return refusal.without_frames()
    return None


def find_codec(encoding: str) -> str | None:
    """The codec of a client_encoding as PostgreSQL reports it, or None where it is not admitted."""
    return ADMITTED.get(encoding.upper())


def is_refused(name: str) -> bool:
    """Return whether a name, as it may be written in SET, is that of an encoding that is not admitted."""
    return re.sub(r"[^a-z0-9]", "", name.lower()) in _REFUSED


@dataclass(frozen=True, slots=True)
class LexicalSettings:
    """The settings by which a text is cut into strings and names, and those by which its literals are read."""

    codec: str = "utf-8"  # of the client's encoding
    has_odd_strings: bool = False  # standard_conforming_strings is off: a backslash escapes in every string
    literals: LiteralSettings = field(default_factory=LiteralSettings)

    @property
    def is_admitted(self) -> bool:
        """Return whether a text in this encoding can be read that is more than ASCII."""
        return self.codec != _UNADMITTED

    def cuts_as(self, other: "LexicalSettings") -> bool:
        """Return whether a text is cut into the same strings and names by others."""
        return (self.codec, self.has_odd_strings) == (other.codec, other.has_odd_strings)

    def noting(self, name: str, value: str) -> "LexicalSettings":
        """Note a reported setting. An encoding that is not admitted is read as far as ASCII."""
        match name:
            case "client_encoding":
                return replace(self, codec=find_codec(value) or _UNADMITTED)
            case "standard_conforming_strings":
                return replace(self, has_odd_strings=value == "off")
            case "TimeZone":
                return replace(self, literals=replace(self.literals, time_zone=value))
            case "DateStyle":
                return replace(self, literals=replace(self.literals, date_style=value))
            case "IntervalStyle":
                return replace(self, literals=replace(self.literals, interval_style=value))
        return self
