"""PostgreSQL's names of client encodings, and the codecs that read them."""

import codecs
from typing import Final

# Encodings that Python knows under another name; the others it finds by PostgreSQL's own.
_NAMED: Final = {
    "UNICODE": "utf-8",
    "SQL_ASCII": "utf-8",  # no conversion: bytes are the twin's own, which is in UTF8
    "EUC_CN": "gb2312",
    "EUC_JIS_2004": "euc_jis_2004",
    "SHIFT_JIS_2004": "shift_jis_2004",
    "SJIS": "cp932",
    "UHC": "cp949",
    "WIN": "cp1251",
    "ALT": "cp866",
    "KOI8R": "koi8-r",
    "KOI8U": "koi8-u",
    "LATIN5": "iso8859-9",
    "LATIN6": "iso8859-10",
    "LATIN7": "iso8859-13",
    "LATIN8": "iso8859-14",
    "LATIN9": "iso8859-15",
    "LATIN10": "iso8859-16",
}


def find_codec(encoding: str) -> str | None:
    """The codec of a client_encoding as PostgreSQL reports it, or None where Python has none."""
    name = encoding.upper()
    if name.startswith("WIN") and name[3:].isdigit():
        name = f"cp{name[3:]}"
    try:
        return codecs.lookup(_NAMED.get(name, name)).name
    except LookupError:
        return None
