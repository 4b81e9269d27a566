"""Runs the synthesizer: a process that is started for one fit, and ended with it."""

import asyncio
import sys

from proxy.plain_shapes import Malformed
from proxy.process_isolation import bare_environment, expendable
from proxy.synopses.fit_pipe import JOB, Report, decode_rows
from rules.synthesis.model import Job

_SPARE_SECONDS = 120.0  # beyond what the job itself allows, for starting and for texts


class FitFailed(Exception):
    """The synthesizer ended without rows."""


async def run_fit(job: Job) -> tuple[Report, tuple[bytes, ...]]:
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
