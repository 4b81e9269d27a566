"""The rules of the cases serve here too."""

from tests.cases.conftest import demo_rules

__all__ = ["demo_rules"]
