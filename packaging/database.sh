#!/bin/sh
# Runs once, as the administrator of an empty PostgreSQL: two roles, the database and
# what the service may do with the tables that their owner makes later.
set -eu

psql --set=ON_ERROR_STOP=1 --username "${POSTGRES_USER:-postgres}" --dbname postgres \
  --set=owner="$KEPT_OWNER_PASSWORD" --set=app="$KEPT_APP_PASSWORD" <<'SQL'
CREATE ROLE kept_owner LOGIN PASSWORD :'owner';
CREATE ROLE kept_app LOGIN PASSWORD :'app';
CREATE DATABASE kept OWNER kept_owner;
\connect kept
CREATE EXTENSION vector;
ALTER DEFAULT PRIVILEGES FOR ROLE kept_owner
  GRANT USAGE ON SCHEMAS TO kept_app;
ALTER DEFAULT PRIVILEGES FOR ROLE kept_owner
  GRANT SELECT, INSERT, UPDATE, DELETE ON TABLES TO kept_app;
ALTER DEFAULT PRIVILEGES FOR ROLE kept_owner
  GRANT USAGE ON SEQUENCES TO kept_app;
SQL
