"""The synthesizer, in a process of its own: a job comes in, rows go out. It has no way to the database."""

import resource
import sys
import time

from proxy.synopses.fit_pipe import JOB, encode_rows
from rules.synthesis.fit import fit
from rules.synthesis.values import copy_texts

MEMORY_BYTES = 4 * 1024**3


def main() -> None:
    """Fit one job."""
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY_BYTES, MEMORY_BYTES))
    job = JOB.decode(sys.stdin.buffer.read())
    fitted = fit(job, time.monotonic)
    with open(sys.stdout.fileno(), "wb", closefd=False) as rows:  # sys.stdout has no buffer if Python runs unbuffered
        rows.writelines(encode_rows(fitted.pairs, fitted.seconds, copy_texts(job, fitted)))


if __name__ == "__main__":
    main()
