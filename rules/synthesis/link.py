"""Rows linked to parents of their own class: those with the same bins of the columns that both have.

A parent wants so many rows as its bucket says. Rows of a class take the places that its parents want in random order;
where these are too few, parents take more, in proportion to what they want, up to the cap. A class without room sends
its rows to the nearest class that has some.
"""

import numpy as np

from rules.synthesis.model import Between, Column, Parent, Whole


def link(
    children: Whole, parents: Whole, how: Parent, columns: tuple[Column, ...], random: np.random.Generator
) -> tuple[Whole, int]:
    """The parent of each row, or -1 where nobody has room for it; and how many rows left their class."""
    want = _wanted(children, parents, how, columns, random)
    shape = [len(columns[theirs].bins) for _, theirs in how.shared]
    of_children = _classes(children, [mine for mine, _ in how.shared], shape)
    of_parents = _classes(parents, [theirs for _, theirs in how.shared], shape)
    parents_of = np.full(len(children), -1, dtype=np.int64)
    room = np.where(want > 0, how.most, 0) if how.count is not None else np.full(len(parents), how.most)
    waiting = _grouped(of_children)
    for number, members in _grouped(of_parents).items():
        mine = waiting.get(number)
        if mine is None:
            continue
        places = _places(members, want, room, mine.size, random)
        parents_of[random.permutation(mine)[: places.size]] = places
        room -= np.bincount(places, minlength=room.size)
    return parents_of, _move(parents_of, of_children, of_parents, shape, room, random)


def _wanted(
    children: Whole, parents: Whole, how: Parent, columns: tuple[Column, ...], random: np.random.Generator
) -> Whole:
    """Return how many rows each parent wants, within its bucket."""
    if how.count is None:
        share = len(children) / max(1, len(parents))
        return np.floor(share + random.random(len(parents))).astype(np.int64)
    lows, highs = [], []
    for bin_ in columns[how.count].bins:
        if not isinstance(bin_, Between):
            raise TypeError("a number of rows has bins of numbers")
        lows.append(bin_.low)
        highs.append(min(bin_.high, how.most))
    buckets = parents[:, how.count]
    low, high = np.array(lows)[buckets], np.array(highs)[buckets]
    wanted: Whole = low + np.floor(random.random(buckets.size) * (high - low + 1)).astype(np.int64)
    return np.minimum(wanted, how.most)


def _classes(rows: Whole, places: list[int], shape: list[int]) -> Whole:
    if not places:
        return np.zeros(len(rows), dtype=np.int64)
    return np.ravel_multi_index(tuple(rows[:, place] for place in places), shape).astype(np.int64)


def _grouped(classes: Whole) -> dict[int, Whole]:
    """The rows of each class."""
    order = np.argsort(classes, kind="stable")
    numbers, starts = np.unique(classes[order], return_index=True)
    return (
        {int(number): part for number, part in zip(numbers, np.split(order, starts[1:]), strict=True)}
        if numbers.size
        else {}
    )


def _places(members: Whole, want: Whole, room: Whole, count: int, random: np.random.Generator) -> Whole:
    """So many places of these parents, or as many as there are: first those that they want."""
    wanted = random.permutation(np.repeat(members, np.minimum(want, room)[members]))
    if wanted.size >= count:
        return wanted[:count]
    left = (room - np.minimum(want, room))[members]
    more = np.repeat(members, left)
    key = random.exponential(size=more.size) / np.maximum(want[more], 1)
    return np.concatenate([wanted, more[np.argsort(key, kind="stable")][: count - wanted.size]])


def _move(
    parents: Whole, of_children: Whole, of_parents: Whole, shape: list[int], room: Whole, random: np.random.Generator
) -> int:
    """Give what is left to the nearest classes with room; returns how many rows were moved."""
    left, moved = _grouped_rows(parents, of_children), 0
    members = _grouped(of_parents)
    numbers = np.array(list(members), dtype=np.int64)
    theirs = (
        np.stack(np.unravel_index(numbers, shape), axis=1) if shape and numbers.size else np.zeros((numbers.size, 0))
    )
    for number, waiting in left.items():
        rows = waiting
        mine = np.array(np.unravel_index(number, shape)) if shape else np.zeros(0)
        common = (theirs == mine).sum(axis=1) + random.random(numbers.size)
        for place in np.argsort(-common, kind="stable"):
            if not rows.size:
                break
            of_class = members[int(numbers[place])]
            free = random.permutation(np.repeat(of_class, room[of_class]))[: rows.size]
            parents[rows[: free.size]], rows = free, rows[free.size :]
            room -= np.bincount(free, minlength=room.size)
            moved += int(free.size)
    return moved


def _grouped_rows(parents: Whole, of_children: Whole) -> dict[int, Whole]:
    rows = np.nonzero(parents < 0)[0]
    return {number: rows[part] for number, part in _grouped(of_children[rows]).items()}
