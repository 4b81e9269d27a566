"""Local reports: people randomize their own answers before anybody else has them.

A client library, and the laws by which its reports are estimated (`noisegate.estimate`). It needs nothing but OpenDP.
"""

from rules.local.laws import Law, bit_law, kary_law, sketch_law, unary_law
from rules.local.reports import Bit, KAry, Mean, Remembered, Sketch, Unary

__all__ = (
    "Bit", "KAry", "Law", "Mean", "Remembered", "Sketch", "Unary", "bit_law", "kary_law", "sketch_law", "unary_law",
)  # fmt: skip
