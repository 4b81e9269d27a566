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
from proxy.load_config import ledger_place
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
exit codes: 0 done · 1 failed, with a message · 2 wrong command line · 3 warnings of check --strict ·
            4 the database cannot be reached
"""


def main(arguments: Sequence[str] | None = None) -> int:
    """Do what the command line asks for."""
    options = make_parser().parse_args(arguments)
    try:
        code = int(options.run(options))
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
        help="try it: a demo shop in an embedded PostgreSQL, and the proxy in front of it",
        description="Start an embedded PostgreSQL with a shop in it (20,000 customers, 200,000 orders) and the proxy "
        "in front of it, and print what to paste. Ctrl-C ends it and leaves nothing behind.",
    )
    parser.add_argument("--port", type=int, default=6543, help="port of the proxy on 127.0.0.1 (default: 6543)")
    parser.set_defaults(run=lambda options: demo.run(options.port))


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
    parser.set_defaults(run=lambda options: basic.serve(_settings(options)))


def _add_password(names: "Names[argparse.ArgumentParser]") -> None:
    parser = names.add_parser(
        "password",
        help="make the SCRAM verifier of a password",
        description="Ask for a password (or read one line from standard input) and print its SCRAM-SHA-256 verifier, "
        "which is what the rules file holds.",
    )
    parser.add_argument(
        "--beside",
        metavar="VERIFIER",
        help="share the salt of this verifier, so that both passwords are valid while one is being changed",
    )
    parser.add_argument("--user", metavar="NAME", help="print a line of the file of verifiers, for this name")
    parser.set_defaults(run=lambda options: basic.password(options.beside, options.user))


def _add_ledger(names: "Names[argparse.ArgumentParser]") -> None:
    parser = names.add_parser("ledger", help="create, show, copy, move and compact the ledger; lift a stop")
    actions = parser.add_subparsers(title="actions", metavar="ACTION", required=True)
    init = actions.add_parser("init", help="create an empty ledger for the database of the rules")
    rules_arguments.add_rules(init)
    _add_ledger_file(init)
    init.set_defaults(run=lambda options: ledger.init_ledger(_settings(options)))
    forgive = actions.add_parser(
        "forgive",
        help="let an analyst query again after a fault has stopped the account",
        description="A statement that fails in the database after its charge tells something of the data, so nothing "
        "more is run for its analyst. The log says what was run (event: fault): report it, and lift the stop when you "
        "know why it failed. The ledger keeps that you did.",
    )
    rules_arguments.add_rules(forgive)
    forgive.add_argument("analyst", metavar="ANALYST", help="who can query again")
    _add_ledger_file(forgive)
    forgive.set_defaults(run=lambda options: ledger.forgive(_settings(options), options.analyst))
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
    parser.add_argument("--again", action="store_true", help="look at all such columns again, at a new charge")
    _add_ledger_file(parser)
    parser.set_defaults(
        run=lambda options: bounds.look_for_bounds(_settings(options), options.epsilon, again=options.again)
    )


def _add_shadow(names: "Names[argparse.ArgumentParser]") -> None:
    parser = names.add_parser(
        "shadow",
        help="report which statements of a tool would be refused, and why; none is run",
        description="Explain each statement of a file by these rules and print a report: how many are answered, at "
        "what cost, and which are refused, by kind, with hints and without constants. Statements end with a semicolon "
        "at the end of a line; parameters ($1) stand for constants, as in pg_stat_statements.",
    )
    rules_arguments.add_rules(parser)
    parser.add_argument("statements", metavar="FILE", help="the statements, or - for standard input")
    parser.add_argument("--json", action="store_true", help="print all of it as JSON")
    _add_ledger_file(parser)
    parser.set_defaults(run=lambda options: shadow.report(_settings(options), options.statements, as_json=options.json))


def _add_synopsis(names: "Names[argparse.ArgumentParser]") -> None:
    synopsis_arguments.add_to(names, rules_arguments.add_rules, _add_ledger_file, _settings)


def _add_certificate(names: "Names[argparse.ArgumentParser]") -> None:
    parser = names.add_parser(
        "certificate",
        help="make a self-signed certificate, for a first try with TLS",
        description="Write server.crt and server.key. Clients can encrypt with it (sslmode=require); to know whom they "
        "talk to they need one of an authority of yours.",
    )
    parser.add_argument("folder", type=Path, metavar="FOLDER", help="the folder for both files")
    parser.add_argument("names", nargs="*", metavar="NAME", help="host names of the proxy, besides localhost")
    parser.set_defaults(run=lambda options: basic.certificate(options.folder, options.names))


def _add_ledger_file(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--ledger",
        metavar="PLACE",
        default=os.environ.get("NOISEGATE_LEDGER"),
        help="a file, or postgresql://… to be shared by several proxies (default: the variable NOISEGATE_LEDGER, or a "
        "file beside the rules that ends in .ledger)",
    )
    parser.add_argument(
        "--anchor",
        type=Path,
        metavar="FILE",
        help="a second file, best on another disk, that records the end of the ledger",
    )


def _ledger_place(options: argparse.Namespace) -> Path | str:
    place: Path | str | None = ledger_place(options.ledger)
    return place or options.rules.with_suffix(".ledger")


def _settings(options: argparse.Namespace) -> Settings:
    ledger = _ledger_place(options)
    if "host" not in options:
        return Settings(options.rules, ledger, options.anchor)
    server, sessions = serve_arguments.server_settings(options), serve_arguments.session_settings(options)
    load = LoadLimits(
        options.max_running, options.max_running_per_analyst, options.max_inner_statements, options.max_cost
    )
    operator = OperatorSettings(options.metrics_host, options.metrics_port)
    return Settings(
        options.rules,
        ledger,
        options.anchor,
        server,
        sessions,
        load,
        twins=options.twins,
        max_public_rows=options.max_public_rows,
        twin_binaries=options.twin_binaries,
        operator=operator,
        web=serve_arguments.web_settings(options),
    )
