"""`%noisegate` connects and shows what is left, `%%noisegate` asks: cost, margins and bars stand below the cell.

The frame has them too: `frame.noisegate` is an accessor of pandas.
"""

from typing import Any, Final

import pandas
import psycopg
from IPython.display import HTML, display

from noisegate.answer import Session, Told, ask, told_of
from noisegate.shown import bars, progress, refusal, summary, table

_BUDGET: Final = "SELECT account, epsilon_left, epsilon, period, period_end FROM noisegate.budget"
_USE: Final = "Connect first: %noisegate host=… port=… dbname=… user=… sslmode=require"


class Magic:
    """The magic of one notebook, and its connection."""

    def __init__(self, shell: Any) -> None:
        self._shell = shell
        self._session: Session | None = None

    def __call__(self, line: str, cell: str | None = None) -> None:
        """%noisegate [connection string], or %%noisegate [name for the frame] over a statement."""
        try:
            if cell is not None:
                self._ask(line.strip(), cell)
            elif line.strip():
                if self._session is not None:
                    self._session.close()
                self._session = psycopg.connect(line.strip(), autocommit=True)
                self._show_budget()
            else:
                self._show_budget()
        except psycopg.Error as error:
            said = error.diag
            display(
                HTML(refusal(said.message_primary or str(error), said.message_detail or "", said.message_hint or ""))
            )

    def _open(self) -> Session:
        if self._session is None:
            raise psycopg.OperationalError(_USE)
        return self._session

    def _show_budget(self) -> None:
        frame = ask(self._open(), _BUDGET, print)
        display(HTML(f"{table(frame, Told())}{summary(told_of(frame))}"))

    def _ask(self, name: str, statement: str) -> None:
        running = display(HTML(""), display_id=True)
        try:
            frame = ask(self._open(), statement, lambda words: running.update(HTML(progress(words))))
        finally:
            running.update(HTML(""))
        told = told_of(frame)
        display(HTML(f"{table(frame, told)}{bars(frame, told)}{summary(told)}"))
        if name:
            self._shell.push({name: frame})


class Accessor:
    """Margins and cost of a frame that was made by an answer; nothing of any other frame."""

    def __init__(self, frame: "pandas.DataFrame") -> None:
        self._frame = frame

    @property
    def told(self) -> Told:
        """All that the proxy said."""
        return told_of(self._frame)

    @property
    def margins(self) -> "pandas.Series":
        """By column how far noise may have moved its numbers, in the worst of its groups."""
        return pandas.Series(self.told.margins, name="margin", dtype="float64")

    @property
    def cost(self) -> float | None:
        """The ε that was charged, or the ρ of Gaussian noise; None for an exact answer."""
        return self.told.cost

    @property
    def left(self) -> float | None:
        """The ε that is left on the account that ends first."""
        return self.told.left

    def with_margins(self) -> "pandas.DataFrame":
        """The frame with a column for each margin, after its number; NULL where the number is NULL."""
        made = self._frame.copy()
        for name, margin in self.told.margins.items():
            if name in made.columns and f"{name}_margin" not in made.columns:
                numbers = made[name]
                place = list(made.columns).index(name) + 1
                made.insert(place, f"{name}_margin", numbers.notna().map({True: margin, False: None}).astype("float64"))
        return made

    def bars(self) -> str:
        """Bars with error bars, as SVG; "" where there is nothing to draw."""
        return bars(self._frame, self.told)

    def _repr_html_(self) -> str:
        return f"{self.bars()}{summary(self.told)}"


def load_ipython_extension(ipython: Any) -> None:
    """Register magic and accessor: %load_ext calls it."""
    pandas.api.extensions.register_dataframe_accessor("noisegate")(Accessor)
    ipython.register_magic_function(Magic(ipython), "line_cell", "noisegate")
