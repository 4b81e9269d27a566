"""The settings by which the proxy and PostgreSQL read the same text alike."""

from dataclasses import dataclass, replace
from typing import Final

from proxy.session.encodings import find_codec

_UNADMITTED: Final = "ascii"  # reads what is the same in all encodings, and nothing else


@dataclass(frozen=True, slots=True)
class LexicalSettings:
    """The settings by which a text is cut into strings and names."""

    codec: str = "utf-8"  # of the client's encoding
    has_odd_strings: bool = False  # standard_conforming_strings is off: a backslash escapes in every string

    @property
    def is_admitted(self) -> bool:
        """Whether a text in this encoding can be read that is more than ASCII."""
        return self.codec != _UNADMITTED

    def noting(self, name: str, value: str) -> "LexicalSettings":
        """What holds after a setting has been reported. An encoding that is not admitted is read as far as ASCII."""
        match name:
            case "client_encoding":
                return replace(self, codec=find_codec(value) or _UNADMITTED)
            case "standard_conforming_strings":
                return replace(self, has_odd_strings=value == "off")
        return self
