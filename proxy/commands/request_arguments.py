"""The arguments of `noisegate requests`."""

import argparse
from collections.abc import Callable

from proxy.commands import request as commands
from proxy.commands.rules_arguments import epsilon_of
from proxy.settings import Settings

Names = argparse._SubParsersAction  # argparse has no public name for what add_subparsers returns
Add = Callable[[argparse.ArgumentParser], None]


def add_to(
    names: "Names[argparse.ArgumentParser]",
    add_rules: Add,
    add_place: Add,
    settings: Callable[[argparse.Namespace], Settings],
) -> None:
    """Add it; it has the rules, and says where the ledger is."""
    parser = names.add_parser(
        "requests",
        help="list what analysts ask for by noisegate.request, and grant or refuse it",
        description="List open requests for more budget, with their reasons; with --grant or --refuse answer one. A "
        "grant is kept in the ledger and in force at once in all proxies that use it, until the period ends. It raises "
        "the analyst's own limit, never that of a role or of all, and cannot be taken back.",
    )
    add_rules(parser)
    what = parser.add_mutually_exclusive_group()
    what.add_argument("--grant", type=int, metavar="N", help="grant request N")
    what.add_argument("--refuse", type=int, metavar="N", help="refuse request N")
    parser.add_argument("--epsilon", type=epsilon_of, metavar="E", help="grant E in place of what was asked for")
    parser.add_argument("--say", default="", metavar="TEXT", help="an answer that the analyst reads")
    parser.add_argument("--all", action="store_true", help="list answered and lapsed requests too")
    parser.add_argument("--json", action="store_true", help="list as JSON")
    add_place(parser)

    def run(given: argparse.Namespace) -> int:
        if given.epsilon is not None and given.grant is None:
            parser.error("--epsilon belongs to --grant")
        if given.say and given.grant is None and given.refuse is None:
            parser.error("--say belongs to --grant or --refuse")
        if given.grant is None and given.refuse is None:
            return commands.list_requests(settings(given), lists_all=given.all, as_json=given.json)
        grants = given.grant is not None
        number = given.grant if grants else given.refuse
        return commands.answer_request(
            settings(given), commands.Answering(number, grants, given.epsilon, " ".join(given.say.split()))
        )

    parser.set_defaults(run=run)
