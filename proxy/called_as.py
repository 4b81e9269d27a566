"""How a shell starts this program: what is printed to be pasted is found from where the reader is."""

import shlex
import shutil
import sys
from pathlib import Path
from typing import Final

_NAME: Final = "noisegate"


def called_as() -> str:
    """Its name, where a shell finds this very program by it, or else the path by which it was started."""
    started, found = Path(sys.argv[0]), shutil.which(_NAME)
    if started.name != _NAME or not started.is_file() or (found is not None and started.samefile(found)):
        return _NAME
    return shlex.quote(str(started.absolute()))
