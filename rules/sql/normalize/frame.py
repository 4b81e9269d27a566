"""The frame of a window as text, from PostgreSQL's bits (parsenodes.h, FRAMEOPTION_*)."""

from rules.sql.grammar import Json, Node
from rules.sql.normalize.nodes import DEFAULT_FRAME

MODES = ((2, "RANGE"), (4, "ROWS"), (8, "GROUPS"))
STARTS = ((0x20, "UNBOUNDED PRECEDING"), (0x80, "UNBOUNDED FOLLOWING"), (0x200, "CURRENT ROW"))
STARTS_BY_OFFSET = ((0x800, "PRECEDING"), (0x2000, "FOLLOWING"))
ENDS = ((0x40, "UNBOUNDED PRECEDING"), (0x100, "UNBOUNDED FOLLOWING"), (0x400, "CURRENT ROW"))
ENDS_BY_OFFSET = ((0x1000, "PRECEDING"), (0x4000, "FOLLOWING"))
EXCLUSIONS = ((0x8000, " EXCLUDE CURRENT ROW"), (0x10000, " EXCLUDE GROUP"), (0x20000, " EXCLUDE TIES"))

Bits = tuple[tuple[int, str], ...]


def frame_text(window: Node) -> str:
    """ "ROWS BETWEEN $ PRECEDING AND CURRENT ROW", with $ for an offset; nothing for the default frame."""
    options = window.get("frameOptions", DEFAULT_FRAME)
    if not isinstance(options, int) or options == DEFAULT_FRAME:
        return ""

    def edge(plain: Bits, by_offset: Bits) -> str:
        return _named(options, plain) or f"$ {_named(options, by_offset)}"

    start, end = edge(STARTS, STARTS_BY_OFFSET), edge(ENDS, ENDS_BY_OFFSET)
    return f"{_named(options, MODES)} BETWEEN {start} AND {end}{_named(options, EXCLUSIONS)}"


def frame_offsets(window: Node) -> list[Json]:
    """The expressions that the frame's text has a $ for."""
    return [window[key] for key in ("startOffset", "endOffset") if key in window]


def _named(options: int, bits: Bits) -> str:
    return next((name for bit, name in bits if options & bit), "")
