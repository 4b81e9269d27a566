"""Say why a statement is not answered, in words that the analyst can act on.

Every refusal depends on the statement, the rules and the ledger alone, never on a row.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import ClassVar, Final, Self

NOTHING_CHARGED: Final = "Nothing was charged."
LONGER: Final = "Raise statement_timeout; or your DBA raises --answer-timeout of noisegate serve."


class Refusal(Exception):
    """A statement that is not answered. Its words help the author to correct it.

    Texts quote the statement and the rules only: never a value from the data.
    `position` counts characters from 1 in the text that the client sent. Where the reason is known only the tree is,
    so `about` names what it is about: a table, a column, a function, a constant, or an SQL word in capitals.
    """

    sqlstate: ClassVar[str] = "0A000"  # feature_not_supported

    def __init__(
        self, message: str, *, detail: str = "", hint: str = "", position: int | None = None, about: str = ""
    ) -> None:
        super().__init__(message, detail, hint, position)
        self.message, self.detail, self.hint, self.position = message, detail, hint, position
        self.about = about

    def __str__(self) -> str:
        return self.message

    def moved(self, characters: int) -> Self:
        """The same refusal where the statement starts so many characters later in what the client sent."""
        position = None if self.position is None else self.position + characters
        return type(self)(self.message, detail=self.detail, hint=self.hint, position=position)

    def after_a_part(self) -> Self:
        """The same refusal of a statement of which a part was answered and charged before."""
        hint = self.hint.replace(NOTHING_CHARGED, "Only the part that was answered first was charged.")
        return type(self)(self.message, detail=self.detail, hint=hint, position=self.position)

    def without_frames(self) -> Self:
        """The same refusal, which lets go of the frames that it, and what it replaced, came through.

        They hold the statement with its values and, most often, the refusal itself. One that is raised again and again
        would hold the frames of each time.
        """
        error: BaseException | None = self
        while error is not None:
            error.__traceback__, replaced = None, error.__context__
            error.__context__, error = None, replaced
        return self


@contextmanager
def pointing_at(word: str | None) -> Iterator[None]:
    """Point refusals that are raised inside at this word, unless something further in knows better."""
    try:
        yield
    except Refusal as refusal:
        refusal.about = refusal.about or word or ""
        raise


class NotSupported(Refusal):
    """A shape of SQL that has no private answer here."""


class NotAllowed(Refusal):
    """Rows, hidden things, or anything that would reveal one unit."""

    sqlstate = "42501"  # insufficient_privilege


class ReadOnly(Refusal):
    """Writes and changes of the schema."""

    sqlstate = "25006"  # read_only_sql_transaction


class BadSetting(Refusal):
    """A setting of ours with a value that it cannot have."""

    sqlstate = "22023"  # invalid_parameter_value


class UnknownOption(Refusal):
    """An option of a statement that PostgreSQL does not have."""

    sqlstate = "42601"  # syntax_error


class UnknownSetting(Refusal):
    """A setting of ours that there is not."""

    sqlstate = "42704"  # undefined_object


class UnknownParameter(Refusal):
    """A parameter that the client has not given: PostgreSQL's own words."""

    sqlstate = "42P02"  # undefined_parameter


class BudgetSpent(Refusal):
    """The charge would pass a budget."""

    sqlstate = "53400"  # configuration_limit_exceeded


class OutOfReach(Refusal):
    """More accuracy than the rules allow a statement to buy."""

    sqlstate = "53400"  # configuration_limit_exceeded


class AnalystStopped(Refusal):
    """The real database failed after a charge of this analyst's, in a way that a row can have caused."""

    sqlstate = "53400"  # configuration_limit_exceeded


class ChargedSince(Refusal):
    """Another proxy has already made a charge that is made only once. No analyst sees this."""


class CannotRun(Refusal):
    """The real database will not plan what would run inside: for its permissions, or the limits of its kind."""

    sqlstate = "0A000"  # feature_not_supported


class RulesChanged(Refusal):
    """The statement was planned by rules or a schema that hold no more."""

    sqlstate = "40001"  # serialization_failure: clients try again


class Interrupted(Refusal):
    """Cancelled by the client, or out of time."""

    sqlstate = "57014"  # query_canceled


class TooComplex(Refusal):
    """A text beyond the limits of length, nesting or planning time."""

    sqlstate = "54001"  # statement_too_complex


class TooMany(Refusal):
    """One more than a session may have."""

    sqlstate = "54000"  # program_limit_exceeded


class Unavailable(Refusal):
    """The twin, the ledger, the real database or the planner is unavailable."""

    sqlstate = "57P03"  # cannot_connect_now


class InnerFailure(Refusal):
    """The real database failed after the charge: one constant text, whatever happened there."""

    sqlstate = "58000"  # system_error


class Mismatch(Refusal):
    """Our own reading of a statement differs from PostgreSQL's: nothing is run, nothing is spent."""

    sqlstate = "XX000"  # internal_error


class DividesByZero(Refusal):
    """An expression over answers that fails whatever they are."""

    sqlstate = "22012"  # division_by_zero


class Untranslatable(Refusal):
    """An answer with characters that the client's encoding does not have."""

    sqlstate = "22P05"  # untranslatable_character


class NotMade(Refusal):
    """A synopsis that has no rows now."""

    sqlstate = "55000"  # object_not_in_prerequisite_state


class Misfit(Refusal):
    """A message of the protocol that does not fit its statement, in PostgreSQL's words."""

    sqlstate = "08P01"  # protocol_violation


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
