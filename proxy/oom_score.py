"""Which processes the kernel takes first when the machine's memory runs out: those that can be made again."""

from contextlib import suppress
from pathlib import Path


def expendable(process_id: int) -> None:
    """Let this process, and those that it starts, go before the proxy with its ledger. Linux alone knows of it."""
    with suppress(OSError):
        Path(f"/proc/{process_id}/oom_score_adj").write_text("1000", encoding="ascii")
