//! Where the servers' own clients look for what an address leaves out. PostgreSQL's: a service
//! (https://www.postgresql.org/docs/current/libpq-pgservice.html), environment variables, `~/.postgresql`, and the file
//! of passwords (https://www.postgresql.org/docs/current/libpq-pgpass.html). Those of MariaDB and MySQL: the group
//! `[client]` of `~/.my.cnf` (https://dev.mysql.com/doc/refman/8.4/en/option-files.html), and `MYSQL_PWD`.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::io::ErrorKind;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use spindle_text::files;

use super::address::{Address, Parts, Password, Reach, read_port};
use super::encryption::{Encryption, SYSTEM};
use super::scheme::Scheme;
use crate::EngineError;

/// Environment variables of libpq that mean what a key of an address means.
const VARIABLES: [(&str, &str); 5] = [
    ("PGSSLMODE", "sslmode"),
    ("PGSSLROOTCERT", "sslrootcert"),
    ("PGSSLCERT", "sslcert"),
    ("PGSSLKEY", "sslkey"),
    ("PGCHANNELBINDING", "channel_binding"),
];
/// What a service may say that changes neither which server is meant nor how it is come to.
const OF_NO_INTEREST: [&str; 9] = [
    "application_name",
    "fallback_application_name",
    "client_encoding",
    "connect_timeout",
    "keepalives",
    "keepalives_idle",
    "keepalives_interval",
    "keepalives_count",
    "tcp_user_timeout",
];

/// None of these files is larger, bytes.
const BYTES_MAX: u64 = 16 << 20;

/// Of a service, for the whole system, where no variable says where (`PGSYSCONFDIR`).
const SERVICES_OF_SYSTEM: [&str; 2] = [
    "/etc/postgresql-common/pg_service.conf",
    "/etc/pg_service.conf",
];

/// The environment of a person: its variables, and by `HOME` its files.
pub(super) struct Surroundings(BTreeMap<OsString, OsString>);

impl Surroundings {
    /// Those of this process.
    pub fn of_process() -> Surroundings {
        Surroundings(std::env::vars_os().collect())
    }

    /// A variable that is a text.
    pub fn text(&self, name: &str) -> Option<String> {
        self.0
            .get(&OsString::from(name))?
            .clone()
            .into_string()
            .ok()
    }

    fn path(&self, name: &str) -> Option<PathBuf> {
        self.0.get(&OsString::from(name)).map(PathBuf::from)
    }

    fn at_home(&self, name: &str) -> Option<PathBuf> {
        Some(self.path("HOME")?.join(name))
    }

    /// The same, if it exists.
    fn found_at_home(&self, name: &str) -> Option<PathBuf> {
        self.at_home(name).filter(|path| path.exists())
    }
}

/// Completes what is said of a server.
///
/// # Errors
/// What is wrong with a file, without what it says; so for the others.
pub(super) fn complete(
    scheme: Scheme,
    parts: &mut Parts,
    surroundings: &Surroundings,
) -> Result<(), EngineError> {
    match scheme {
        Scheme::Postgres => {
            parts.service = parts.service.take().or(surroundings.text("PGSERVICE"));
            if let Some(name) = parts.service.clone() {
                let service = service(&name, surroundings)?;
                // Its password is looked for there again: it is not for the ledger.
                parts.complete(service);
            }
            parts.encryption.complete(in_variables(surroundings)?);
            parts.encryption.complete(in_home(surroundings));
        }
        Scheme::MySql => {
            if let Some(options) = options(surroundings)? {
                parts.complete(options);
            }
        }
    }
    make_absolute(&mut parts.encryption)
}

/// The password of a server where its clients look for it.
pub(super) fn password_of(
    address: &Address,
    surroundings: &Surroundings,
) -> Result<Option<Password>, EngineError> {
    let from_variable = |name| surroundings.text(name).map(Password::new);
    match address.scheme {
        Scheme::Postgres => {
            let service = address.service.as_deref();
            let service = service.map(|name| service_password(name, surroundings));
            if let Some(password) = service.transpose()?.flatten() {
                return Ok(Some(password));
            }
            match from_variable("PGPASSWORD") {
                Some(password) => Ok(Some(password)),
                None => in_passfile(address, surroundings),
            }
        }
        Scheme::MySql => {
            let options = options(surroundings)?;
            let password = options.and_then(|options| options.password);
            Ok(password.or_else(|| from_variable("MYSQL_PWD")))
        }
    }
}

impl Parts {
    /// Takes over what is not said yet; but the password.
    fn complete(&mut self, from: Parts) {
        if self.host.is_none() && self.socket.is_none() {
            (self.host, self.socket) = (from.host, from.socket);
        }
        self.port = self.port.or(from.port);
        self.user = self.user.take().or(from.user);
        self.database = self.database.take().or(from.database);
        self.encryption.complete(from.encryption);
    }
}

/// A trial's process may work in another directory.
fn make_absolute(encryption: &mut Encryption) -> Result<(), EngineError> {
    let files = [
        &mut encryption.ca,
        &mut encryption.certificate,
        &mut encryption.key,
    ];
    for path in files.into_iter().flatten() {
        if path != Path::new(SYSTEM) {
            *path = std::path::absolute(&*path)
                .map_err(|error| EngineError::failed("looking where this directory is", error))?;
        }
    }
    Ok(())
}

fn in_variables(surroundings: &Surroundings) -> Result<Encryption, EngineError> {
    let mut found = Encryption::default();
    for (name, key) in VARIABLES {
        let value = surroundings.text(name).filter(|value| !value.is_empty());
        if let Some(value) = value {
            let taken = found.take(Scheme::Postgres, key, &value);
            taken.map_err(|error| EngineError::refused(format!("{name}: {error}")))?;
        }
    }
    Ok(found)
}

fn in_home(surroundings: &Surroundings) -> Encryption {
    let [ca, certificate, key] = [
        ".postgresql/root.crt",
        ".postgresql/postgresql.crt",
        ".postgresql/postgresql.key",
    ]
    .map(|name| surroundings.found_at_home(name));
    let pair = certificate.zip(key);
    let (certificate, key) = pair.unzip();
    Encryption {
        ca,
        certificate,
        key,
        ..Encryption::default()
    }
}

/// What a service says, its password included.
fn service(name: &str, surroundings: &Surroundings) -> Result<Parts, EngineError> {
    let of_system = match surroundings.path("PGSYSCONFDIR") {
        Some(directory) => vec![directory.join("pg_service.conf")],
        None => SERVICES_OF_SYSTEM.map(PathBuf::from).to_vec(),
    };
    let of_user = surroundings.path("PGSERVICEFILE");
    let of_user = of_user.or_else(|| surroundings.at_home(".pg_service.conf"));
    let places: Vec<PathBuf> = of_user.into_iter().chain(of_system).collect();
    for place in &places {
        let Some(text) = text_of(place)? else {
            continue;
        };
        if let Some(lines) = group(&text, &[name]) {
            let wrong = |error: EngineError| {
                EngineError::refused(format!("the service in {}: {error}", place.display()))
            };
            return read_service(&lines).map_err(wrong);
        }
    }
    let places: Vec<String> = places
        .iter()
        .map(|path| path.display().to_string())
        .collect();
    Err(EngineError::refused(format!(
        "its service is in none of {}",
        places.join(", ")
    )))
}

fn service_password(
    name: &str,
    surroundings: &Surroundings,
) -> Result<Option<Password>, EngineError> {
    service(name, surroundings).map(|parts| parts.password)
}

fn read_service(lines: &[(String, String)]) -> Result<Parts, EngineError> {
    let mut parts = Parts::default();
    for (key, value) in lines {
        if parts.encryption.take(Scheme::Postgres, key, value)? {
            continue;
        }
        let text = Some(value.clone());
        match key.as_str() {
            "host" => parts.host = text,
            "port" => parts.port = Some(read_port(value)?),
            "user" => parts.user = text,
            "dbname" => parts.database = text,
            "password" => parts.password = text.map(Password::new),
            known if OF_NO_INTEREST.contains(&known) => {}
            other => {
                return Err(EngineError::refused(format!(
                    "it says {other}, which Spindle does not know"
                )));
            }
        }
    }
    Ok(parts)
}

/// What `~/.my.cnf` says to clients; `None`: there is none.
fn options(surroundings: &Surroundings) -> Result<Option<Parts>, EngineError> {
    let Some(path) = surroundings.at_home(".my.cnf") else {
        return Ok(None);
    };
    let Some(text) = text_of(&path)? else {
        return Ok(None);
    };
    // The clients' rule: any user who may write it might send us to another server.
    refuse_open(&path, 0o002, "write")?;
    let lines = group(&text, &["client", "client-mariadb"]).unwrap_or_default();
    let mut parts = Parts::default();
    for (key, value) in lines {
        let key = key.replace('_', "-");
        let value = value.trim_matches(['"', '\'']);
        let wrong = |error: EngineError| {
            EngineError::refused(format!("{} says to clients: {error}", path.display()))
        };
        let text = Some(value.to_owned());
        match key.as_str() {
            "host" => parts.host = text,
            "port" => parts.port = Some(read_port(value).map_err(wrong)?),
            "socket" => parts.socket = text.map(PathBuf::from),
            "user" => parts.user = text,
            "database" => parts.database = text,
            "password" => {
                refuse_open(&path, 0o077, "read")?;
                parts.password = text.map(Password::new);
            }
            // Clients have many other settings.
            other => {
                _ = parts
                    .encryption
                    .take(Scheme::MySql, other, value)
                    .map_err(wrong)?
            }
        }
    }
    // With both, the socket is for this machine, and the host otherwise.
    if parts.host.as_ref().is_some_and(|host| host != "localhost") {
        parts.socket = None;
    }
    Ok(Some(parts))
}

/// What such a file says; `None` where none can be read, or `/dev/null` stands for none. A pipe, which the servers' own
/// clients do not read either, is reported: a person who names one believes that it is used.
fn text_of(path: &Path) -> Result<Option<String>, EngineError> {
    match files::read_text(path, BYTES_MAX) {
        Ok(text) => Ok(Some(text)),
        Err(error) if error.kind() == ErrorKind::InvalidInput && !is_null(path) => {
            let path = path.display();
            Err(EngineError::refused(format!("cannot read {path}: {error}")))
        }
        Err(_) => Ok(None),
    }
}

fn is_null(path: &Path) -> bool {
    path.canonicalize()
        .is_ok_and(|path| path == Path::new("/dev/null"))
}

/// The lines `key = value` of groups of these names, the last of a key being the one that counts; `None` without such a
/// group.
fn group(text: &str, names: &[&str]) -> Option<Vec<(String, String)>> {
    let mut found = None;
    let mut is_inside = false;
    for line in text.lines().map(str::trim) {
        if let Some(name) = line.strip_prefix('[') {
            is_inside = names.contains(&name.trim_end_matches(']').trim());
            if is_inside {
                found.get_or_insert_with(Vec::new);
            }
            continue;
        }
        if line.starts_with(['#', ';', '!']) || !is_inside {
            continue;
        }
        if let (Some(lines), Some((key, value))) = (&mut found, line.split_once('=')) {
            lines.push((key.trim().to_owned(), value.trim().to_owned()));
        }
    }
    found
}

fn refuse_open(path: &Path, bits: u32, may: &str) -> Result<(), EngineError> {
    let mode = std::fs::metadata(path).map_or(0, |found| found.permissions().mode());
    match mode & bits {
        0 => Ok(()),
        _ => Err(EngineError::refused(format!(
            "others may {may} {}, so its passwords are not used: chmod 0600 it",
            path.display()
        ))),
    }
}

fn in_passfile(
    address: &Address,
    surroundings: &Surroundings,
) -> Result<Option<Password>, EngineError> {
    let path = surroundings.path("PGPASSFILE");
    let Some(path) = path.or_else(|| surroundings.at_home(".pgpass")) else {
        return Ok(None);
    };
    let Some(text) = text_of(&path)? else {
        return Ok(None);
    };
    refuse_open(&path, 0o077, "read")?;
    Ok(among(address, &text))
}

/// The password in the first line of a file of passwords that is this server's: `host:port:database:user:password`,
/// `*` for any, with a backslash before a colon or a backslash that is meant as such.
fn among(address: &Address, passfile: &str) -> Option<Password> {
    let (host, port) = match &address.reach {
        Reach::Host { host, port } => (host.as_str(), port.to_string()),
        // libpq calls every socket so.
        Reach::Socket(path) => {
            let name = path.extension().unwrap_or_default();
            ("localhost", name.to_string_lossy().into_owned())
        }
    };
    let database = address.database.as_deref().unwrap_or_default();
    let wanted = [host, &port, database, &address.user];
    let is_comment = |line: &&str| line.starts_with('#');
    let lines = passfile.lines().filter(|line| !is_comment(line));
    let mut entries = lines.map(fields);
    let entry = entries.find(|entry| {
        let mut pairs = entry.iter().zip(wanted);
        entry.len() == 5 && pairs.all(|(is, want)| is == "*" || is == want)
    })?;
    Some(Password::new(entry[4].clone()))
}

/// The fields of a line of a file of passwords.
fn fields(line: &str) -> Vec<String> {
    let mut fields = vec![String::new()];
    let mut characters = line.chars();
    while let Some(character) = characters.next() {
        let is_complete = fields.len() == 5;
        let last = fields.last_mut().expect("there is one from the beginning");
        match character {
            '\\' => last.extend(characters.next()),
            // Colons of the password need none.
            ':' if !is_complete => fields.push(String::new()),
            other => last.push(other),
        }
    }
    fields
}

#[cfg(test)]
mod tests {
    use std::fs::{Permissions, set_permissions, write};

    use super::*;

    /// A person's home with these files, and variables.
    struct Person {
        home: tempfile::TempDir,
        variables: Vec<(&'static str, String)>,
    }

    impl Person {
        fn with(files: &[(&str, &str)]) -> Person {
            let home = tempfile::tempdir().unwrap();
            std::fs::create_dir(home.path().join(".postgresql")).unwrap();
            for (name, text) in files {
                write(home.path().join(name), text).unwrap();
                set_mode(&home.path().join(name), 0o600);
            }
            let nowhere = home.path().join("none").display().to_string();
            Person {
                variables: vec![("PGSYSCONFDIR", nowhere)],
                home,
            }
        }

        fn and(mut self, name: &'static str, value: &str) -> Person {
            self.variables.push((name, value.to_owned()));
            self
        }

        fn surroundings(&self) -> Surroundings {
            let variables = self.variables.iter();
            let variables = variables.map(|(name, value)| (name.into(), value.into()));
            let home = ("HOME".into(), self.home.path().into());
            Surroundings(variables.chain([home]).collect())
        }

        fn reads(&self, text: &str) -> String {
            match Address::complete_in(text, &self.surroundings()) {
                Ok(address) => {
                    assert_eq!(
                        Address::parse(&address.to_string()).unwrap().to_string(),
                        address.to_string()
                    );
                    address
                        .to_string()
                        .replace(&self.home.path().display().to_string(), "~")
                }
                Err(error) => format!("refused: {error}"),
            }
        }

        fn password(&self, text: &str) -> Result<Option<Password>, String> {
            let address = Address::complete_in(text, &self.surroundings()).unwrap();
            let found = address.find_password_in(None, &self.surroundings());
            found.map_err(|error| error.to_string())
        }
    }

    #[test]
    fn a_pipe_in_the_place_of_a_file_is_told_of_and_makes_nobody_wait() {
        let person = Person::with(&[]);
        for name in ["passwords", ".my.cnf", ".pg_service.conf"] {
            let made = std::process::Command::new("mkfifo")
                .arg(person.home.path().join(name))
                .status();
            assert!(made.unwrap().success());
        }
        let passwords = person.home.path().join("passwords").display().to_string();
        let person = person.and("PGPASSFILE", &passwords);
        let refused = person.password("postgres://u@h/d").unwrap_err();
        assert!(refused.contains("passwords: it is a pipe"), "{refused}");
        for address in ["mariadb://u@h/d", "postgres://u@h/d?service=s"] {
            let told = person.reads(address);
            assert!(told.contains("it is a pipe (FIFO)"), "{told}");
        }
        let person = person.and("PGPASSFILE", "/dev/null");
        assert_eq!(person.password("postgres://u@h/d").unwrap(), None);
    }

    fn set_mode(path: &Path, mode: u32) {
        set_permissions(path, Permissions::from_mode(mode)).unwrap();
    }

    const SERVICES: &str = "# mine\n[other]\nhost=wrong\n[lab]\nhost=db1\nport=6432\nuser=ann\ndbname=lab\n\
                            password=secret\nsslmode=require\nconnect_timeout=3\n[odd]\nhost=h\nsslcrl=/c\n";

    #[test]
    fn a_service_completes_an_address() {
        let person = Person::with(&[(".pg_service.conf", SERVICES)]);
        let whole = "postgres://ann@db1:6432/lab?service=lab&sslmode=require";
        assert_eq!(person.reads("postgres:///?service=lab"), whole);
        // What the address says counts more.
        let other = person.reads("postgres://bob@db2/x?service=lab&sslmode=prefer");
        assert_eq!(
            other,
            "postgres://bob@db2:6432/x?service=lab&sslmode=prefer"
        );
        let by_socket = person.reads("postgres://bob@%2Frun/x?service=lab");
        assert_eq!(
            by_socket,
            "postgres://bob@localhost/x?host=/run&port=6432&service=lab"
        );
        let password = person.password("postgres:///?service=lab");
        assert_eq!(password, Ok(Some(Password::new("secret"))));
        let none = person.reads("postgres:///?service=none");
        assert!(none.contains("its service is in none of"), "{none}");
        let odd = person.reads("postgres://ann@h/?service=odd");
        assert!(
            odd.contains("it says sslcrl, which Spindle does not know"),
            "{odd}"
        );
        let person = person.and("PGSERVICE", "lab");
        assert_eq!(person.reads("postgres:///"), whole);
        let elsewhere = Person::with(&[("services", "[lab]\nhost=h\nuser=u\n")]);
        let path = elsewhere.home.path().join("services").display().to_string();
        let elsewhere = elsewhere.and("PGSERVICEFILE", &path);
        assert_eq!(
            elsewhere.reads("postgres:///?service=lab"),
            "postgres://u@h:5432/u?service=lab"
        );
    }

    #[test]
    fn certificates_are_looked_for_where_libpq_looks() {
        let url = "postgres://ann@h/lab";
        let plain = "postgres://ann@h:5432/lab";
        assert_eq!(Person::with(&[]).reads(url), plain);
        let person = Person::with(&[
            (".postgresql/root.crt", ""),
            (".postgresql/postgresql.crt", ""),
        ]);
        let trusting = format!("{plain}?sslrootcert=~/.postgresql/root.crt");
        assert_eq!(person.reads(url), trusting);
        write(person.home.path().join(".postgresql/postgresql.key"), "").unwrap();
        let with_key = person.reads("postgres://ann@h/lab?sslmode=verify-full");
        assert_eq!(
            with_key,
            format!(
                "{plain}?sslmode=verify-full&sslrootcert=~/.postgresql/root.crt&sslcert=~/.postgresql/postgresql.crt\
                 &sslkey=~/.postgresql/postgresql.key"
            )
        );
        let by_socket = person.reads("postgres://ann@%2Frun/lab");
        assert_eq!(
            by_socket,
            "postgres://ann@localhost/lab?host=/run&port=5432"
        );
        let person = Person::with(&[]).and("PGSSLMODE", "disable");
        assert_eq!(person.reads(url), format!("{plain}?sslmode=disable"));
        let wrong = Person::with(&[]).and("PGSSLMODE", "maybe").reads(url);
        assert!(
            wrong.contains("PGSSLMODE: its sslmode is not one of disable"),
            "{wrong}"
        );
        let system = Person::with(&[]).reads("postgres://ann@h/lab?sslrootcert=system");
        assert_eq!(system, format!("{plain}?sslrootcert=system"));
    }

    #[test]
    fn options_for_clients_complete_an_address() {
        let options = "[mysqld]\nport=1\n[client]\nuser = ann\npassword = \"sec#ret\"\nhost=db1\nport=3307\nsocket=/s\n\
                       ssl_ca=/ca.pem\nloose-x=1\n!include /etc\n";
        let person = Person::with(&[(".my.cnf", options)]);
        let whole = "mysql://ann@db1:3307?ssl-mode=VERIFY_CA&ssl-ca=/ca.pem";
        assert_eq!(person.reads("mysql:///"), whole);
        let required = person.reads("mysql://bob@h/?ssl-mode=required");
        assert_eq!(required, "mysql://bob@h:3307?ssl-mode=REQUIRED");
        let password = person.password("mysql://ann@h/");
        assert_eq!(password, Ok(Some(Password::new("sec#ret"))));
        set_mode(&person.home.path().join(".my.cnf"), 0o644);
        let open = person.reads("mysql:///");
        assert!(
            open.contains("others may read") && !open.contains("sec#ret"),
            "{open}"
        );
        let local = Person::with(&[(".my.cnf", "[client]\nuser=ann\nhost=localhost\nsocket=/s\n")]);
        assert_eq!(local.reads("mysql:///"), "mysql://ann@localhost?socket=/s");
        assert_eq!(local.reads("mysql://h/"), "mysql://ann@h:3306");
        set_mode(&local.home.path().join(".my.cnf"), 0o602);
        assert!(local.reads("mysql:///").contains("others may write"));
        let by_variable = Person::with(&[]).and("MYSQL_PWD", "other");
        let password = by_variable.password("mysql://ann@h/");
        assert_eq!(password, Ok(Some(Password::new("other"))));
    }

    #[test]
    fn a_file_of_passwords_is_read_as_libpq_reads_it() {
        let passfile = "# for all\nother:*:*:ann:no\nh:5432:*:ann:a\\:b\\\\c:d\n*:*:*:*:any\n";
        let person = Person::with(&[(".pgpass", passfile)]);
        let of = |text: &str| person.password(text).unwrap();
        assert_eq!(of("postgres://ann@h/lab"), Some(Password::new("a:b\\c:d")));
        assert_eq!(of("postgres://bob@h/lab"), Some(Password::new("any")));
        assert_eq!(of("postgres://ann@h:1/lab"), Some(Password::new("any")));
        let short = Person::with(&[(".pgpass", "h:5432:x:ann:no")]);
        assert_eq!(short.password("postgres://ann@h/lab"), Ok(None));
        let socket = Person::with(&[(".pgpass", "localhost:5432:lab:ann:yes")]);
        let found = socket.password("postgres://ann@%2Frun/lab");
        assert_eq!(found, Ok(Some(Password::new("yes"))));
        set_mode(&person.home.path().join(".pgpass"), 0o640);
        let open = person.password("postgres://ann@h/lab").unwrap_err();
        assert!(open.contains("chmod 0600"), "{open}");
    }
}
