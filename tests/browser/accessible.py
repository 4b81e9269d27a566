"""What can be checked of a page's accessibility without a person: names, headings, contrasts, sizes, focus."""

from itertools import pairwise

from tests.superset.api import part, rows, text
from tests.superset.browser import Browser

NAMED_ROLES = frozenset(
    ("button", "link", "textbox", "searchbox", "combobox", "checkbox", "meter", "image", "img", "region", "navigation")
)

CONTRASTS = """
const luminance = ([r, g, b]) => {
  const [x, y, z] = [r, g, b].map((c) => c / 255).map((c) => c <= 0.03928 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4);
  return 0.2126 * x + 0.7152 * y + 0.0722 * z;
};
const numbers = (text) => (text.match(/[\\d.]+/g) || []).map(Number);
const isOpaque = (colour) => colour.length === 3 ? true : colour.length === 4 && colour[3] === 1;
const ground = (element) => {
  for (let each = element; each; each = each.parentElement) {
    const colour = numbers(getComputedStyle(each).backgroundColor);
    if (colour.length && isOpaque(colour)) return colour;
  }
  return matchMedia("(prefers-color-scheme: dark)").matches ? [0, 0, 0] : [255, 255, 255];
};
const found = [];
const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
while (walker.nextNode()) {
  const element = walker.currentNode.parentElement;
  if (!walker.currentNode.data.trim() || !element.checkVisibility() || element.closest("option, title")) continue;
  const style = getComputedStyle(element);
  const colour = numbers(element.closest("svg") ? style.fill : style.color);
  const [one, other] = [luminance(colour), luminance(ground(element))].sort((a, b) => b - a);
  const contrast = (one + 0.05) / (other + 0.05);
  if (contrast < 4.5) found.push(`${walker.currentNode.data.trim().slice(0, 40)}: ${contrast.toFixed(2)}`);
}
return found;
"""

SMALL_TARGETS = """
return Array.from(document.querySelectorAll("button, select, input:not([type=hidden]):not([type=checkbox]), nav a"))
  .filter((each) => each.checkVisibility())
  .filter((each) => each.getBoundingClientRect().height < 24)
  .map((each) => each.outerHTML.slice(0, 80));
"""

CUT_OFF = """
const wide = document.documentElement.clientWidth;
return Array.from(document.querySelectorAll("main *, header *"))
  .filter((each) => !each.closest(".scroll") && each.checkVisibility() && each.getBoundingClientRect().right > wide + 1)
  .map((each) => each.outerHTML.slice(0, 80));
"""

HEADINGS = """
return Array.from(document.querySelectorAll("h1, h2, h3, h4")).map((each) => Number(each.tagName[1]));
"""

FOCUSABLE = """
return Array.from(document.querySelectorAll(
  "a[href], button:not([disabled]), input:not([type=hidden]), select, textarea, [tabindex='0'], summary"
)).filter((each) => each.checkVisibility({contentVisibilityAuto: true})).length;
"""

FOCUS = """
const each = document.activeElement;
const style = getComputedStyle(each);
return [each === document.body ? "" : each.outerHTML.slice(0, 120), style.outlineStyle, parseFloat(style.outlineWidth)];
"""


def faults_of(window: Browser) -> list[str]:
    """All that is wrong with the page that is open."""
    levels = [int(str(each)) for each in _list(window.run(HEADINGS))]
    jumps = [pair for pair in pairwise(levels) if pair[1] > pair[0] + 1]
    found = [f"headings: {levels}"] if levels.count(1) != 1 or levels[:1] != [1] or jumps else []
    found += [f"contrast: {each}" for each in _list(window.run(CONTRASTS))]
    found += [f"small: {each}" for each in _list(window.run(SMALL_TARGETS))]
    found += [f"cut off: {each}" for each in _list(window.run(CUT_OFF))]
    found += [f"no name: {text}" for text in _nameless(window)]
    if not window.run("return document.documentElement.lang"):
        found.append("no language")
    return found


def _nameless(window: Browser) -> list[str]:
    """Nodes of the accessibility tree, as a screen reader gets it, that say nothing of what they are."""
    window.command("Accessibility.enable")
    nodes = rows(window.command("Accessibility.getFullAXTree")["nodes"])
    found = []
    for node in nodes:
        role = text(part(node, "role")["value"]) if "role" in node else ""
        name = part(node, "name").get("value") if "name" in node else ""
        if role in NAMED_ROLES and not node.get("ignored") and not str(name or "").strip():
            found.append(f"{role} {node.get('backendDOMNodeId')}")
    return found


def walk_by_tab(window: Browser) -> list[tuple[str, str, float]]:
    """Every place that Tab reaches from the top of the page on: what it is, and its outline."""
    window.run("document.activeElement.blur(); window.scrollTo(0, 0); document.body.focus();")
    count = int(str(window.run(FOCUSABLE)))
    found = []
    for _ in range(count):
        window.press("\ue004")
        name, style, width = _list(window.run(FOCUS))
        found.append((str(name), str(style), float(str(width))))
    return found


def _list(found: object) -> list[object]:
    assert isinstance(found, list)
    return found
