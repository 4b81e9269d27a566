"""Statements and functions that are refused by what they are, whatever they name."""

import re
from collections.abc import Sequence

from rules.refusal import NotAllowed, ReadOnly, Refusal
from rules.sql.grammar import Piece
from rules.sql.tree import Node, items, kind, strings, walk

READ_ONLY_HINT = "Noisegate is read-only. Use SELECT with aggregates such as count, sum and avg."

LOCK_HINT = (
    "A SELECT takes the locks that it needs. pg_dump, which locks tables, cannot read them here; \\d of psql and "
    "information_schema show the schema."
)

WRITES = {
    "InsertStmt": "INSERT",
    "UpdateStmt": "UPDATE",
    "DeleteStmt": "DELETE",
    "MergeStmt": "MERGE",
    "TruncateStmt": "TRUNCATE",
    "CreateTableAsStmt": "CREATE TABLE AS",
    "CreateStmt": "CREATE TABLE",
    "IndexStmt": "CREATE INDEX",
    "RefreshMatViewStmt": "REFRESH MATERIALIZED VIEW",
    "ViewStmt": "CREATE VIEW",  # but for temporary ones, which hold nothing
}
# Kinds whose names in PostgreSQL's tree are not as they are written.
WRITTEN = {
    "AlterDatabaseRefreshCollStmt": "ALTER DATABASE",
    "AlterDatabaseSetStmt": "ALTER DATABASE",
    "AlterEnumStmt": "ALTER TYPE",
    "AlterFdwStmt": "ALTER FOREIGN DATA WRAPPER",
    "AlterRoleSetStmt": "ALTER ROLE",
    "AlterSeqStmt": "ALTER SEQUENCE",
    "AlterStatsStmt": "ALTER STATISTICS",
    "AlterTSConfigurationStmt": "ALTER TEXT SEARCH CONFIGURATION",
    "AlterTSDictionaryStmt": "ALTER TEXT SEARCH DICTIONARY",
    "AlterTableSpaceOptionsStmt": "ALTER TABLESPACE",
    "CompositeTypeStmt": "CREATE TYPE",
    "CreateAmStmt": "CREATE ACCESS METHOD",
    "CreateConversionStmt": "CREATE CONVERSION",
    "CreateEnumStmt": "CREATE TYPE",
    "CreateEventTrigStmt": "CREATE EVENT TRIGGER",
    "CreateFdwStmt": "CREATE FOREIGN DATA WRAPPER",
    "CreatePLangStmt": "CREATE LANGUAGE",
    "CreateRangeStmt": "CREATE TYPE",
    "CreateSeqStmt": "CREATE SEQUENCE",
    "CreateStatsStmt": "CREATE STATISTICS",
    "CreateTableSpaceStmt": "CREATE TABLESPACE",
    "CreateTrigStmt": "CREATE TRIGGER",
    "CreatedbStmt": "CREATE DATABASE",
    "DropTableSpaceStmt": "DROP TABLESPACE",
    "DropdbStmt": "DROP DATABASE",
    "RuleStmt": "CREATE RULE",
    "SecLabelStmt": "SECURITY LABEL",
}
# Kinds for objects of any kind, and the field that says of which.
OF_OBJECTS = {
    "AlterObjectSchemaStmt": ("ALTER", "objectType"),
    "AlterOwnerStmt": ("ALTER", "objectType"),
    "AlterTableStmt": ("ALTER", "objtype"),
    "DefineStmt": ("CREATE", "kind"),
    "RenameStmt": ("ALTER", "renameType"),
}
DEFINED = {
    "TSPARSER": "TEXT SEARCH PARSER",
    "TSDICTIONARY": "TEXT SEARCH DICTIONARY",
    "TSTEMPLATE": "TEXT SEARCH TEMPLATE",
    "TSCONFIGURATION": "TEXT SEARCH CONFIGURATION",
}
RUNS_CODE = {"DoStmt": "DO", "CallStmt": "CALL", "LoadStmt": "LOAD", "NotifyStmt": "NOTIFY", "LockStmt": "LOCK TABLE"}
PLAIN = frozenset(
    (
        "SelectStmt DeclareCursorStmt CopyStmt PrepareStmt ExecuteStmt ExplainStmt DeallocateStmt DiscardStmt "
        "TransactionStmt VariableSetStmt VariableShowStmt FetchStmt ClosePortalStmt ListenStmt UnlistenStmt "
        "ConstraintsSetStmt CheckPointStmt"
    ).split()
)
# Functions that run a text as SQL, reach files or other servers, or change what other sessions see.
FUNCTIONS = frozenset(
    (
        "query_to_xml query_to_xmlschema query_to_xml_and_xmlschema table_to_xml table_to_xmlschema "
        "table_to_xml_and_xmlschema schema_to_xml schema_to_xmlschema schema_to_xml_and_xmlschema database_to_xml "
        "database_to_xmlschema database_to_xml_and_xmlschema cursor_to_xml cursor_to_xmlschema ts_stat ts_rewrite "
        "pg_read_file pg_read_binary_file pg_ls_dir pg_stat_file pg_ls_logdir pg_ls_waldir pg_ls_tmpdir "
        "pg_logical_emit_message pg_notify pg_export_snapshot pg_reload_conf pg_rotate_logfile pg_promote "
        "pg_create_restore_point pg_switch_wal pg_import_system_collations"
    ).split()
)
PREFIXES = ("dblink", "lo_", "loread", "lowrite", "crosstab", "connectby", "pg_advisory_lock", "pg_try_advisory_")
FORBIDDEN_SETTINGS = ("role", "session_authorization")


def refusal_by_kind(piece: Piece, calls: Sequence[Node]) -> Refusal | None:
    """Explain why a statement is refused whatever it reads, or return None; `about` names command or function.

    `calls` are the bodies of all calls in it.
    """
    name, body = kind(piece.tree)
    is_view = makes_temporary_view(name, body)
    if not is_view and (refusal := _by_statement(name, body)):
        return refusal
    if _LOOKED_AT.isdisjoint(piece.words):
        return next(filter(None, map(_by_function, calls)), None)
    return _inside({"query": body["query"]} if is_view else piece.tree)


def makes_temporary_view(name: str, body: Node) -> bool:
    """CREATE TEMP VIEW … AS SELECT …: by it tools learn the columns of a query."""
    view = body.get("view")
    return (
        name == "ViewStmt" and isinstance(view, dict) and view.get("relpersistence") == "t" and "schemaname" not in view
    )


def _by_statement(name: str, body: Node) -> Refusal | None:
    if name in WRITES:
        return _write(WRITES[name])
    if name in RUNS_CODE:
        hint = LOCK_HINT if name == "LockStmt" else READ_ONLY_HINT
        return NotAllowed(f"permission denied for {RUNS_CODE[name]}", hint=hint, about=RUNS_CODE[name])
    if name == "CopyStmt":
        return _copy(body)
    if name == "VariableSetStmt" and body.get("name") in FORBIDDEN_SETTINGS and _sets_role(body):
        setting = str(body["name"])
        hint = "Log in as the other role instead."
        return NotAllowed(f'permission denied to set "{setting}"', hint=hint, about=f"SET {setting}")
    if name == "DropStmt" and body.get("removeType") == "OBJECT_VIEW":
        return None  # the twin lets analysts drop what is theirs
    if name not in PLAIN:
        return _write(_spoken(name, body))
    return None


def _sets_role(body: Node) -> bool:
    """Return whether SET names a role: DEFAULT has no value, and NONE is the session's own role."""
    values = [kind(argument)[1].get("sval") for argument in items(body, "args")]
    return bool(values) and (body["name"], values) != ("role", [{"sval": "none"}])


def _write(command: str) -> Refusal:
    return ReadOnly(f"cannot execute {command} in a read-only session", hint=READ_ONLY_HINT, about=command)


def _spoken(name: str, body: Node) -> str:
    """A statement's kind as it is written: CreateRoleStmt is CREATE ROLE."""
    if name == "DropStmt":
        what = str(body.get("removeType", "")).removeprefix("OBJECT_")
        return f"DROP {what.replace('MATVIEW', 'MATERIALIZED VIEW').replace('_', ' ')}"
    if name in WRITTEN:
        return WRITTEN[name]
    if name in OF_OBJECTS:
        verb, field = OF_OBJECTS[name]
        if body.get(field) in ("OBJECT_COLUMN", "OBJECT_TABCONSTRAINT", "OBJECT_ATTRIBUTE"):
            field = "relationType"
        what = str(body.get(field, "")).removeprefix("OBJECT_")
        return f"{verb} {DEFINED.get(what, what.replace('MATVIEW', 'MATERIALIZED VIEW').replace('_', ' '))}"
    if name == "VacuumStmt" and not body.get("is_vacuumcmd"):
        return "ANALYZE"
    if name == "GrantStmt" and not body.get("is_grant"):
        return "REVOKE"
    return re.sub(r"(?<=[a-z])(?=[A-Z])", " ", name.removesuffix("Stmt")).upper()


def _copy(body: Node) -> Refusal | None:
    if body.get("is_program") or body.get("filename"):
        return NotAllowed(
            "permission denied to COPY to or from a file or a program",
            hint="Use COPY (SELECT …) TO STDOUT.",
            about="COPY PROGRAM" if body.get("is_program") else "COPY FILE",
        )
    if body.get("is_from"):
        return _write("COPY FROM")
    return None


_LOOKED_AT = frozenset(WRITES) | {"intoClause"}


def _inside(tree: Node) -> Refusal | None:
    for node in walk(tree):
        name, body = kind(node)
        if name in WRITES and name != "CreateStmt":
            return _write(WRITES[name])
        if name == "SelectStmt" and body.get("intoClause"):
            return _write("SELECT INTO")
        if name == "FuncCall" and (refusal := _by_function(body)):
            return refusal
    return None


def _by_function(body: Node) -> Refusal | None:
    name = strings(body.get("funcname"))[-1]
    if name == "ts_rewrite" and len(items(body, "args")) == 3:
        return None  # it replaces one query by another; with two arguments the second is run as SQL
    if name in FUNCTIONS or name.startswith(PREFIXES):
        return NotAllowed(f"permission denied for function {name}", about=name)
    return None
