"""What the clocks of the real database show: the only word on its time zones."""

from collections.abc import Mapping, Sequence
from typing import Any

from psycopg import AsyncConnection

# Seconds ahead of UTC at each moment, in the order of time. A name may be an abbreviation, a session's zone is none.
BY_NAME = """
SELECT z.name, array_agg(extract(epoch FROM timezone(z.name, m.at) - timezone('UTC', m.at))::bigint ORDER BY m.at)
FROM unnest(%s::text[]) AS z (name), (SELECT to_timestamp(s::float8) AS at FROM unnest(%s::bigint[]) AS u (s)) AS m
GROUP BY z.name
"""
OF_SESSION = """
SELECT %s, array_agg(extract(epoch FROM m.at::timestamp - timezone('UTC', m.at))::bigint ORDER BY m.at)
FROM (SELECT to_timestamp(s::float8) AS at FROM unnest(%s::bigint[]) AS u (s)) AS m
"""


async def offsets_by_name(
    connection: AsyncConnection[Any], zones: Sequence[str], seconds: Sequence[int]
) -> Mapping[str, list[int]]:
    """How far ahead of UTC these zones are, as AT TIME ZONE reads their names."""
    cursor = await connection.execute(BY_NAME, (list(zones), list(seconds)))
    return {name: list(offsets) for name, offsets in await cursor.fetchall()}


async def offsets_of_session(
    connection: AsyncConnection[Any], zone: str, seconds: Sequence[int]
) -> Mapping[str, list[int]]:
    """How far ahead of UTC the connection's own TimeZone is, which is this one."""
    cursor = await connection.execute(OF_SESSION, (zone, list(seconds)))
    return {name: list(offsets) for name, offsets in await cursor.fetchall()}
