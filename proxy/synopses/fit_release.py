"""Fit a release: the rows of its synthetic tables, by the synthesizer in a process that is ended with the fit."""

import asyncio
import sys
from decimal import Decimal

from proxy.execute.rulebook import Rulebook
from proxy.plain_data import Malformed
from proxy.process_isolation import bare_environment, expendable
from proxy.synopses.fit_pipe import JOB, Report, decode_rows
from proxy.twin.synthetic import SyntheticSchema, SyntheticTable
from rules.accounting.accountant import Limit, epsilon_of
from rules.accounting.store import KeptRelease
from rules.synopses.labels import labels_in, with_labels
from rules.synopses.plan import SynopsisPlan
from rules.synopses.release import job_of
from rules.synopses.shown import domain_conditions, links_of, partners_of, references_of, shown_tables
from rules.synthesis.model import Job, Limits, PairReport
from rules.synthesis.values import binned_columns, shown_columns

_SPARE_SECONDS = 120.0  # beyond what the job itself allows, for starting and for texts


class FitFailed(Exception):
    """The synthesizer ended without rows."""


async def fitted_schema(
    plan: SynopsisPlan, kept: KeptRelease, readers: tuple[str, ...], rulebook: Rulebook
) -> SyntheticSchema:  # fmt: skip
    """The rows of a release, as the twin takes them; raises FitFailed."""
    plan = with_labels(plan, labels_in(kept.release, plan), rulebook.policy, rulebook.catalog)
    measured = [rulebook.kernel.marginals(table.statement) for table in plan.tables]
    job = job_of(plan, measured, kept.release, Limits())
    report, texts = await _run(job)
    tables = tuple(
        SyntheticTable(
            *(table, shown_columns(shown_table), binned_columns(shown_table), rows, planned.table.name),
            *(domain_conditions(table, rulebook.catalog), link, partners, references_of(planned, plan)),
        )
        for table, shown_table, rows, planned, link, partners in zip(
            shown_tables(plan), job.tables, texts, plan.tables, links_of(plan), partners_of(plan), strict=True
        )
    )
    price = kept.release.mechanism
    return SyntheticSchema(
        plan.name, tables, readers, kept.time, told_epsilon(kept, rulebook), price.rho, report.seconds,
        pairs=tuple(map(_words_of, report.pairs)),
    )  # fmt: skip


async def _run(job: Job) -> tuple[Report, tuple[bytes, ...]]:
    """Fit a job beside the event loop: a report, and each table's rows as COPY reads them; raises FitFailed."""
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "proxy.synopses.fitter"),
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        env=bare_environment("PYTHON", "VIRTUAL_ENV"),
        start_new_session=True,
    )
    expendable(process.pid)
    try:
        async with asyncio.timeout(job.limits.seconds * len(job.tables) + _SPARE_SECONDS):
            output, _ = await process.communicate(JOB.encode(job))
    except TimeoutError:
        raise FitFailed("it took too long") from None
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
    if process.returncode:
        raise FitFailed(f"it ended with code {process.returncode}")
    try:
        return decode_rows(output)
    except Malformed as error:
        raise FitFailed("it sent no rows") from error


def told_epsilon(kept: KeptRelease, rulebook: Rulebook) -> Decimal:
    """Tell what a release has cost as ε: its own, or what its ρ means at the δ of the budget."""
    price, budget = kept.release.mechanism, rulebook.policy.budget
    if price.epsilon is not None:
        return price.epsilon
    delta = Limit(budget.epsilon, budget.delta).conversion_delta
    return round(epsilon_of(price.rho, delta), 4).normalize() if delta else Decimal("Infinity")


def _words_of(report: PairReport) -> dict[str, object]:
    first, second, third = (*report.columns, None, None)[:3]
    return {
        "table": report.table,
        "column_1": first,
        "column_2": second,
        "column_3": third,
        "cells": report.cells,
        "noise_sd": round(report.noise_sd, 3),
        "expected_distance": round(report.expected, 4),
        "low": round(report.low, 4),
        "high": round(report.high, 4),
        "fit_residual": round(report.residual, 4),
    }
