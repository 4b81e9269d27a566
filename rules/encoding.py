"""PostgreSQL's names of encodings, and the codecs that read them."""

import codecs
from typing import Final

# Encodings that Python knows under another name; the others it finds by PostgreSQL's own.
_NAMED: Final = {
    "UNICODE": "utf-8",
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
    """The codec of an encoding as PostgreSQL reports it, or None where Python has none.

    Example:
        >>> find_codec("WIN1252"), find_codec("EUC_JP"), find_codec("MULE_INTERNAL"), find_codec("SQL_ASCII")
        ('cp1252', 'euc_jp', None, None)
    """
    name = encoding.upper()
    if name.startswith("WIN") and name[3:].isdigit():
        name = f"cp{name[3:]}"
    try:
        return codecs.lookup(_NAMED.get(name, name)).name
    except LookupError:
        return None


def find_missing(text: str, codec: str) -> str | None:
    """The first character of a text that cannot be written in an encoding, or None.

    Example:
        >>> find_missing("Łódź", "iso8859-1"), find_missing("Málaga", "iso8859-1")
        ('Ł', None)
    """
    try:
        text.encode(codec)
    except UnicodeEncodeError as error:
        return text[error.start]
    return None
