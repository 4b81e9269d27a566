"""The options of `noisegate serve`, and the settings that they stand for."""

import argparse
from ipaddress import ip_network
from pathlib import Path

from proxy.commands.basic import count_of, port_of, seconds_of
from proxy.load_config import ConfigurationError
from proxy.settings import MEGABYTE, LoadLimits, ServerSettings, SessionSettings, UsageLimits, WebSettings


def add_to(parser: argparse.ArgumentParser) -> None:
    """Add the options: where it listens, what it may take, and what runs the twin."""
    _add_listening(parser)
    _add_connection_limits(parser)
    _add_twin(parser)
    _add_operator_port(parser)
    _add_console(parser)
    _add_session_limits(parser)
    _add_load_limits(parser)


def server_settings(namespace: argparse.Namespace) -> ServerSettings:
    """Return where clients come in."""
    return ServerSettings(
        host=namespace.host,
        port=namespace.port,
        certificate=namespace.tls_certificate,
        private_key=namespace.tls_key,
        client_authorities=namespace.tls_client_ca,
        plaintext_from=namespace.plaintext,
        gateways=tuple(ip_network(network) for network in namespace.proxy_protocol_from),
        max_logins_per_address=namespace.max_logins_per_address,
        max_connections=namespace.max_connections,
        max_connections_per_analyst=namespace.max_connections_per_analyst,
    )


def session_settings(namespace: argparse.Namespace) -> SessionSettings:
    """Deadlines and sizes of sessions."""
    return SessionSettings(
        statement_timeout_seconds=namespace.statement_timeout,
        inner_timeout_seconds=namespace.answer_timeout,
        reading_timeout_seconds=namespace.reading_timeout,
        idle_transaction_seconds=namespace.idle_transaction_timeout or None,
        idle_session_seconds=namespace.idle_session_timeout or None,
        usage=UsageLimits(
            namespace.memory_per_analyst * MEGABYTE,
            namespace.memory * MEGABYTE,
            namespace.temporary_files_per_analyst * MEGABYTE,
            namespace.temporary_files * MEGABYTE,
        ),
        most_views=namespace.max_views_per_session,
        max_message_bytes=namespace.max_message * MEGABYTE,
        most_frame_bytes=namespace.max_message_megabytes * MEGABYTE,
    )


def web_settings(namespace: argparse.Namespace) -> WebSettings:
    """Return where the web console is. An option of it does nothing without its port, so it is a mistake."""
    networks = tuple(namespace.console_trusted_from)
    wanted = WebSettings(
        namespace.console_host,
        namespace.console_port,
        namespace.console_trusted_header,
        networks,
        namespace.console_edit_rules,
    )
    if wanted.port is None and wanted != WebSettings():
        raise ConfigurationError("options of the web console do nothing without --console-port")
    return wanted


def _add_listening(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--host", default="127.0.0.1", help="address to listen on (default: 127.0.0.1)")
    parser.add_argument("--port", type=port_of, default=6543, help="port to listen on (default: 6543)")
    parser.add_argument("--tls-certificate", type=Path, metavar="FILE", help="PEM, the server's certificate first")
    parser.add_argument("--tls-key", type=Path, metavar="FILE", help="PEM, the certificate's key, not encrypted")
    parser.add_argument(
        "--tls-client-ca",
        type=Path,
        metavar="FILE",
        help="PEM, the authorities that sign certificates of clients, and their CRLs",
    )
    parser.add_argument(
        "--plaintext",
        choices=("nowhere", "loopback", "anywhere"),
        default="loopback",
        help="the addresses that may connect without TLS (default: loopback)",
    )
    parser.add_argument(
        "--proxy-protocol-from",
        type=_network,
        action="append",
        default=[],
        metavar="NETWORK",
        help="address or network of a load balancer that begins each connection with the PROXY protocol, version 1 or "
        "2, which gives the address of the client; may be repeated",
    )


def _add_connection_limits(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--max-connections", type=count_of, default=200, metavar="N", help="connections in all (default: 200)"
    )
    parser.add_argument(
        "--max-connections-per-analyst",
        type=count_of,
        default=50,
        metavar="N",
        help="connections of one analyst (default: 50)",
    )
    parser.add_argument(
        "--max-logins-per-address",
        type=count_of,
        default=50,
        metavar="N",
        help="connections from one address that have not logged in yet, of 100 in all (default: 50)",
    )


def _add_twin(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--twins",
        choices=("shared", "per-analyst"),
        default="shared",
        help="one twin for all analysts, or one for each: some 40 MB more for each analyst, but a crash ends nobody "
        "else's sessions, and analysts do not see each other's names (default: shared)",
    )
    parser.add_argument(
        "--max-public-rows",
        type=count_of,
        default=100_000,
        metavar="N",
        help="the most rows of a public table that the twin copies; a larger table can be joined, but not queried by "
        "itself (default: 100000)",
    )
    parser.add_argument(
        "--twin-binaries",
        type=Path,
        metavar="DIR",
        help="run the twin with the PostgreSQL of this bin directory, 16 to 18 and not older than the database, as "
        "/usr/lib/postgresql/18/bin, so that your system updates it (default: the wheel's)",
    )


def _add_operator_port(parser: argparse.ArgumentParser) -> None:
    port = parser.add_argument_group("metrics and health")
    port.add_argument(
        "--metrics-port",
        type=port_of,
        metavar="PORT",
        help="answer /metrics (Prometheus), /healthz and /readyz over HTTP on this port (default: off)",
    )
    port.add_argument(
        "--metrics-host",
        default="127.0.0.1",
        metavar="HOST",
        help="address for --metrics-port; the pages need no password and name analysts (default: 127.0.0.1)",
    )


def _add_console(parser: argparse.ArgumentParser) -> None:
    console = parser.add_argument_group("web console")
    console.add_argument(
        "--console-port",
        type=port_of,
        metavar="PORT",
        help="serve the web console for operators and analysts on this port (default: off)",
    )
    console.add_argument(
        "--console-host",
        default="127.0.0.1",
        metavar="HOST",
        help="address for --console-port; one that other machines reach needs --tls-certificate (default: 127.0.0.1)",
    )
    console.add_argument(
        "--console-edit-rules",
        action="store_true",
        help="let operators change tables in the rules file in the web console, and thereby all that analysts can see",
    )
    console.add_argument(
        "--console-trusted-header",
        default="",
        metavar="NAME",
        help="header in which a gateway names the user that it has logged in; needs --console-trusted-from",
    )
    console.add_argument(
        "--console-trusted-from",
        type=_network,
        action="append",
        default=[],
        metavar="NETWORK",
        help="address or network of that gateway; may be repeated",
    )


def _network(text: str) -> str:
    try:
        return str(ip_network(text))
    except ValueError:
        raise argparse.ArgumentTypeError(f'"{text}" is no address and no network, as 10.0.0.0/8') from None


def _add_session_limits(parser: argparse.ArgumentParser) -> None:
    limits = parser.add_argument_group("limits of a session")
    limits.add_argument(
        "--statement-timeout",
        type=seconds_of,
        default=60,
        metavar="SECONDS",
        help="the most time for a statement on the twin; a client can only set less (default: 60)",
    )
    limits.add_argument(
        "--answer-timeout",
        type=seconds_of,
        default=300,
        metavar="SECONDS",
        help="the most time for one statement over protected rows (default: 300)",
    )
    limits.add_argument(
        "--reading-timeout",
        type=seconds_of,
        metavar="SECONDS",
        help="how long a client may take to read the next part of its result, while it holds a connection "
        "(default: no limit)",
    )
    limits.add_argument(
        "--idle-transaction-timeout",
        type=seconds_of,
        default=3600,
        metavar="SECONDS",
        help="how long a client may be idle in a transaction; 0: no limit (default: 3600)",
    )
    limits.add_argument(
        "--idle-session-timeout",
        type=seconds_of,
        default=0,
        metavar="SECONDS",
        help="how long a client may be idle; 0: no limit (default: 0)",
    )
    _add_usage_limits(limits)


def _add_usage_limits(limits: argparse._ArgumentGroup) -> None:
    usage = UsageLimits()
    for name, default, what in (
        ("memory-per-analyst", usage.memory_per_analyst, "memory of the twin for sessions of one analyst"),
        ("memory", usage.memory, "memory of the twin for all sessions"),
        (
            "temporary-files-per-analyst",
            usage.temporary_per_analyst,
            "disk for temporary files of the twin, for one analyst",
        ),
        ("temporary-files", usage.temporary, "disk for temporary files of the twin, for all"),
    ):
        megabytes = default // MEGABYTE
        limits.add_argument(
            f"--{name}", type=count_of, default=megabytes, metavar="MB", help=f"{what} (default: {megabytes})"
        )
    limits.add_argument(
        "--max-message",
        type=count_of,
        default=64,
        metavar="MB",
        help="the largest message of a client, with the values of parameters (default: 64)",
    )
    limits.add_argument(
        "--max-message-megabytes",
        type=count_of,
        default=16,
        metavar="MB",
        help="the largest message of the twin that the proxy has to read; rows have no limit (default: 16)",
    )
    limits.add_argument(
        "--max-views-per-session",
        type=count_of,
        default=10_000,
        metavar="N",
        help="temporary views that a session may make in its life, at most 100 at a time (default: 10000)",
    )


def _add_load_limits(parser: argparse.ArgumentParser) -> None:
    limits = parser.add_argument_group("limits of statements for the real database")
    load = LoadLimits()
    limits.add_argument(
        "--max-running",
        type=count_of,
        default=load.running,
        metavar="N",
        help=f"statements over protected rows at once, each on a connection of its own (default: {load.running})",
    )
    limits.add_argument(
        "--max-running-per-analyst",
        type=count_of,
        metavar="N",
        help="the same for one analyst (default: three quarters of --max-running)",
    )
    limits.add_argument(
        "--max-inner-statements",
        type=count_of,
        default=load.statements,
        metavar="N",
        help=f"inner statements of one statement; each part of a UNION ALL is one (default: {load.statements})",
    )
    limits.add_argument(
        "--max-cost",
        type=float,
        metavar="COST",
        help="refuse a statement whose cost the real database's planner estimates above this, in the units of EXPLAIN; "
        "the estimate depends on the rows, so a refusal reveals a little about them (default: no limit)",
    )
