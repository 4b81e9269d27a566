"""The command line: arguments in, exit code out."""

import argparse
import os
import sys
from collections.abc import Sequence
from pathlib import Path

from proxy.commands import (
    basic,
    bounds,
    ledger,
    ledger_arguments,
    request_arguments,
    rules_arguments,
    serve_arguments,
    setup_arguments,
    shadow,
    synopsis_arguments,
    user_arguments,
)
from proxy.demo import run as demo
from proxy.settings import (
    LoadLimits,
    OperatorSettings,
    Settings,
)

ABOUT = """\
Noisegate: a PostgreSQL proxy that answers with differential privacy.

Analysts connect to it with psql, a BI tool or any driver and write ordinary SQL. What would reveal a row is refused,
aggregates are answered with calibrated noise, and a ledger keeps what has been revealed.
"""
EXITS = """\
exit codes: 0 done · 1 not done, and said why · 2 the command line is wrong · 3 warnings, by check --strict ·
            4 the database cannot be reached
"""


def main(arguments: Sequence[str] | None = None) -> int:
    """Do what the command line asks for."""
    given = make_parser().parse_args(arguments)
    try:
        code = int(given.run(given))
        sys.stdout.flush()
    except BrokenPipeError:  # of `noisegate check rules.yaml | head`
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # the interpreter flushes once more at its end
        return 141  # as a shell tells of SIGPIPE
    except basic.ConfigurationError as failure:
        sys.stderr.write(f"noisegate: {failure}\n")
        return failure.exit_code
    except KeyboardInterrupt:
        return 130
    return code


def make_parser() -> argparse.ArgumentParser:
    """All commands and their options."""
    parser = argparse.ArgumentParser(
        prog="noisegate", description=ABOUT, epilog=EXITS, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--version", action="version", version=f"noisegate {basic.version()}")
    names = parser.add_subparsers(title="commands", metavar="COMMAND", required=True)
    for add in (
        _add_demo,
        setup_arguments.add_to,
        _add_serve,
        rules_arguments.add_to,
        _add_password,
        user_arguments.add_to,
        _add_ledger,
        _add_requests,
        _add_synopsis,
        _add_bounds,
        _add_shadow,
        _add_certificate,
    ):
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
    rules_arguments.add_rules(parser)
    _add_ledger_file(parser)
    serve_arguments.add_to(parser)
    parser.set_defaults(run=lambda given: basic.serve(_settings(given)))


def _add_password(names: "Names[argparse.ArgumentParser]") -> None:
    parser = names.add_parser(
        "password",
        help="make the verifier of an analyst's password",
        description="Ask for a password (or read one line from standard input) and print its SCRAM-SHA-256 verifier, "
        "which is what the rules file holds.",
    )
    parser.add_argument(
        "--beside",
        metavar="VERIFIER",
        help="share the salt of this verifier, so that both passwords are valid while one is being changed",
    )
    parser.add_argument("--user", metavar="NAME", help="print a line of the file of verifiers, for this name")
    parser.set_defaults(run=lambda given: basic.password(given.beside, given.user))


def _add_ledger(names: "Names[argparse.ArgumentParser]") -> None:
    parser = names.add_parser("ledger", help="make the ledger, see what has been spent, copy it, move it, lift a stop")
    actions = parser.add_subparsers(title="actions", metavar="ACTION", required=True)
    init = actions.add_parser("init", help="make an empty ledger for the database that the rules name")
    rules_arguments.add_rules(init)
    _add_ledger_file(init)
    init.set_defaults(run=lambda given: ledger.init_ledger(_settings(given)))
    forgive = actions.add_parser(
        "forgive",
        help="let an analyst ask again whom a fault has stopped",
        description="A statement that fails in the database after its charge tells something of the data, so nothing "
        "more is run for its analyst. The log says what was run (event: fault): report it, and lift the stop when you "
        "know why it failed. The ledger keeps that you did.",
    )
    rules_arguments.add_rules(forgive)
    forgive.add_argument("analyst", metavar="ANALYST", help="who may ask again")
    _add_ledger_file(forgive)
    forgive.set_defaults(run=lambda given: ledger.forgive(_settings(given), given.analyst))
    ledger_arguments.add_to(actions, rules_arguments.add_rules, _add_ledger_file, _settings)


def _add_requests(names: "Names[argparse.ArgumentParser]") -> None:
    request_arguments.add_to(names, rules_arguments.add_rules, _add_ledger_file, _settings)


def _add_bounds(names: "Names[argparse.ArgumentParser]") -> None:
    parser = names.add_parser(
        "bounds",
        help="look privately at the columns that say bounds: auto; the ledger keeps what is found",
        description="Look at each column with bounds: auto that nobody has looked at, by noised counts in known bins. "
        "Each look is charged to the ledger before it is made, once; serve and check read there what was found.",
    )
    rules_arguments.add_rules(parser)
    parser.add_argument(
        "--epsilon", type=rules_arguments.epsilon_of, metavar="E", help="ε of each look (default: that of a statement)"
    )
    parser.add_argument("--again", action="store_true", help="look at all such columns anew, and charge it")
    _add_ledger_file(parser)
    parser.set_defaults(run=lambda given: bounds.look_for_bounds(_settings(given), given.epsilon, again=given.again))


def _add_shadow(names: "Names[argparse.ArgumentParser]") -> None:
    parser = names.add_parser(
        "shadow",
        help="say which statements of a tool would be refused, and why; none is run",
        description="Explain each statement of a file by these rules and print a report: how many are answered, at "
        "what cost, and which are refused, by kind, with hints and without constants. Statements end with a semicolon "
        "at the end of a line; parameters ($1) stand for constants, as in pg_stat_statements.",
    )
    rules_arguments.add_rules(parser)
    parser.add_argument("statements", metavar="FILE", help="the statements, or - for standard input")
    parser.add_argument("--json", action="store_true", help="print all of it as JSON")
    _add_ledger_file(parser)
    parser.set_defaults(run=lambda given: shadow.report(_settings(given), given.statements, as_json=given.json))


def _add_synopsis(names: "Names[argparse.ArgumentParser]") -> None:
    synopsis_arguments.add_to(names, rules_arguments.add_rules, _add_ledger_file, _settings)


def _add_certificate(names: "Names[argparse.ArgumentParser]") -> None:
    parser = names.add_parser(
        "certificate",
        help="make a self-signed certificate, for a first try with TLS",
        description="Write server.crt and server.key. Clients can encrypt with it (sslmode=require); to know whom they "
        "talk to they need one of an authority of yours.",
    )
    parser.add_argument("folder", type=Path, metavar="FOLDER", help="where the two files go")
    parser.add_argument("names", nargs="*", metavar="NAME", help="host names of the proxy, besides localhost")
    parser.set_defaults(run=lambda given: basic.certificate(given.folder, given.names))


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
    server, sessions = serve_arguments.server_settings(given), serve_arguments.session_settings(given)
    load = LoadLimits(given.max_running, given.max_running_per_analyst, given.max_inner_statements, given.max_cost)
    operator = OperatorSettings(given.metrics_host, given.metrics_port)
    return Settings(
        given.rules,
        ledger,
        given.anchor,
        server,
        sessions,
        load,
        twins=given.twins,
        max_public_rows=given.max_public_rows,
        twin_binaries=given.twin_binaries,
        operator=operator,
        web=serve_arguments.web_settings(given),
    )
