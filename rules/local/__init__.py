"""Local reports: people randomize their own answers before anybody else has them.

A client library, and the laws by which its reports are estimated (`noisegate.estimate`). It needs nothing but OpenDP.
"""

from rules.local.laws import Law, bit_law, kary_law, unary_law
from rules.local.reports import Bit, KAry, Mean, Remembered, Unary

__all__ = ("Bit", "KAry", "Law", "Mean", "Remembered", "Unary", "bit_law", "kary_law", "unary_law")
