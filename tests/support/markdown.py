"""The project's pages as tests read them: links, anchors, code spans and fenced examples."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]
README = ROOT / "README.md"
PAGES = sorted((*ROOT.glob("*.md"), *(ROOT / "docs").glob("*.md"), *(ROOT / name / "README.md" for name in
               ("rules", "tests", "docker"))))  # fmt: skip

_FENCE = re.compile(r"^( *)```([^\n]*)\n(.*?)^ *```$", re.MULTILINE | re.DOTALL)
_SPAN = re.compile(r"`([^`\n]+)`")
_LINK = re.compile(r"\]\(([^)\s]+)\)")
_HEADING = re.compile(r"^#+ +(.+?)\s*$", re.MULTILINE)


@dataclass(frozen=True)
class Fence:
    """A fenced example: its page, the first line's number, the words after the three ticks, and its text."""

    page: str
    line: int
    info: tuple[str, ...]
    text: str

    def __str__(self) -> str:
        return f"{self.page}:{self.line}"


def text_of(page: Path) -> str:
    return page.read_text(encoding="utf-8")


def fences(*pages: Path) -> list[Fence]:
    """All fenced examples of some pages, in their order."""
    return [
        Fence(str(page.relative_to(ROOT)), text.count("\n", 0, found.start()) + 1, tuple(found[2].split()), found[3])
        for page in pages
        for text in (text_of(page),)
        for found in _FENCE.finditer(text)
    ]


def spans(page: Path) -> list[str]:
    """What stands between ticks, outside fenced examples."""
    return _SPAN.findall(_FENCE.sub("", text_of(page)))


def links(page: Path) -> Iterator[tuple[str, str]]:
    """The relative links of a page: the file, "" for the page itself, and the anchor in it."""
    for target in _LINK.findall(_FENCE.sub("", text_of(page))):
        if not re.match(r"[a-z]+:", target):
            file, _, anchor = target.partition("#")
            yield file, anchor


def anchors(page: Path) -> set[str]:
    """The anchors that GitHub makes of a page's headings."""
    headings = _HEADING.findall(_FENCE.sub("", text_of(page)))
    return {re.sub(r"[^\w\- ]", "", heading.lower()).strip().replace(" ", "-") for heading in headings}


def section(page: Path, heading: str) -> str:
    """The text below a heading, up to the next one."""
    _, _, rest = text_of(page).partition(f"\n## {heading}\n")
    assert rest, f"{page} has no section {heading}"
    return rest.partition("\n## ")[0]
