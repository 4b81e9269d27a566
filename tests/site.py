"""Build the site of the project's pages in build/site, with a search: `python -m tests.site`.

The pages keep their places, so that their links hold, and what they link to comes along. A page that no entry of the
navigation names, a link that leads nowhere and a missing heading fail the build.
"""

import os
import re
import shutil
import subprocess
import sys

from tests.support.markdown import PAGES, ROOT, links, text_of

COPY = ROOT / "build" / "pages"
MARKS = re.compile(r"^( *```\w+) .*$", re.MULTILINE)  # of an example, for the tests alone


def main() -> int:
    """Copy, build; return the builder's exit code."""
    shutil.rmtree(COPY, ignore_errors=True)
    for page in PAGES:
        for file, _ in links(page):
            source = (page.parent / file).resolve()
            if file and source not in PAGES:
                target = COPY / source.relative_to(ROOT)
                target.parent.mkdir(parents=True, exist_ok=True)
                shutil.copyfile(source, target)
        copy = COPY / page.relative_to(ROOT)
        copy.parent.mkdir(parents=True, exist_ok=True)
        copy.write_text(MARKS.sub(r"\1", text_of(page)), encoding="utf-8")
    environment = os.environ | {"NO_MKDOCS_2_WARNING": "1"}
    command = [sys.executable, "-m", "mkdocs", "build", "--strict"]
    return subprocess.run(command, cwd=ROOT, env=environment, check=False).returncode


if __name__ == "__main__":
    sys.exit(main())
