"""Chaos for as long as you like.

python -m tests.soak --minutes 60
python -m tests.soak --minutes 10 --proxies 3 --ledger postgres --seed 7
"""

import argparse
import secrets
import tempfile
from pathlib import Path

from tests.soak.soak import soak


def main() -> None:
    """Run once, and print what happened."""
    parser = argparse.ArgumentParser(prog="python -m tests.soak", description=__doc__.partition("\n")[0])
    parser.add_argument("--minutes", type=float, default=10, help="how long (default: 10)")
    parser.add_argument("--proxies", type=int, default=1, help="on one ledger (default: 1)")
    parser.add_argument("--ledger", choices=("sqlite", "postgres"), default="sqlite", help="its home (default: sqlite)")
    parser.add_argument("--seed", type=int, help="of the actions, to run them in the same order again")
    arguments = parser.parse_args()
    seed = secrets.randbelow(2**32) if arguments.seed is None else arguments.seed
    print(f"--seed {seed}", flush=True)
    with tempfile.TemporaryDirectory() as directory:
        report = soak(
            Path(directory),
            seconds=arguments.minutes * 60,
            proxies=arguments.proxies,
            shared_ledger=arguments.ledger == "postgres",
            seed=seed,
            say=lambda words: print(words, flush=True),
        )
    print("\n".join(report.lines()))


if __name__ == "__main__":
    main()
