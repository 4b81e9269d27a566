"""The tables of a ledger in SQLite, one script for each version of the schema."""

# An application id of our own ("NGLD") tells a ledger from any other SQLite file.
APPLICATION_ID = 0x4E474C44

# Version n is reached by running the scripts up to the n-th. A script that was shipped is never changed.
SCRIPTS = (
    """
    CREATE TABLE meta (name TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
    CREATE TABLE entries (id INTEGER PRIMARY KEY, entry TEXT NOT NULL, seal TEXT NOT NULL);
    CREATE INDEX faults ON entries (json_extract(entry, '$.analyst'), json_extract(entry, '$.time'))
        WHERE json_extract(entry, '$.kind') = 'fault';
    CREATE TABLE accounts (
        account TEXT, period TEXT, epsilon TEXT NOT NULL, delta TEXT NOT NULL, rho TEXT NOT NULL, pure INTEGER NOT NULL,
        PRIMARY KEY (account, period)
    ) WITHOUT ROWID;
    CREATE TABLE releases (
        id INTEGER PRIMARY KEY, charge INTEGER NOT NULL REFERENCES entries, time TEXT NOT NULL, block TEXT NOT NULL,
        measure TEXT NOT NULL, cost TEXT NOT NULL, groups TEXT NOT NULL, numbers TEXT NOT NULL,
        list TEXT NOT NULL  -- SHA-256 of the groups: measures over one list are found without reading it
    );
    CREATE INDEX releases_of_a_block ON releases (block, measure, time);
    CREATE TABLE sights (
        account TEXT, period TEXT, release INTEGER REFERENCES releases, PRIMARY KEY (account, period, release)
    ) WITHOUT ROWID;
    """,
)
VERSION = len(SCRIPTS)
