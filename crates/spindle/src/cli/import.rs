//! `spindle import`: what clients do to a server of yours, as scripts and an experiment file.

use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Args, Subcommand};

use super::{fail, print};
use crate::import::{self, Asked};

pub(super) const STATEMENTS_HELP: &str = "Examples:
  spindle import pg_stat_statements postgres://ann@db1/shop --load shop.dump
  spindle import pg_stat_statements counted.csv --statistics postgres://ann@db1/shop

SELECT, INSERT, UPDATE and DELETE are taken, with their share of the calls. Parameters are drawn from the statistics of \
the tables (pg_stats): common values and histograms. It is said which share of calls and time is covered, what is left \
out, and why.

The server is only read: nothing of it is changed, and no statement of the mix is carried out there.";

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
    fn asked<'a>(&'a self, source: &'a str, statistics: Option<&'a str>) -> Asked<'a> {
        Asked {
            source,
            statistics,
            password_env: self.password_env.as_deref(),
            load: &self.load,
            out: &self.out,
        }
    }
}

pub(super) fn carry_out(asked: &Import) -> ExitCode {
    let told = match asked {
        Import::PgStatStatements {
            source,
            statistics,
            mix,
        } => import::pg_stat_statements(&mix.asked(source, statistics.as_deref())),
    };
    match told {
        Ok(text) => print(&text),
        Err(reason) => fail(&reason),
    }
}
