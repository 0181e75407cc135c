"""Tables of the service: keys, audit log, jobs and idempotency."""
