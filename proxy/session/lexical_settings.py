"""The settings by which the proxy and PostgreSQL read the same text alike: client encodings and escapes in strings.

Admitted is an encoding in which a byte below 128 is always the ASCII character, and no other bytes ever are one: those
that PostgreSQL lets a server have. In the others (SJIS, BIG5, GBK, UHC, GB18030, JOHAB) a backslash may be half of a
character, so that where a string ends depends on who reads it.
"""

import re
from dataclasses import dataclass, replace
from typing import Final

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
    "EUC_JP": "euc_jp",
    "EUC_JIS_2004": "euc_jis_2004",
    "EUC_KR": "euc_kr",
    "KOI8R": "koi8-r",
    "KOI8U": "koi8-u",
    **_NUMBERED,
}
"""Codecs by the names under which PostgreSQL reports an encoding."""

_REFUSED: Final = frozenset(
    "big5 win950 windows950 gb18030 gbk win936 windows936 johab sjis mskanji shiftjis win932 windows932 shiftjis2004 "
    "uhc win949 windows949 muleinternal euctw".split()
)  # with their other names, as PostgreSQL compares them


def find_codec(encoding: str) -> str | None:
    """The codec of a client_encoding as PostgreSQL reports it, or None where it is not admitted."""
    return ADMITTED.get(encoding.upper())


def is_refused(name: str) -> bool:
    """Return whether a name, as it may be written in SET, is that of an encoding that is not admitted."""
    return re.sub(r"[^a-z0-9]", "", name.lower()) in _REFUSED


_UNADMITTED: Final = "ascii"  # reads what is the same in all encodings, and nothing else


@dataclass(frozen=True, slots=True)
class LexicalSettings:
    """The settings by which a text is cut into strings and names."""

    codec: str = "utf-8"  # of the client's encoding
    has_odd_strings: bool = False  # standard_conforming_strings is off: a backslash escapes in every string

    @property
    def is_admitted(self) -> bool:
        """Return whether a text in this encoding can be read that is more than ASCII."""
        return self.codec != _UNADMITTED

    def noting(self, name: str, value: str) -> "LexicalSettings":
        """Note a reported setting. An encoding that is not admitted is read as far as ASCII."""
        match name:
            case "client_encoding":
                return replace(self, codec=find_codec(value) or _UNADMITTED)
            case "standard_conforming_strings":
                return replace(self, has_odd_strings=value == "off")
        return self
