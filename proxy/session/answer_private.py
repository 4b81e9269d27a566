"""The story of a private statement: described as it was written, planned, compared, answered, and put back together.

`simple.py` and `extended.py` hand it in and send its outer statement to the twin, whose rows the client gets. Its
second half, from the released numbers that are found to those that are shown, is `Service.answer` of `proxy.execute`.
"""

import asyncio
from contextlib import ExitStack
from dataclasses import dataclass, replace
from typing import Final

from proxy.metrics import PRIVATE, stage
from proxy.session.accuracy import plan_within
from proxy.session.classify import ODD_ENCODING, without_answer
from proxy.session.errors import moved, notice_report, nowhere
from proxy.session.inner_queries import plan_with_inner
from proxy.session.literals import known_arrays
from proxy.session.private_request import Answered, PrivateRequest, parsed_under, settings_of
from proxy.session.private_session import SPARE_SECONDS, PrivateSession, Run
from proxy.session.progress import progress_shown
from proxy.session.replies import Message, TwinRefusal, described, encoded, parse_under
from proxy.session.twin_probe import PROBE_ROW, QUIET, SessionState, decode_probe, read_through, run_probe
from proxy.wire.backend import Field
from proxy.wire.frontend import STATEMENT, Close, Describe
from rules.functions.function import Styles
from rules.planner.plan import Request, TemporaryView
from rules.refusal import Refusal
from rules.sql.statement import Kind
from rules.sql.system_views import setting_rows

ORIGINAL: Final = b"_ng_original"


async def answer_private(
    private: PrivateSession, asked: PrivateRequest, *, sync: bool, since: float | None = None
) -> Answered | None:
    """Answer, or return None for a statement that the twin may have as it is.

    Raises Refusal, or TwinRefusal when the twin refused one of our messages (and, without `sync`, now skips).
    """
    relay, service, statement, clock = private.relay, private.service, asked.statement, asyncio.get_running_loop().time
    since = since or relay.batch_since or clock()

    # Describe: the twin parses it as it was written, and says what the session is set to and which tables it names.
    private.synthetic.check(statement)
    with stage("describe"):
        description = await _describe(private, asked, sync=sync)
    moment = description.moment
    private.values.follow_search_path(moment.search_path)
    synthetic_notices = private.synthetic.told(statement, moment)
    views, read = await read_through(moment, relay, sync=sync)
    if not any(relation and service.is_protected(*relation) for relation in (*moment.relations, *read)):
        relay.client.write(b"".join(notice_report(notice, relay.codec) for notice in synthetic_notices))
        return None
    relay.is_private = True
    if asked.around is None or description.columns is None:
        raise _without_query(private, asked, moment)
    types, columns = description.types, description.columns
    if not asked.fits(types, columns):
        return None

    # Know its settings and values, and that the twin would take what stands around the query.
    settings = settings_of(asked, moment, private.limits)
    await private.values.rehearse(asked, columns, sync=sync)
    parameters = await private.values.of(asked, types, sync=sync)
    run = Run(
        parameters,
        settings,
        _end(private, moment, since),
        sync,
        lambda: {"last": private.last, "settings": setting_rows(moment.settings, private.limits)},
        parsed_under(asked.literals, moment),
        description.changes,
    )
    request = _request(private, asked, moment, run, views)
    has_notices = settings.notices and moment.setting("client_min_messages") not in QUIET
    private.pay_now()
    with ExitStack() as scope:
        if has_notices and settings.progress is not None:
            scope.enter_context(
                progress_shown(relay, statement.text, every=settings.progress, since=since, ends=run.ends)
            )
        scope.enter_context(run.noting_parts())

        # Plan: first what must be known first, inner queries and the probe of noisegate.within, each answered as this.
        if settings.within is None:
            plan, _, notices = await plan_with_inner(private, asked.place, request, run)
            answer = None
        else:
            plan, notices, answer = await plan_within(private, asked.place, request, run, settings.within, columns)

        # Compare: to PostgreSQL the outer statement looks as the original does. Nothing is charged before.
        with stage("compare"):
            is_parsed = await private.compare(plan, columns, run)

        # Find released numbers, charge, run, noise, settle, show.
        answer = answer or await private.answer(plan, run)
    private.keep_last(answer)
    PRIVATE.observe(clock() - since)
    arrays = await known_arrays(answer.columns)
    shown = (*synthetic_notices, *notices, *answer.notices) if has_notices else ()
    return Answered(plan, asked.around, columns, parameters, arrays, shown, is_parsed, run.is_older)


@dataclass(frozen=True, slots=True)
class Description:
    """A statement as the twin describes it."""

    moment: SessionState
    changes: int  # of the twin, before it was asked
    types: tuple[int, ...] = ()  # of parameters
    columns: tuple[Field, ...] | None = None  # None: it holds no query


async def _describe(private: PrivateSession, asked: PrivateRequest, *, sync: bool) -> Description:
    """Ask for the state of the session, and for the types of parameters and columns as PostgreSQL itself finds them."""
    relay = private.relay
    if not relay.lexis.is_admitted:
        raise ODD_ENCODING
    if asked.explains is not None:
        asked = replace(asked, types=await private.values.types_of(asked.explains, sync=sync))
    changes = relay.changes.number()
    messages: list[Message] = []
    if asked.around is not None and asked.name is not None:
        messages.append(Describe(STATEMENT, asked.name))
    elif asked.around is not None:
        messages += parse_under(ORIGINAL, encoded(asked.around.query, relay.codec), asked.types)
        messages += [Describe(STATEMENT, ORIGINAL), Close(STATEMENT, ORIGINAL)]
    probe_at = len(messages)
    try:
        replies = await relay.ask(*messages, *run_probe(asked.statement.relations, relay.codec), sync=sync)
    except TwinRefusal as error:
        place = asked.place
        if asked.name is not None or place == 0:
            raise
        raise TwinRefusal(moved(error.raw, nowhere if place is None else lambda position: position + place)) from None
    moment = decode_probe(replies[probe_at + PROBE_ROW], relay.codec)
    if asked.around is None:
        return Description(moment, changes)
    return Description(moment, changes, *described(replies[probe_at - 1 - (asked.name is None)]))


def _without_query(private: PrivateSession, asked: PrivateRequest, moment: SessionState) -> Refusal:
    """Refuse what holds no query of its own, where the client has written the first protected table."""
    places: list[int] = []
    if asked.name is None and asked.explains is None:
        places = [
            written.position + asked.statement.start
            for written, found in zip(asked.statement.relations, moment.relations, strict=False)
            if found and private.service.is_protected(*found) and written.position is not None
        ]
    return without_answer(asked.statement, next(iter(places), None))


def _end(private: PrivateSession, moment: SessionState, since: float) -> float:
    """By the least of the client's time-outs and ours, so that we say 57014 before the twin ends the session."""
    limits = [moment.seconds("statement_timeout"), moment.seconds("transaction_timeout")]
    ours = asyncio.get_running_loop().time() + private.timeout_seconds
    return min([ours, *(since + limit - SPARE_SECONDS for limit in limits if limit is not None)])


def _request(
    private: PrivateSession, asked: PrivateRequest, moment: SessionState, run: Run, views: tuple[TemporaryView, ...]
) -> Request:
    """Return what the planner is asked, by the session as it is now. A statement may stand around its query."""
    statement, settings, service = asked.statement, run.settings, private.service
    assert asked.around is not None, "it holds a query"
    is_whole, float_digits = statement.kind is Kind.QUERY, int(moment.setting("extra_float_digits") or 1)
    return Request(
        text=asked.around.query,
        search_path=moment.search_path,
        parameter_types=run.parameters.type_names,
        parameters=run.parameters.values,
        epsilon=settings.epsilon,
        delta=settings.delta,
        rows_per_unit=settings.rows_per_unit,
        groups_per_unit=settings.groups_per_unit,
        rows_auto=settings.rows_auto,
        sums_auto=settings.sums_auto,
        cut=settings.cut,
        other=settings.other,
        confidence=settings.confidence,
        mark=settings.mark,
        empty_groups=settings.empty_groups,
        previews=settings.previews,
        time_zone=moment.setting("TimeZone"),
        now=moment.now,
        styles=Styles(moment.setting("DateStyle"), moment.setting("IntervalStyle"), has_short_floats=float_digits < 1),
        parsed_under=run.under.older,
        views=views,
        preview_rows=service.preview_rows(private.analyst) if settings.previews == "synopsis" else (),
        closed=service.public.closed,
        fingerprint=statement.fingerprint if is_whole else "",
        shape=statement.shape if is_whole else "",
    )
