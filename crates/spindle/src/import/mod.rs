//! `spindle import`: what clients do to a server of yours, as scripts and an experiment file. `statement` reads the
//! texts that a server has counted, `digest` makes them of digests, and `own_names` takes the database from them.
//! `harmless` knows functions, `table` and `column` what is known of their values, `sample` draws parameters, and
//! `mix` makes scripts. `postgres` and `mariadb` ask a `server`, `exported` reads what was exported of it, and `told`
//! says what is covered and what is not. A server is only read. `log` makes recordings of logs; `pieces` cuts texts.

mod column;
mod digest;
pub mod error;
mod exported;
mod harmless;
pub mod log;
mod mariadb;
mod mix;
mod own_names;
mod pieces;
mod postgres;
mod sample;
mod server;
mod statement;
mod table;
mod told;

use std::io::{self, ErrorKind};
use std::path::Path;

use spindle_engines::sql::{Address, Scheme, remote_server};
use spindle_text::files::Directory;
use spindle_text::plain::one_line;
use spindle_workload::sql::Dialect;

use crate::ask::draft::{Draft, DraftSection, quoted};
use error::ImportError;
use exported::ExportedColumns;
use mariadb::MariaDbSource;
use mix::{Counted, ImportedMix, mix};
use postgres::PostgresSource;
use server::{CountingServer, ServerTables};
use table::{NoTables, Tables};
use told::{EXPERIMENT, ToldTotals};

/// Room on the stack while texts are read.
const STACK_BYTES: usize = 256 << 20;
/// No smaller database makes sense to an experiment.
const SIZE_MIN_MIB: u64 = 16;
/// The size that an experiment says when the server does not tell one.
const SIZE_BYTES: u64 = 1 << 30;
/// Why a setting has its value.
const AS_THERE: &str = "as on the server";

/// Where statements and statistics come from, and where the mix goes.
#[derive(Debug)]
pub struct ImportRequest<'a> {
    /// The address of a server, or the name of a CSV file.
    pub source: &'a str,
    /// The address of the server whose statistics give the parameters, for a CSV file.
    pub statistics: Option<&'a str>,
    /// The environment variable that the password is in.
    pub password_env: Option<&'a str>,
    /// Files that load the data, for the experiment file.
    pub load: &'a [String],
    /// The directory to make.
    pub out: &'a Path,
}

/// Who counts statements.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Counter {
    /// PostgreSQL's `pg_stat_statements`.
    PgStatStatements,
    /// `performance_schema` of MariaDB and MySQL.
    PerformanceSchema,
}

impl Counter {
    fn dialect(self) -> Dialect {
        match self {
            Counter::PgStatStatements => Dialect::Postgres,
            Counter::PerformanceSchema => Dialect::MariaDb,
        }
    }

    /// The columns of a file of what was counted.
    fn columns(self) -> &'static ExportedColumns {
        match self {
            Counter::PgStatStatements => &exported::PG_STAT_STATEMENTS,
            Counter::PerformanceSchema => &exported::DIGESTS,
        }
    }

    /// Connects to a server of the kind, to read.
    fn connect(self, url: &str, password_env: Option<&str>) -> Result<Server, ImportError> {
        let address = Address::complete(url).map_err(ImportError::Address)?;
        let scheme = match self {
            Counter::PgStatStatements => Scheme::Postgres,
            Counter::PerformanceSchema => Scheme::MySql,
        };
        if address.scheme != scheme {
            return Err(ImportError::OtherServer(Box::new(address)));
        }
        let password = address.find_password(password_env)?;
        let reader = remote_server(address.scheme).reader(&address, password.as_ref())?;
        let server: Box<dyn CountingServer> = match self {
            Counter::PgStatStatements => Box::new(PostgresSource::new(reader)),
            Counter::PerformanceSchema => Box::new(MariaDbSource::new(reader, &address)?),
        };
        Ok((address, server))
    }
}

/// Makes a mix of what a server has counted; what it covers, for people.
///
/// # Errors
/// Why there is none; nothing was written then.
pub fn counted_mix(counter: Counter, asked: &ImportRequest<'_>) -> Result<String, ImportError> {
    with_room(|| {
        let of_server = match is_address(asked.source) {
            true => Some(asked.source),
            false => asked.statistics,
        };
        let server = of_server.map(|url| counter.connect(url, asked.password_env));
        let mut server = server.transpose()?;
        let source = shown(asked.source, server.as_ref());
        let counted = match (is_address(asked.source), &mut server) {
            (true, Some((_, server))) => server.statements()?,
            _ => exported::statements(Path::new(asked.source), counter.columns())?,
        };
        let mut size_bytes = None;
        let made = match &mut server {
            Some((_, server)) => {
                size_bytes = server.size_bytes();
                let search_path = server.search_path()?;
                let mut tables = ServerTables::new(&mut **server);
                let mut made = made(counted, counter.dialect(), &source, &mut tables)?;
                made.search_path = search_path;
                made
            }
            None => made(counted, counter.dialect(), &source, &mut NoTables)?,
        };
        finish(&made, asked, &source, size_bytes)
    })
}

fn is_address(source: &str) -> bool {
    source.contains("://")
}

/// Texts of strangers may have much within each other: they are read where there is room on the stack.
fn with_room(
    import: impl FnOnce() -> Result<String, ImportError> + Send,
) -> Result<String, ImportError> {
    std::thread::scope(|scope| {
        let thread = std::thread::Builder::new().stack_size(STACK_BYTES);
        let started = thread.spawn_scoped(scope, import);
        let ended = started.map_err(ImportError::NoThread)?;
        ended
            .join()
            .unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    })
}

struct MadeMix {
    mix: ImportedMix,
    totals: ToldTotals,
    dialect: Dialect,
    /// Where the server looks for names without a schema, if that is to be set.
    search_path: Option<String>,
}

fn made(
    counted: Vec<Counted>,
    dialect: Dialect,
    source: &str,
    tables: &mut dyn Tables,
) -> Result<MadeMix, ImportError> {
    if counted.is_empty() {
        return Err(ImportError::NothingCounted(source.to_owned()));
    }
    let totals = ToldTotals::of(&counted);
    let mix = mix(counted, dialect, tables);
    match mix.scripts.is_empty() {
        true => Err(ImportError::AllLeftOut {
            origin: source.to_owned(),
            left: told::left(&mix),
        }),
        false => Ok(MadeMix {
            mix,
            totals,
            dialect,
            search_path: None,
        }),
    }
}

/// Writes the files, and says what they are.
fn finish(
    made: &MadeMix,
    asked: &ImportRequest<'_>,
    source: &str,
    size_bytes: Option<u64>,
) -> Result<String, ImportError> {
    let load: Vec<String> = asked
        .load
        .iter()
        .map(|file| absolute(file))
        .collect::<Result<_, _>>()?;
    let experiment = experiment(made, &load, source, size_bytes);
    let directory = make_directory(asked.out)?;
    let scripts = made.mix.scripts.iter();
    let files = scripts.map(|script| (script.name.as_str(), script.text.as_str()));
    for (name, text) in files.chain([(EXPERIMENT, experiment.as_str())]) {
        let written = directory.write(name, text);
        written.map_err(|error| not_written(name, asked.out, error))?;
    }
    Ok(told::told(
        &made.mix,
        &made.totals,
        source,
        asked.out,
        !load.is_empty(),
        made.dialect,
    ))
}

/// Makes the directory that an import goes to. Its files hold values of the server's tables, which not everyone may see
/// who may log in here.
fn make_directory(out: &Path) -> Result<Directory, ImportError> {
    let made = Directory::make_new(out).map(Directory::private);
    made.map_err(|source| match source.kind() {
        ErrorKind::AlreadyExists => ImportError::AlreadyThere(out.to_owned()),
        _ => ImportError::NotMade {
            path: out.to_owned(),
            source,
        },
    })
}

fn not_written(name: &str, out: &Path, source: io::Error) -> ImportError {
    ImportError::NotWritten {
        name: name.to_owned(),
        out: out.to_owned(),
        source,
    }
}

fn absolute(file: &str) -> Result<String, ImportError> {
    let path = std::path::absolute(file).map_err(|source| ImportError::NotFound {
        file: file.to_owned(),
        source,
    })?;
    let text = path.to_str().map(str::to_owned);
    text.ok_or(ImportError::NotUtf8(path))
}

/// The experiment file: the mix, on a database that is made here.
fn experiment(made: &MadeMix, load: &[String], source: &str, size_bytes: Option<u64>) -> String {
    let about = format!(
        "Which layout is fastest for the recorded load of {source}? The scripts have {:.1} % of its calls and {:.1} % \
         of their time.",
        100.0 * made.mix.covered.calls,
        100.0 * made.mix.covered.time
    );
    let mut draft = Draft::new("imported", vec![one_line(&about).into_owned()]);
    let engine = match made.dialect {
        Dialect::MariaDb => "mariadb",
        Dialect::Postgres | Dialect::Sqlite => "postgres",
    };
    draft.set(DraftSection::Database, "engine", quoted(engine), "");
    let mib = size_bytes
        .unwrap_or(SIZE_BYTES)
        .div_ceil(1 << 20)
        .max(SIZE_MIN_MIB);
    let why = match size_bytes {
        Some(_) => AS_THERE,
        None => "a guess: set what load makes",
    };
    draft.set(
        DraftSection::Database,
        "size",
        quoted(&format!("{mib}MiB")),
        why,
    );
    let cache_mib = (mib / 4).max(8);
    let why = "set what your server has, or its share of the data";
    draft.set(
        DraftSection::Database,
        "buffer_cache",
        quoted(&format!("{cache_mib}MiB")),
        why,
    );
    if let Some(path) = &made.search_path {
        let settings = format!("{{ search_path = {} }}", quoted(path));
        draft.set(DraftSection::Database, "settings", settings, AS_THERE);
    }
    draft.set(DraftSection::Workload, "kind", quoted("script"), "");
    let scripts = made.mix.scripts.iter();
    let scripts: Vec<String> = scripts
        .map(|script| quoted(&format!("{}@{}", script.name, script.weight)))
        .collect();
    draft.set(
        DraftSection::Workload,
        "scripts",
        format!("[{}]", scripts.join(", ")),
        "",
    );
    let load: Vec<String> = load.iter().map(|file| quoted(file)).collect();
    let why = match load.is_empty() {
        true => "name a dump of the server's data here",
        false => "",
    };
    draft.set(
        DraftSection::Workload,
        "load",
        format!("[{}]", load.join(", ")),
        why,
    );
    let why = format!("{} at most", column::CLIENTS_MAX);
    draft.set(DraftSection::Workload, "clients", "8", &why);
    draft.layout("here", ".");
    draft.text()
}

type Server = (Address, Box<dyn CountingServer>);

/// The source as people may see it: an address without its password.
fn shown(source: &str, server: Option<&Server>) -> String {
    match server {
        Some((address, _)) if source.contains("://") => address.to_string(),
        _ => source.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_lies_deep_in_a_text_has_room() {
        let repeated = |text: &str| text.repeat((statement::TEXT_BYTES_MAX - 100) / text.len());
        let sums = format!("select {}1 from t", repeated("1+"));
        let brackets = format!("select {}1 from t", repeated("("));
        let told = with_room(|| {
            let sums = statement::read(&sums, Dialect::Postgres).map(|_| "taken".to_owned());
            let brackets = statement::read(&brackets, Dialect::Postgres).map(|_| String::new());
            Ok(format!("{sums:?}, {brackets:?}"))
        });
        let told = told.unwrap();
        assert!(told.starts_with("Ok(\"taken\"), Err("), "{told}");
    }
}
