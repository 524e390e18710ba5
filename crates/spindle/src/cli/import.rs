//! `spindle import`: what clients do to a server of yours, as scripts and an experiment file.

use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Args, Subcommand};

use super::ending::{ended_by, print};
use crate::import::error::ImportError;
use crate::import::log::{self, AskedLog, LogForm};
use crate::import::{self, Counter, ImportRequest};

pub(super) const STATEMENTS_HELP: &str = "Examples:
  spindle import pg_stat_statements postgres://ann@db1/shop --load shop.dump
  spindle import pg_stat_statements counted.csv --statistics postgres://ann@db1/shop

SELECT, INSERT, UPDATE and DELETE are taken, with their share of the calls. Parameters are drawn from the statistics of \
the tables (pg_stats): common values and histograms. The command says which share of calls and \
time the mix covers, what it leaves out, and why.

The server is only read: nothing of it is changed, and no statement of the mix is carried out there.";

pub(super) const DIGESTS_HELP: &str = "Examples:
  spindle import performance_schema mysql://ann@db1/shop --load shop.sql
  spindle import performance_schema counted.tsv --statistics mysql://ann@db1/shop

SELECT, INSERT, UPDATE and DELETE are taken, with their share of the calls. Parameters are drawn from histograms of type \
JSON_HB, which ANALYZE TABLE ... PERSISTENT FOR ALL makes in MariaDB. Of a column without one, the values of about 100 \
rows are read. The command says which share of calls and time the mix covers, what it leaves out, and why.

The server is only read: nothing of it is changed, and no statement of the mix is carried out there.";

pub(super) const LOG_HELP: &str = "Examples:
  spindle import csvlog postgresql.csv --load shop.dump
  spindle import slowlog slow.log --database shop --load shop.sql

Every session of the log becomes a stream of transactions, in its order and with its times. The experiment file replays \
them with their times, faster (speed = 2.0), or as fast as possible (times = \"ignored\").

Statements of users, roles and rights are left out, so that no password is written. So is what reaches files or other \
servers, and COPY, whose rows are not in the log. The command says how many statements it leaves out, and why.

PostgreSQL writes such a log with logging_collector = on, log_destination = 'csvlog' (or 'jsonlog') and \
log_min_duration_statement = 0; MariaDB and MySQL with slow_query_log = on and long_query_time = 0, or general_log = on.";

#[derive(Subcommand)]
pub(super) enum Import {
    /// A mix of the statements that PostgreSQL's pg_stat_statements has counted.
    #[command(name = "pg_stat_statements", after_help = STATEMENTS_HELP)]
    PgStatStatements {
        /// The address of the server with its database, or a CSV file of the view.
        #[arg(value_name = "URL|CSV")]
        source: String,
        /// For a CSV file: the server whose statistics give the parameters.
        #[arg(long, value_name = "URL")]
        statistics: Option<String>,
        #[command(flatten)]
        mix: MixOptions,
    },
    /// A mix of the statements that performance_schema of MariaDB or MySQL has counted.
    #[command(name = "performance_schema", after_help = DIGESTS_HELP)]
    PerformanceSchema {
        /// The address of the server with its database, or a file of events_statements_summary_by_digest.
        #[arg(value_name = "URL|CSV")]
        source: String,
        /// For a file: the server whose tables give the parameters.
        #[arg(long, value_name = "URL")]
        statistics: Option<String>,
        #[command(flatten)]
        mix: MixOptions,
    },
    /// A replay of PostgreSQL's log in CSV.
    #[command(after_help = LOG_HELP)]
    Csvlog(LogOptions),
    /// A replay of PostgreSQL's log in JSON.
    #[command(after_help = LOG_HELP)]
    Jsonlog(LogOptions),
    /// A replay of the slow query log of MariaDB or MySQL.
    #[command(after_help = LOG_HELP)]
    Slowlog(LogOptions),
    /// A replay of the general query log of MariaDB or MySQL.
    #[command(after_help = LOG_HELP)]
    Generallog(LogOptions),
}

/// What every log takes.
#[derive(Args)]
pub(super) struct LogOptions {
    /// The log.
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// The database whose statements are taken [default: the one with most of them].
    #[arg(long, value_name = "NAME")]
    database: Option<String>,
    /// The directory to make.
    #[arg(long, value_name = "DIR", default_value = "imported")]
    out: PathBuf,
    /// A dump or SQL file with the data as it was when the log began; may be given several times.
    #[arg(long, value_name = "FILE")]
    load: Vec<String>,
}

impl LogOptions {
    fn import(&self, form: LogForm) -> Result<String, ImportError> {
        log::log(&AskedLog {
            form,
            file: &self.file,
            database: self.database.as_deref(),
            load: &self.load,
            out: &self.out,
        })
    }
}

/// What every mix takes.
#[derive(Args)]
pub(super) struct MixOptions {
    /// The directory to make.
    #[arg(long, value_name = "DIR", default_value = "imported")]
    out: PathBuf,
    /// A dump or SQL file with the data, for the experiment file; may be given several times.
    #[arg(long, value_name = "FILE")]
    load: Vec<String>,
    /// The environment variable that the password is in [default: where the server's own clients look].
    #[arg(long, value_name = "NAME")]
    password_env: Option<String>,
}

impl MixOptions {
    fn import(
        &self,
        counter: Counter,
        source: &str,
        statistics: Option<&str>,
    ) -> Result<String, ImportError> {
        let asked = ImportRequest {
            source,
            statistics,
            password_env: self.password_env.as_deref(),
            load: &self.load,
            out: &self.out,
        };
        import::counted_mix(counter, &asked)
    }
}

pub(super) fn carry_out(asked: &Import) -> ExitCode {
    let told = match asked {
        Import::PgStatStatements {
            source,
            statistics,
            mix,
        } => mix.import(Counter::PgStatStatements, source, statistics.as_deref()),
        Import::PerformanceSchema {
            source,
            statistics,
            mix,
        } => mix.import(Counter::PerformanceSchema, source, statistics.as_deref()),
        Import::Csvlog(asked) => asked.import(LogForm::Csv),
        Import::Jsonlog(asked) => asked.import(LogForm::Json),
        Import::Slowlog(asked) => asked.import(LogForm::Slow),
        Import::Generallog(asked) => asked.import(LogForm::General),
    };
    match told {
        Ok(text) => print(&text),
        Err(error) => ended_by(&error),
    }
}
