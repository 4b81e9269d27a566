"""The arguments of `noisegate ledger`."""

import argparse
from collections.abc import Callable
from pathlib import Path

from proxy.commands import ledger as ledger_commands
from proxy.commands.basic import Names, add_ledger, add_rules, moment_of, settings_of
from proxy.ledger.review import Wish
from proxy.settings import Settings

Run = Callable[[Settings, argparse.Namespace], int]
Made = tuple[argparse.ArgumentParser, Run]

_MOST_DIGITS = 15  # of a number of entries


def add_to(names: "Names[argparse.ArgumentParser]") -> None:
    """Add them to the command line; each has the rules, and says where the ledger is."""
    parser = names.add_parser("ledger", help="create, show, copy, move and compact the ledger; lift a stop")
    actions = parser.add_subparsers(title="actions", metavar="ACTION", required=True)
    for add in (_init, _forgive, _show, _verify, _backup, _restore, _move, _compact):
        parser, run = add(actions)
        add_ledger(parser)
        parser.set_defaults(run=lambda options, run=run: run(settings_of(options), options))


def _init(actions: "Names[argparse.ArgumentParser]") -> Made:
    parser = actions.add_parser("init", help="create an empty ledger for the database of the rules")
    add_rules(parser)
    return parser, lambda settings, options: ledger_commands.init_ledger(settings)


def _forgive(actions: "Names[argparse.ArgumentParser]") -> Made:
    parser = actions.add_parser(
        "forgive",
        help="let an analyst query again after a fault has stopped the account",
        description="A statement that fails in the database after its charge reveals something about the data, so it "
        "stops its analyst. The log has its SQL (event: fault): report it, and lift the stop when you know why it "
        "failed. The ledger keeps that you did.",
    )
    add_rules(parser)
    parser.add_argument("analyst", metavar="ANALYST", help="the analyst who can query again")
    return parser, lambda settings, options: ledger_commands.forgive(settings, options.analyst)


def _show(actions: "Names[argparse.ArgumentParser]") -> Made:
    parser = actions.add_parser(
        "show",
        help="show the spent and remaining budgets, and each charge with analyst, time and cost",
        description="Check the ledger and print the budget that each analyst has spent, also analysts who were removed "
        "from the rules. Charges have the fingerprint and the shape of their statement, without its constants. Proxies "
        "that use the ledger do not wait.",
    )
    add_rules(parser)
    parser.add_argument("--charges", action="store_true", help="list charges too; so does each filter")
    parser.add_argument("--analyst", metavar="NAME", help="charges of one analyst")
    parser.add_argument(
        "--since",
        type=moment_of,
        metavar="TIME",
        help="charges from then on: 2026-11-01T08:00, in UTC",
    )
    parser.add_argument("--until", type=moment_of, metavar="TIME", help="charges before then")
    parser.add_argument("--statement", metavar="FINGERPRINT", help="charges of one statement, as the log names it")
    parser.add_argument("--last", type=_count, metavar="N", help="the newest N charges")
    form = parser.add_mutually_exclusive_group()
    form.add_argument("--json", dest="format", action="store_const", const="json", help="as one JSON document")
    form.add_argument("--csv", dest="format", action="store_const", const="csv", help="as CSV")
    parser.set_defaults(format="text")
    return parser, _run_show


def _run_show(settings: Settings, options: argparse.Namespace) -> int:
    wish = Wish(options.analyst, options.since, options.until, options.statement, options.last)
    shown = ledger_commands.Show(wish, options.charges or wish != Wish(), options.format)
    return ledger_commands.show_ledger(settings, shown)


def _verify(actions: "Names[argparse.ArgumentParser]") -> Made:
    parser = actions.add_parser(
        "verify",
        help="verify every entry, and all other tables of the ledger",
        description="A proxy verifies the ledger from the newest checkpoint on before it uses it, and the rest while "
        "it serves. This verifies all of it at once. Proxies that use the ledger do not wait.",
    )
    add_rules(parser)
    return parser, lambda settings, options: ledger_commands.verify(settings)


def _backup(actions: "Names[argparse.ArgumentParser]") -> Made:
    parser = actions.add_parser(
        "backup",
        help="copy the ledger, while proxies go on with it",
        description="Write a copy as of one moment into a new file, and check it. The copy is a SQLite ledger wherever "
        "the ledger is kept. An older copy in the ledger's place would forget charges: keep an anchor.",
    )
    add_rules(parser)
    parser.add_argument("copy", type=Path, metavar="FILE", help="the new file")
    return parser, lambda settings, options: ledger_commands.backup(settings, options.copy)


def _restore(actions: "Names[argparse.ArgumentParser]") -> Made:
    parser = actions.add_parser(
        "restore",
        help="put a copy in the place of a lost ledger",
        description="Check a copy, compare its end with the anchor, and make the ledger from it if there is none. The "
        "ledger keeps that this was done, and how many entries were missing.",
    )
    add_rules(parser)
    parser.add_argument("copy", type=Path, metavar="FILE", help="a file that `ledger backup` has written")
    parser.add_argument(
        "--missing", type=_count, metavar="N", help="go on although the copy lacks N entries that the anchor knows"
    )
    return parser, lambda settings, options: ledger_commands.restore(settings, options.copy, options.missing)


def _move(actions: "Names[argparse.ArgumentParser]") -> Made:
    parser = actions.add_parser(
        "move",
        help="bind the ledger to a database that was upgraded, renamed, restored or failed over",
        description="The ledger belongs to one database, by its system identifier and name. When the same data live "
        "on in another one, say so: all that was spent stays spent. Never do this while the other one is still served "
        "with a ledger. The ledger keeps that this was done.",
    )
    add_rules(parser)
    parser.add_argument(
        "--from", dest="before", required=True, metavar="IDENTITY", help="the database before, as the refusal names it"
    )
    return parser, lambda settings, options: ledger_commands.move(settings, options.before)


def _compact(actions: "Names[argparse.ArgumentParser]") -> Made:
    parser = actions.add_parser(
        "compact",
        help="close old entries into a sum, so that the ledger opens quickly",
        description="Add up old entries, append the sum to the chain, and delete these entries in small steps, while "
        "proxies serve. Accounts do not change; the list of old statements is lost, so make a backup first. Give the "
        "anchor, or an idle proxy's own anchor will not know the new end.",
    )
    add_rules(parser)
    parser.add_argument(
        "--before",
        type=moment_of,
        metavar="TIME",
        help="close entries before then (default: before the running period)",
    )
    return parser, lambda settings, options: ledger_commands.compact(settings, options.before)


def _count(text: str) -> int:
    if not text.isascii() or not text.isdecimal() or len(text) > _MOST_DIGITS:
        raise argparse.ArgumentTypeError(f'"{text}" is not a number, such as 20')
    return int(text)
