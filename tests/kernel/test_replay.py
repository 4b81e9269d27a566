"""What the replay keeps of statements, and for how long."""

from rules.kernel.replay import Kept


class Maker:
    """Writes in capitals, and notes what it was asked for. Each letter takes one of ten places."""

    def __init__(self) -> None:
        self.asked: list[str] = []
        self.kept = Kept[str, str](self._make, lambda key, made: len(made), room=10)

    def _make(self, key: str) -> str:
        self.asked.append(key)
        return key.upper()


def test_what_was_made_is_made_once() -> None:
    maker = Maker()

    assert [maker.kept(key) for key in ("abc", "defg", "abc")] == ["ABC", "DEFG", "ABC"]
    assert maker.asked == ["abc", "defg"]


def test_what_is_too_large_together_is_forgotten_and_made_again() -> None:
    maker = Maker()
    keys = ("abcdef", "ghijkl", "ghijkl", "abcdef", "m" * 20, "m" * 20, "n")

    assert [maker.kept(key) for key in keys] == [key.upper() for key in keys]
    assert maker.asked == ["abcdef", "ghijkl", "abcdef", "m" * 20, "n"]
