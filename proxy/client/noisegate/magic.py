"""`%noisegate` connects and shows what is left, `%%noisegate` asks: cost, margins and bars stand below the cell."""

from typing import Any, Final

import psycopg
from IPython.display import HTML, display

from noisegate.accessor import register
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
                self._connect(line.strip())
            else:
                self._show_budget()
        except psycopg.Error as error:
            said = error.diag
            display(
                HTML(refusal(said.message_primary or str(error), said.message_detail or "", said.message_hint or ""))
            )

    def _connect(self, place: str) -> None:
        if self._session is not None:
            self._session.close()
        self._session = psycopg.connect(place, autocommit=True)
        self._show_budget()

    def _open(self) -> Session:
        if self._session is None:
            raise psycopg.OperationalError(_USE)
        return self._session

    def _show_budget(self) -> None:
        frame = ask(self._open(), _BUDGET, print)
        display(HTML(table(frame, Told())))

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


def load_ipython_extension(ipython: Any) -> None:
    """Register the magics: %load_ext calls it."""
    register()
    ipython.register_magic_function(Magic(ipython), "line_cell", "noisegate")
