"""Reports that people randomize themselves, and estimates from them: `rules.local`, by the name of clients."""

from rules.local import Bit, KAry, Law, Mean, Remembered, Sketch, Unary, bit_law, kary_law, sketch_law, unary_law

__all__ = (
    "Bit", "KAry", "Law", "Mean", "Remembered", "Sketch", "Unary", "bit_law", "kary_law", "sketch_law", "unary_law",
)  # fmt: skip
