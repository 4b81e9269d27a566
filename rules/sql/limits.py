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
    (?P<space>   [\s]+ | --[^\n\r]* )
  | (?P<comment> /\* )
  | (?P<string>  [eE]'(?:[^'\\]|\\.|'')*(?:'|\Z) | '(?:[^']|'')*(?:'|\Z) | "(?:[^"]|"")*(?:"|\Z) )
  | (?P<dollar>  \$(?:[A-Za-z_\x80-\U0010ffff]\w*)?\$ )
  | (?P<word>    [\w$]+ )
  | (?P<open>    [(\[] )
  | (?P<close>   [)\]] )
  | (?P<other>   . )
    """,
    re.VERBOSE | re.DOTALL,
)
COMMENT_EDGE = re.compile(r"/\*|\*/")


def check_text(text: str) -> None:
    """Refuse a text that is too long or nested too deeply to be read."""
    if len(text.encode("utf-8", "replace")) > MOST_BYTES:
        raise TooComplex(f"the statement is longer than {MOST_BYTES // 1024} KiB")
    nesting = 0
    for token in _tokens(text):
        nesting += _step(token)
        if nesting > DEEPEST_NESTING:
            raise TooComplex(f"the statement is nested more than {DEEPEST_NESTING} levels deep")


def check_size(text: str) -> None:
    """Refuse a statement that cannot be read, or that has too many tokens to be planned."""
    check_text(text)
    if any(count > MOST_TOKENS for count, _ in enumerate(_tokens(text), start=1)):
        hint = "Write fewer constants, as a range, or a subquery over a public table."
        raise TooComplex(f"a statement over protected tables has at most {MOST_TOKENS:,} words and signs", hint=hint)


def tokens(text: str) -> Iterator[tuple[str, int]]:
    """The words and signs of a text, and where each begins."""
    for token in _tokens(text):
        yield token.group(), token.start()


def _tokens(text: str) -> Iterator[re.Match[str]]:
    at = 0
    while at < len(text):
        match = TOKEN.match(text, at)
        assert match is not None, "the last alternative takes any character"
        at = _end(text, match)
        if match.lastgroup not in ("space", "comment"):
            yield match


def _step(match: re.Match[str]) -> int:
    """Return what a token does to the depth: brackets, and CASE … END."""
    word = match.group()
    if match.lastgroup == "open" or word.lower() == "case":
        return 1
    return -1 if match.lastgroup == "close" or word.lower() == "end" else 0


def _end(text: str, match: re.Match[str]) -> int:
    """Return where a token ends; comments nest, and a dollar quote ends with its own tag."""
    if match.lastgroup == "comment":
        depth, at = 1, match.end()
        while depth and (edge := COMMENT_EDGE.search(text, at)):
            depth += 1 if edge.group() == "/*" else -1
            at = edge.end()
        return len(text) if depth else at
    if match.group("dollar"):
        end = text.find(match.group("dollar"), match.end())
        return len(text) if end < 0 else end + len(match.group("dollar"))
    return match.end()
