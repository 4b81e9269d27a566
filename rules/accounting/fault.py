"""Failures after a charge: which of them a row can have caused, and what is said once one has."""

from rules.refusal import AnalystStopped

_NOT_BY_ROWS = (
    "08",  # the connection was lost
    "40",  # rolled back, as by a standby that removes rows which a snapshot still needs
    "57P",  # the server stops, or does not take connections yet
    "53300",  # it has too many of them
    "57014",  # out of time, or cancelled
    "25P03",  # out of time while the transaction stood idle
    "25P04",  # out of time as a transaction
)


def can_tell_of_rows(sqlstate: str) -> bool:
    """Return whether a statement that ended like this may have done so because of the rows that it met.

    Connections and clocks fail for reasons of their own. How long a statement takes is another channel.

    Example:
        >>> [code for code in ("22012", "0A000", "53200", "57014", "57P01", "08006") if can_tell_of_rows(code)]
        ['22012', '0A000', '53200']
    """
    return not sqlstate.startswith(_NOT_BY_ROWS)


def stopped() -> AnalystStopped:
    """The refusal of everything that would have to be paid, until the DBA lifts it."""
    return AnalystStopped(
        "your statements are refused because the real database failed on one of them",
        hint="A failure can reveal something about the data. Your DBA can find the statement in the log, and lift the "
        "block with noisegate ledger forgive.",
    )
