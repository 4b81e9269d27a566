#!/bin/sh
# Gives the proxy's own role in the database its password, when the database is made.
set -eu
psql --username "$POSTGRES_USER" --dbname "$POSTGRES_DB" --set ON_ERROR_STOP=1 --set password="$READER_PASSWORD" <<'SQL'
ALTER ROLE noisegate_reader PASSWORD :'password';
SQL
