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
        help="list requests of analysts for more budget, and grant or refuse them",
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

    def run(options: argparse.Namespace) -> int:
        if options.epsilon is not None and options.grant is None:
            parser.error("--epsilon requires --grant")
        if options.say and options.grant is None and options.refuse is None:
            parser.error("--say requires --grant or --refuse")
        if options.grant is None and options.refuse is None:
            return commands.list_requests(settings(options), lists_all=options.all, as_json=options.json)
        grants = options.grant is not None
        number = options.grant if grants else options.refuse
        return commands.answer_request(
            settings(options), commands.Answering(number, grants, options.epsilon, " ".join(options.say.split()))
        )

    parser.set_defaults(run=run)
