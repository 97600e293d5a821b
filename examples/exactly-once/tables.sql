-- What an exactly-once sink in PostgreSQL needs beside its own table: see docs/how-to/exactly-once-sink.md.

-- The highest epoch that has written. Who comes with a lower one is a driver that was thought dead.
CREATE TABLE ledger_fence (
    job   text   NOT NULL,
    query text   NOT NULL,
    epoch bigint NOT NULL,
    PRIMARY KEY (job, query)
);

-- Every batch that was written. Who comes with one of them repeats it.
CREATE TABLE ledger (
    lineage    text        NOT NULL,
    query      text        NOT NULL,
    batch      bigint      NOT NULL,
    epoch      bigint      NOT NULL,
    written_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    PRIMARY KEY (lineage, query, batch)
);

-- The job's results.
CREATE TABLE windows (
    begins_ms bigint NOT NULL,
    key       text   NOT NULL,
    n         bigint NOT NULL,
    total     bigint NOT NULL,
    label     text   NOT NULL
);
