"""For users of a proxy in Python: `%load_ext noisegate` and a pandas accessor in notebooks, and `noisegate.local`.

The notebook needs the extra `notebook`: pip install '.[notebook]' in a clone. It is a client of the proxy like any
other, and knows nothing but what the proxy tells every client.
"""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from IPython.core.interactiveshell import InteractiveShell


def load_ipython_extension(shell: "InteractiveShell") -> None:
    """Add the magic, where IPython is there: `noisegate.local` needs nothing of it."""
    from noisegate import magic

    magic.load_ipython_extension(shell)
