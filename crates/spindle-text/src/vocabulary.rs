//! What each database calls its log, its cache and its I/O, so that plans, tables, reports and warnings speak of a
//! server in its own words and of the embedded database in Oracle's. Any crate may call it.

/// The words of a database.
#[derive(Debug, PartialEq, Eq)]
pub struct Vocabulary {
    /// Its word in an experiment file.
    pub engine: &'static str,
    /// What it writes before a commit returns.
    pub log: &'static str,
    /// The key of `[database]` that puts the log elsewhere; `None` where it must lie beside the data.
    pub log_path: Option<&'static str>,
    /// The memory that it keeps blocks in.
    pub cache: &'static str,
    /// The key of `[database]` that says how large that is.
    pub cache_size: &'static str,
    /// One write of the log, as a column.
    pub log_write: ColumnHead,
    /// One read of a block, as a column.
    pub block_read: ColumnHead,
}

/// The head of a column of milliseconds.
#[derive(Debug, PartialEq, Eq)]
pub struct ColumnHead {
    /// In full, with the unit.
    pub title: &'static str,
    /// In a few letters.
    pub short: &'static str,
    /// What the letters stand for.
    pub legend: &'static str,
}

/// The embedded database, modelled on Oracle.
pub const EMBEDDED: Vocabulary = Vocabulary {
    engine: "kernel",
    log: "redo log",
    log_path: Some("redo_path"),
    cache: "buffer cache",
    cache_size: "buffer_cache",
    log_write: ColumnHead {
        title: "log file parallel write, ms",
        short: "log wr",
        legend: "log wr: log file parallel write",
    },
    block_read: ColumnHead {
        title: "db file sequential read, ms",
        short: "blk rd",
        legend: "blk rd: db file sequential read",
    },
};

/// PostgreSQL.
pub const POSTGRES: Vocabulary = Vocabulary {
    engine: "postgres",
    log: "WAL",
    log_path: Some("wal_path"),
    cache: "shared buffers",
    cache_size: "shared_buffers",
    log_write: ColumnHead {
        title: "WAL write, ms",
        short: "WAL wr",
        legend: "WAL wr: one write of the WAL",
    },
    block_read: ColumnHead {
        title: "block read, ms",
        short: "blk rd",
        legend: "blk rd: one read of a block",
    },
};

/// MariaDB and MySQL.
pub const MARIADB: Vocabulary = Vocabulary {
    engine: "mariadb",
    log: "redo log",
    log_path: Some("redo_path"),
    cache: "buffer pool",
    cache_size: "innodb_buffer_pool_size",
    log_write: ColumnHead {
        title: "redo log write, ms",
        short: "log wr",
        legend: "log wr: one write of the redo log",
    },
    block_read: ColumnHead {
        title: "page read, ms",
        short: "pg rd",
        legend: "pg rd: one read of a page",
    },
};

/// SQLite.
pub const SQLITE: Vocabulary = Vocabulary {
    engine: "sqlite",
    log: "WAL or journal",
    log_path: None,
    cache: "page caches of connections",
    cache_size: "buffer_cache",
    log_write: ColumnHead {
        title: "write of WAL or journal, ms",
        short: "log wr",
        legend: "log wr: one write of WAL or journal",
    },
    block_read: ColumnHead {
        title: "page read, ms",
        short: "pg rd",
        legend: "pg rd: one read of a page",
    },
};

/// A database that has no words here: what all have in common.
pub const OTHER: Vocabulary = Vocabulary {
    engine: "",
    log: "log",
    log_path: Some("redo_path"),
    cache: "cache",
    cache_size: "buffer_cache",
    log_write: ColumnHead {
        title: "log write, ms",
        short: "log wr",
        legend: "log wr: one write of the log",
    },
    block_read: ColumnHead {
        title: "block read, ms",
        short: "blk rd",
        legend: "blk rd: one read of a block",
    },
};

/// The words of all databases.
pub const ALL: [&Vocabulary; 5] = [&EMBEDDED, &POSTGRES, &MARIADB, &SQLITE, &OTHER];

impl Vocabulary {
    /// Those of an engine, by its word in an experiment file.
    pub fn of(engine: &str) -> &'static Vocabulary {
        let mut all = ALL.into_iter();
        all.find(|words| words.engine == engine).unwrap_or(&OTHER)
    }
}
