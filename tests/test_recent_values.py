"""A memory with so much room."""

from proxy.recent_values import RecentValues


def test_only_what_was_used_last_is_kept() -> None:
    recent: RecentValues[int, str] = RecentValues(20)
    recent.keep(1, "one", 10)
    recent.keep(2, "two", 10)
    assert recent.find(1) == "one"

    recent.keep(3, "three", 10)

    assert (recent.find(1), recent.find(2), recent.find(3)) == ("one", None, "three")


def test_what_is_remembered_has_only_so_much_room() -> None:
    recent: RecentValues[int, str] = RecentValues(100)
    for number in range(10):
        recent.keep(number, "small", 10)

    recent.keep(10, "large", 95)
    assert [number for number in range(11) if recent.find(number)] == [10]

    recent.keep(10, "larger than all", 101)
    assert recent.find(10) is None
    for number in range(10):
        recent.keep(number, "small", 10)
        recent.keep(number, "the same again", 10)
    assert [recent.find(number) for number in range(10)] == ["the same again"] * 10
