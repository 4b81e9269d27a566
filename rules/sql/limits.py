"""Limit texts, in one pass before any parser sees them.

Both parsers can be driven to death by short texts: a sum of 100,000 terms ends libpg_query, twenty nested ARRAY[ keep
sqlglot busy for a minute. The count is rough on purpose: it never does more work than the text is long. Every text is
read by PostgreSQL's grammar, which takes what tools ask of catalogs, a list of ten thousand numbers too; only a
statement that is planned has to be short.
"""

import re
from collections.abc import Iterator

from rules.refusal import TooComplex

MOST_BYTES = 64 * 1024
MOST_TOKENS = 4_000
DEEPEST_NESTING = 64

TOKEN = re.compile(
    r"""
    (?: \s++ | --[^\n\r]*+ )*+
  (?:
    (?P<comment> /\* )
  | (?P<string>  [eE]'(?:[^'\\]|\\.|'')*(?:'|\Z) | '(?:[^']|'')*(?:'|\Z) | "(?:[^"]|"")*(?:"|\Z) )
  | (?P<dollar>  \$(?:[A-Za-z_\x80-\U0010ffff]\w*)?\$ )
  | (?P<open>    [(\[] | (?i:case)(?![\w$]) )
  | (?P<close>   [)\]] | (?i:end)(?![\w$]) )
  | (?P<word>    [\w$]+ )
  | (?P<other>   . )
  | \Z )
    """,
    re.VERBOSE | re.DOTALL,
)
COMMENT_EDGE = re.compile(r"/\*|\*/")


def check_text(text: str) -> None:
    """Refuse a text that is too long or nested too deeply to be read."""
    _count_checked(text)


def check_bytes(text: bytes) -> None:
    """Refuse a text that is too long, in whatever encoding: in UTF-8 none is shorter."""
    if len(text) > MOST_BYTES:
        hint = "Pass long lists and texts as parameters."
        raise TooComplex(f"the statement is longer than {MOST_BYTES // 1024} KiB", hint=hint)


def check_size(text: str) -> None:
    """Refuse a statement that cannot be read, or that has too many tokens to be planned."""
    if _count_checked(text) > MOST_TOKENS:
        hint = "Write fewer constants, as a range, or a subquery over a public table."
        raise TooComplex(f"a statement over protected tables has at most {MOST_TOKENS:,} words and signs", hint=hint)


def _count_checked(text: str) -> int:
    """Return how many words and signs a text that can be read has at most."""
    check_bytes(text.encode("utf-8", "replace"))
    if len(text) <= MOST_TOKENS and _openings(text) <= DEEPEST_NESTING:  # nearly every text: not read sign by sign
        return len(text)
    return _count_nested(text)


def _openings(text: str) -> int:
    """How often something can be opened in a text, inside quotes too."""
    return sum(map(text.count, _OPENINGS)) + text.lower().count("case")


_OPENINGS = ("(", "[", "/*")


def _count_nested(text: str) -> int:
    """Return how many words and signs a text has; refuses one that is nested too deeply."""
    nesting = count = 0
    for token in _tokens(text):
        count += 1
        if token.lastgroup == "open":
            nesting += 1
            if nesting > DEEPEST_NESTING:
                raise TooComplex(f"the statement is nested more than {DEEPEST_NESTING} levels deep")
        elif token.lastgroup == "close":
            nesting -= 1
    return count


def tokens(text: str) -> Iterator[tuple[str, int]]:
    """The words and signs of a text, and where each begins."""
    for token in _tokens(text):
        yield token.group(token.lastgroup or 0), token.start(token.lastgroup or 0)


def _tokens(text: str) -> Iterator[re.Match[str]]:
    at = 0
    while at < len(text):
        for found in TOKEN.finditer(text, at):  # without gaps: the last alternative takes any character
            at = found.end()
            if found.lastgroup == "comment":
                at = _end_of_comment(text, at)
                break
            if found.lastgroup is not None:  # or else there is nothing more
                yield found
            if found.lastgroup == "dollar":
                at = _end_of_quote(text, at, found.group("dollar"))
                break


def _end_of_comment(text: str, at: int) -> int:
    """Return where a comment ends whose beginning ends here; comments nest.

    PostgreSQL's scanner reads what follows each beginning anew, so 30,000 of them take it some seconds.
    """
    depth = 1
    while depth and (edge := COMMENT_EDGE.search(text, at)):
        depth += 1 if edge.group() == "/*" else -1
        if depth > DEEPEST_NESTING:
            raise TooComplex(f"the statement has comments nested more than {DEEPEST_NESTING} levels deep")
        at = edge.end()
    return len(text) if depth else at


def _end_of_quote(text: str, at: int, tag: str) -> int:
    """Return where a dollar quote ends: with its own tag."""
    end = text.find(tag, at)
    return len(text) if end < 0 else end + len(tag)
