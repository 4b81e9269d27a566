"""PostgreSQL's protocol 3 as bytes and messages, without a socket."""
