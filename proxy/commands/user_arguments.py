"""The arguments of `noisegate user`."""

import argparse
from datetime import UTC, datetime, timedelta

from proxy.commands import user as commands
from proxy.commands.rules_arguments import add_rules, epsilon_of

_MOST_DIGITS = 4  # of days: some 27 years

Names = argparse._SubParsersAction  # argparse has no public name for what add_subparsers returns


def add_to(names: "Names[argparse.ArgumentParser]") -> None:
    """Add it, with its four actions."""
    parser = names.add_parser(
        "user",
        help="add, rotate, expire and remove analysts",
        description="Change analysts in the rules file, and their passwords there or in the file of verifiers that it "
        "names. Comments stay. A password is asked for, read from standard input, or made up and shown once.",
    )
    actions = parser.add_subparsers(title="actions", metavar="ACTION", required=True)
    _add(actions)
    _rotate(actions)
    expire = _action(actions, "expire", "end the logins of a name")
    expire.add_argument("--at", type=_moment, metavar="TIME", help="from then on, as 2027-01-31 (default: now)")
    expire.set_defaults(run=lambda options: commands.expire(options.rules, options.name, options.at))
    removed = _action(actions, "remove", "remove an analyst; the ledger keeps what was spent")
    removed.set_defaults(run=lambda options: commands.remove_user(options.rules, options.name))


def _add(actions: "Names[argparse.ArgumentParser]") -> None:
    parser = _action(actions, "add", "add an analyst")
    parser.add_argument("--role", help="one of the roles of the rules")
    parser.add_argument("--epsilon", type=epsilon_of, metavar="E", help="ε of this analyst in a period")
    parser.add_argument("--until", type=_moment, metavar="TIME", help="until when the name can log in")
    parser.set_defaults(
        run=lambda options: commands.add(
            options.rules, commands.NewUser(options.name, options.role, options.epsilon, options.until)
        )
    )


def _rotate(actions: "Names[argparse.ArgumentParser]") -> None:
    parser = _action(actions, "rotate", "set a new password; the old one stays valid for a while")
    parser.add_argument(
        "--grace", type=_days, default=commands.GRACE, metavar="DAYS", help="how long the old one is valid (default: 7)"
    )
    parser.set_defaults(run=lambda options: commands.rotate(options.rules, options.name, grace=options.grace))


def _action(actions: "Names[argparse.ArgumentParser]", action: str, words: str) -> argparse.ArgumentParser:
    parser = actions.add_parser(action, help=words, description=f"{words[0].upper()}{words[1:]}.")
    add_rules(parser)
    parser.add_argument("name", type=_name, metavar="NAME", help="of the analyst")
    return parser


def _name(text: str) -> str:
    if not text.strip():
        raise argparse.ArgumentTypeError("the name must not be empty")
    return text


def _moment(text: str) -> datetime:
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        raise argparse.ArgumentTypeError(
            f'"{text}" is not a time, such as 2027-01-31 or 2027-01-31T18:00+01:00'
        ) from None
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)


def _days(text: str) -> timedelta:
    if not text.isascii() or not text.isdecimal() or len(text) > _MOST_DIGITS:
        raise argparse.ArgumentTypeError(f'"{text}" is not a number of days, such as 7')
    return timedelta(days=int(text))
