"""`frame.noisegate`: the margins of an answer as columns, its cost, and its bars."""

import pandas

from noisegate.answer import Told, told_of
from noisegate.shown import bars, summary


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
        """The frame with a column for each margin, beside its number; there is none where there is no number."""
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


def register() -> None:
    """Make it known to pandas."""
    pandas.api.extensions.register_dataframe_accessor("noisegate")(Accessor)
