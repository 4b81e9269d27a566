"""The command line: arguments in, exit code out."""

import argparse
import os
import sys
from collections.abc import Sequence
from pathlib import Path

from proxy import commands
from proxy.demo import run as demo
from proxy.settings import ServerSettings, Settings

ABOUT = """\
Noisegate: a PostgreSQL proxy that answers with differential privacy.

Analysts connect to it with psql, a BI tool or any driver and write ordinary SQL. What would reveal a row is refused,
aggregates are answered with calibrated noise, and a ledger keeps what has been revealed.
"""
EXITS = """\
exit codes: 0 done · 1 not done, and said why · 2 the command line is wrong
"""


def main(arguments: Sequence[str] | None = None) -> int:
    """Do what the command line asks for."""
    given = _parser().parse_args(arguments)
    try:
        return int(given.run(given))
    except commands.Failed as failure:
        sys.stderr.write(f"noisegate: {failure}\n")
        return 1
    except KeyboardInterrupt:
        return 130


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="noisegate", description=ABOUT, epilog=EXITS, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--version", action="version", version=f"noisegate {commands.version()}")
    names = parser.add_subparsers(title="commands", metavar="COMMAND", required=True)
    for add in (_add_demo, _add_serve, _add_check, _add_suggest, _add_password, _add_ledger, _add_certificate):
        add(names)
    return parser


Names = argparse._SubParsersAction  # argparse has no public name for what add_subparsers returns


def _add_demo(names: "Names[argparse.ArgumentParser]") -> None:
    parser = names.add_parser(
        "demo",
        help="try it: a shop in a PostgreSQL of our own, and the proxy in front of it",
        description="Start an embedded PostgreSQL with a shop in it (20,000 customers, 200,000 orders) and the proxy "
        "in front of it, and print what to paste. Ctrl-C ends it and leaves nothing behind.",
    )
    parser.add_argument("--port", type=int, default=6543, help="port of the proxy on 127.0.0.1 (default: 6543)")
    parser.set_defaults(run=lambda given: demo.run(given.port))


def _add_serve(names: "Names[argparse.ArgumentParser]") -> None:
    parser = names.add_parser(
        "serve",
        help="run the proxy in front of the database that the rules name",
        description="Run the proxy. SIGHUP reads the rules and the certificate again (bad rules keep the old ones); "
        "SIGTERM lets what runs finish, then ends. Needs a ledger: noisegate ledger init.",
    )
    _add_rules(parser)
    _add_ledger_file(parser)
    parser.add_argument("--host", default="127.0.0.1", help="address to listen on (default: 127.0.0.1)")
    parser.add_argument("--port", type=int, default=6543, help="port to listen on (default: 6543)")
    parser.add_argument("--tls-certificate", type=Path, metavar="FILE", help="PEM, the server's certificate first")
    parser.add_argument("--tls-key", type=Path, metavar="FILE", help="PEM, the certificate's key, not encrypted")
    parser.add_argument(
        "--plaintext",
        choices=("nowhere", "loopback", "anywhere"),
        default="loopback",
        help="from where clients may come without TLS (default: loopback)",
    )
    parser.add_argument("--max-connections", type=int, default=200, metavar="N", help="in all (default: 200)")
    parser.add_argument(
        "--max-connections-per-analyst", type=int, default=50, metavar="N", help="of one analyst (default: 50)"
    )
    parser.set_defaults(run=lambda given: commands.serve(_settings(given)))


def _add_check(names: "Names[argparse.ArgumentParser]") -> None:
    parser = names.add_parser(
        "check",
        help="hold the rules against the database, and explain them",
        description="Verify a rules file against the real catalog and say what follows from it. No row is read.",
    )
    _add_rules(parser)
    parser.set_defaults(run=lambda given: commands.check(given.rules))


def _add_suggest(names: "Names[argparse.ArgumentParser]") -> None:
    parser = names.add_parser(
        "suggest",
        help="draft rules from the database's catalog",
        description="Print a first rules file, made from the catalog alone. No row is read.",
    )
    parser.add_argument("unit", metavar="TABLE", help="the table with one row for each individual to protect")
    parser.add_argument(
        "--database", metavar="DSN", help="a libpq connection string (default: the variable NOISEGATE_DATABASE)"
    )
    parser.set_defaults(run=lambda given: commands.suggest(given.unit, given.database))


def _add_password(names: "Names[argparse.ArgumentParser]") -> None:
    parser = names.add_parser(
        "password",
        help="make the verifier of an analyst's password",
        description="Ask for a password (or read one line from standard input) and print its SCRAM-SHA-256 verifier, "
        "which is what the rules file holds.",
    )
    parser.set_defaults(run=lambda given: commands.password())


def _add_ledger(names: "Names[argparse.ArgumentParser]") -> None:
    parser = names.add_parser("ledger", help="make the ledger, or see what has been spent")
    actions = parser.add_subparsers(title="actions", metavar="ACTION", required=True)
    init = actions.add_parser("init", help="make an empty ledger for the database that the rules name")
    show = actions.add_parser("show", help="what each analyst, and all together, have spent and may spend")
    for action, run in ((init, commands.init_ledger), (show, commands.show_ledger)):
        _add_rules(action)
        _add_ledger_file(action)
        action.set_defaults(run=lambda given, run=run: run(_settings(given)))


def _add_certificate(names: "Names[argparse.ArgumentParser]") -> None:
    parser = names.add_parser(
        "certificate",
        help="make a self-signed certificate, for a first try with TLS",
        description="Write server.crt and server.key. Clients can encrypt with it (sslmode=require); to know whom they "
        "talk to they need one of an authority of yours.",
    )
    parser.add_argument("folder", type=Path, metavar="FOLDER", help="where the two files go")
    parser.add_argument("names", nargs="*", metavar="NAME", help="host names of the proxy, besides localhost")
    parser.set_defaults(run=lambda given: commands.certificate(given.folder, given.names))


def _add_rules(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("rules", type=Path, metavar="RULES", help="the rules file, YAML")


def _add_ledger_file(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--ledger",
        metavar="PLACE",
        default=os.environ.get("NOISEGATE_LEDGER"),
        help="a file, or postgresql://… to be shared by several proxies (default: the variable NOISEGATE_LEDGER, or a "
        "file beside the rules that ends in .ledger)",
    )
    parser.add_argument(
        "--anchor", type=Path, metavar="FILE", help="a second place, best on another disk, that knows the ledger's end"
    )


def _ledger_place(given: argparse.Namespace) -> Path | str:
    place = given.ledger or str(given.rules.with_suffix(".ledger"))
    return place if place.startswith(("postgresql://", "postgres://")) else Path(place)


def _settings(given: argparse.Namespace) -> Settings:
    ledger = _ledger_place(given)
    if "host" not in given:
        return Settings(given.rules, ledger, given.anchor)
    server = ServerSettings(
        host=given.host,
        port=given.port,
        certificate=given.tls_certificate,
        private_key=given.tls_key,
        plaintext_from=given.plaintext,
        max_connections=given.max_connections,
        max_connections_per_analyst=given.max_connections_per_analyst,
    )
    return Settings(given.rules, ledger, given.anchor, server)
