"""Keys of rows as the database wrote them, and the groups that they mean.

Up to a release keys are bytes, which are compared and sorted and never read: whatever a row holds, nothing can fail of
it. What is listed beforehand comes as an ordinal, whose text is our own. What was found becomes text once its group has
passed the threshold.
"""

from collections.abc import Callable, Sequence
from decimal import Decimal, InvalidOperation

from rules.mechanisms.noised_outputs import Text
from rules.mechanisms.release_plan import Block, KeyColumn, PublicGroups

Cell = bytes | None  # of a row as the server sends it; None is NULL
Key = tuple[Cell, ...]
Group = tuple[Text, ...]

# Stands before the bytes of a label that is no text in the database's encoding: no text of PostgreSQL's can hold it.
_UNREAD = "\0"


def keys_of(block: Block, groups: Sequence[Group], codec: str) -> list[Key | None]:
    """Return what a row of each group of a known list has as its key; None where no row can be of that group.

    A key means one group, the first that has it: were it two, one unit would move both.
    """
    seen = set[Key]()
    keys = list[Key | None]()
    for key in _keys(block, groups, codec):
        keys.append(None if key in seen else key)
        if key is not None:
            seen.add(key)
    return keys


def _keys(block: Block, groups: Sequence[Group], codec: str) -> list[Key | None]:
    match block.groups:
        case PublicGroups(rows=rows, ordinals=tuple() as ordinals) if block.top is not None:
            listed = dict(reversed(list(zip(rows, ordinals, strict=True))))
            return [tuple(map(_digits, listed[group])) if group in listed else None for group in groups]
        case PublicGroups(ordinals=tuple() as ordinals):
            if len(ordinals) != len(groups):
                raise ValueError("ordinals are those of the whole list")
            return [tuple(map(_digits, ordinal)) for ordinal in ordinals]
    places = [None if key.labels is None else _places(key.labels) for key in block.keys]
    return [_key(places, group, codec) for group in groups]


def _digits(ordinal: int) -> bytes:
    return b"%d" % ordinal


def _places(labels: Sequence[Text]) -> dict[Text, int]:
    """The first place of each label."""
    return {label: place for place, label in reversed(list(enumerate(labels)))}


def _key(places: Sequence[dict[Text, int] | None], group: Group, codec: str) -> Key | None:
    try:
        return tuple(_cell(listed, label, codec) for listed, label in zip(places, group, strict=True))
    except (KeyError, UnicodeEncodeError):  # such a label is not in the list, or not in the encoding
        return None


def _cell(listed: dict[Text, int] | None, label: Text, codec: str) -> Cell:
    if listed is not None:
        return _digits(listed[label])
    if label is None:
        return None
    return label[1:].encode("latin-1") if label.startswith(_UNREAD) else label.encode(codec)


def is_known(block: Block) -> Callable[[Key], bool]:
    """Tell whether the ordinals in a key found in the data stand for labels; keys sent as they are all may be."""
    listed = [
        (place, frozenset(map(_digits, range(len(column.labels)))))
        for place, column in enumerate(block.keys)
        if column.labels is not None
    ]
    return lambda key: all(key[place] in known for place, known in listed)


def in_bytes(key: Key) -> tuple[tuple[bool, bytes], ...]:
    """The place of a key among others, by its bytes alone."""
    return tuple((cell is None, cell or b"") for cell in key)


def group_of(block: Block, key: Key, codec: str) -> Group:
    """The group of a key that was found and may be released."""
    return tuple(_label(column, cell, codec) for column, cell in zip(block.keys, key, strict=True))


def _label(column: KeyColumn, cell: Cell, codec: str) -> Text:
    if cell is None:
        return None
    return read_label(cell, codec) if column.labels is None else column.labels[int(cell)]


def read_label(cell: bytes, codec: str) -> str:
    """The text of a label; of bytes that are no text a mark and the bytes, so that no two labels become one."""
    try:
        text = cell.decode(codec)
        if text.encode(codec) == cell and not text.startswith(_UNREAD):
            return text
    except UnicodeError:
        pass
    return _UNREAD + cell.decode("latin-1")


def is_unread(label: Text) -> bool:
    """Tell whether a label is bytes that are no text in the database's encoding."""
    return label is not None and label.startswith(_UNREAD)


def shown_label(label: Text) -> Text:
    r"""Return what is shown of a label: of one that is no text its bytes, those beyond ASCII after a backslash.

    Example:
        >>> shown_label("Málaga"), shown_label(read_label(b"M\xff", "utf-8"))
        ('Málaga', 'M\\xff')
    """
    if label is None or not is_unread(label):
        return label
    return label[1:].encode("latin-1").decode("ascii", "backslashreplace")


def in_order(block: Block, key: Key, group: Group) -> tuple[tuple[int, Decimal, str], ...]:
    """The place of a released group: by ordinals as they are listed, numbers as numbers, and NULL last."""
    return tuple(map(_place, block.keys, key, group))


def _place(column: KeyColumn, cell: Cell, label: Text) -> tuple[int, Decimal, str]:
    """Whatever a label is, it has a place: what is no number stands behind the numbers."""
    if cell is None or label is None:
        return 2, Decimal(0), ""
    if column.labels is not None:
        return 0, Decimal(int(cell)), ""
    if not column.is_number:
        return 0, Decimal(0), label
    try:
        number = Decimal(label)
    except InvalidOperation:
        return 1, Decimal(0), label
    return 0, Decimal("Infinity") if number.is_nan() else number, ""
