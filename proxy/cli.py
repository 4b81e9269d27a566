"""The command line: arguments in, exit code out."""

import argparse
import io
import os
import sys
from collections.abc import Sequence
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import replace
from pathlib import Path
from typing import TextIO

from proxy import __version__
from proxy.commands import (
    basic,
    bounds,
    disclosure,
    ledger_arguments,
    request,
    rules_file,
    serve_arguments,
    setup,
    shadow,
    synopsis,
    user,
)
from proxy.commands.basic import Names, add_ledger, add_rules, port_of, settings_of
from proxy.demo import run as demo
from proxy.load_config import ConfigurationError
from proxy.settings import (
    LoadLimits,
    OperatorSettings,
    Settings,
)

ABOUT = """\
Noisegate: a PostgreSQL proxy that answers with differential privacy.

Analysts connect to it with psql, a BI tool or any driver and write ordinary SQL. It refuses queries that would reveal a
row, answers aggregates with calibrated noise, and keeps a ledger of the privacy loss.
"""
EXITS = """\
exit codes: 0 done · 1 failed, with a message · 2 wrong command line · 3 warnings of check --strict ·
            4 the database cannot be reached or read
"""


def main(arguments: Sequence[str] | None = None) -> int:
    """Do what the command line asks for."""
    with redirect_stdout(_whole(sys.stdout)), redirect_stderr(_whole(sys.stderr)):
        return _run(make_parser().parse_args(arguments))


def _run(options: argparse.Namespace) -> int:
    try:
        code = int(options.run(options))
        sys.stdout.flush()
    except BrokenPipeError:  # of `noisegate check rules.yaml | head`
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # the interpreter flushes once more at its end
        return 141  # as a shell tells of SIGPIPE
    except ConfigurationError as failure:
        sys.stderr.write(f"noisegate: {failure}\n")
        return failure.exit_code
    except KeyboardInterrupt:
        return 130
    return code


def _whole(stream: TextIO) -> TextIO:
    """The stream, or one to the same place if this one loses what a write leaves over.

    A write to a pipe is cut short when the process is stopped and continued. A buffer writes the rest;
    with PYTHONUNBUFFERED=1, as many container images set it, Python has no buffer and drops it.
    """
    if not isinstance(getattr(stream, "buffer", None), io.RawIOBase):  # a closed one is None
        return stream
    place = stream.fileno()
    return open(place, "w", buffering=1, encoding=stream.encoding, errors=stream.errors, closefd=False)


def make_parser() -> argparse.ArgumentParser:
    """All commands and their options."""
    parser = argparse.ArgumentParser(
        prog="noisegate", description=ABOUT, epilog=EXITS, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--version", action="version", version=f"noisegate {__version__}")
    names = parser.add_subparsers(title="commands", metavar="COMMAND", required=True)
    for add in (
        _add_demo,
        setup.add_to,
        _add_serve,
        rules_file.add_to,
        _add_password,
        user.add_to,
        ledger_arguments.add_to,
        request.add_to,
        synopsis.add_to,
        bounds.add_to,
        shadow.add_to,
        disclosure.add_to,
        _add_certificate,
    ):
        add(names)
    return parser


def _add_demo(names: "Names[argparse.ArgumentParser]") -> None:
    parser = names.add_parser(
        "demo",
        help="try it: a demo shop in an embedded PostgreSQL, and the proxy in front of it",
        description="Start an embedded PostgreSQL with a shop in it (20,000 customers, 200,000 orders) and the proxy "
        "in front of it, and print a psql line to paste. Ctrl-C ends it and removes everything.",
    )
    parser.add_argument("--port", type=port_of, default=6543, help="port of the proxy on 127.0.0.1 (default: 6543)")
    parser.set_defaults(run=lambda options: demo.run(options.port))


def _add_serve(names: "Names[argparse.ArgumentParser]") -> None:
    parser = names.add_parser(
        "serve",
        help="run the proxy in front of the database that the rules name",
        description="Run the proxy. SIGHUP reads the rules and the certificate again (bad rules keep the old ones); "
        "SIGTERM lets running statements finish, then ends. Needs a ledger: noisegate ledger init.",
    )
    add_rules(parser)
    add_ledger(parser)
    serve_arguments.add_to(parser)
    parser.set_defaults(run=lambda options: basic.serve(_settings(options)))


def _add_password(names: "Names[argparse.ArgumentParser]") -> None:
    parser = names.add_parser(
        "password",
        help="make the SCRAM verifier of a password",
        description="Ask for a password (or read one line from standard input) and print its SCRAM-SHA-256 verifier, "
        "for the rules file.",
    )
    parser.add_argument(
        "--beside",
        metavar="VERIFIER",
        help="share the salt of this verifier, so that both passwords are valid while one is being changed",
    )
    parser.add_argument("--user", metavar="NAME", help="print a line of the file of verifiers, for this name")
    parser.set_defaults(run=lambda options: basic.password(options.beside, options.user))


def _add_certificate(names: "Names[argparse.ArgumentParser]") -> None:
    parser = names.add_parser(
        "certificate",
        help="make a self-signed certificate, for a first try with TLS",
        description="Write server.crt and server.key. Clients can encrypt with them (sslmode=require); to verify the "
        "proxy they need a certificate of your authority.",
    )
    parser.add_argument("folder", type=Path, metavar="FOLDER", help="the folder for both files")
    parser.add_argument("names", nargs="*", metavar="NAME", help="host names of the proxy, besides localhost")
    parser.set_defaults(run=lambda options: basic.certificate(options.folder, options.names))


def _settings(options: argparse.Namespace) -> Settings:
    server, sessions = serve_arguments.server_settings(options), serve_arguments.session_settings(options)
    load = LoadLimits(
        options.max_running, options.max_running_per_analyst, options.max_inner_statements, options.max_cost
    )
    operator = OperatorSettings(options.metrics_host, options.metrics_port)
    return replace(
        settings_of(options),
        server=server,
        sessions=sessions,
        load=load,
        twins=options.twins,
        max_public_rows=options.max_public_rows,
        twin_binaries=options.twin_binaries,
        operator=operator,
        web=serve_arguments.web_settings(options),
    )
