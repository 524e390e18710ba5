//! MariaDB: `ssl-mode` and its companions.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use spindle_engines::sql::{Address, Password, remote_server};

use super::certificates::Certificates;
use super::{Case, case, look, own_host};

const PASSWORD: &str = "open-sesame-4711";
const PATIENCE: Duration = Duration::from_secs(60);

/// A server that listens on a separate host. It is a child, and ends with the test.
struct Lab {
    server: Child,
    host: String,
    certificates: Certificates,
    place: tempfile::TempDir,
}

impl Lab {
    fn open() -> Option<Lab> {
        let is_there = |program| Command::new(program).arg("--version").output().is_ok();
        if !["mariadb-install-db", "mariadbd", "mariadb"]
            .into_iter()
            .all(is_there)
        {
            spindle_harness::skip("there is no MariaDB on PATH");
            return None;
        }
        let host = own_host();
        let certificates = Certificates::for_host(&host)?;
        let place = tempfile::tempdir().unwrap();
        fs::set_permissions(place.path(), fs::Permissions::from_mode(0o755)).unwrap();
        for name in ["data", "scratch"] {
            fs::create_dir(place.path().join(name)).unwrap();
        }
        let open = fs::Permissions::from_mode(0o1777);
        fs::set_permissions(place.path().join("scratch"), open).unwrap();
        let users = format!(
            "create user bob identified by '{PASSWORD}';\n\
             create user ssl_only identified by '{PASSWORD}' require ssl;\n\
             create user ann identified by '{PASSWORD}' require x509;\ngrant reload on *.* to bob;\n"
        );
        fs::write(place.path().join("users.sql"), users).unwrap();
        let mut install = program("mariadb-install-db", place.path());
        let installed = install.arg("--skip-test-db").output().unwrap();
        let said = String::from_utf8_lossy(&installed.stderr);
        assert!(installed.status.success(), "{said}");
        let data = place.path().join("data");
        certificates.put("right", &data);
        let file = |name: &str| data.join(name).display().to_string();
        let more = [
            format!("--init-file={}", place.path().join("users.sql").display()),
            format!("--ssl-cert={}", file("server.crt")),
            format!("--ssl-key={}", file("server.key")),
            format!("--ssl-ca={}", file("clients.crt")),
        ];
        let server = serve(place.path(), &host, &more);
        let lab = Lab {
            server,
            host,
            certificates,
            place,
        };
        lab.wait();
        Some(lab)
    }

    /// The same without encryption.
    fn open_again_without(&mut self) {
        self.server.kill().unwrap();
        self.server.wait().unwrap();
        self.server = serve(self.place.path(), &self.host, &[]);
        self.wait();
    }

    fn wait(&self) {
        let began = Instant::now();
        while self.said("bob", "ssl-mode=DISABLED") != "plain" {
            let log = fs::read_to_string(self.place.path().join("log")).unwrap();
            assert!(began.elapsed() < PATIENCE, "it does not answer: {log}");
            std::thread::sleep(Duration::from_millis(50));
        }
    }

    /// Gives the server this certificate.
    fn have(&self, server: &str) {
        self.certificates
            .put(server, &self.place.path().join("data"));
        let flushed = Command::new("mariadb")
            .args([
                "--no-defaults",
                "--skip-ssl",
                "--user=bob",
                "--host",
                &self.host,
                "-e",
                "flush ssl",
            ])
            .env("MYSQL_PWD", PASSWORD)
            .output()
            .unwrap();
        let said = String::from_utf8_lossy(&flushed.stderr);
        assert!(flushed.status.success(), "{said}");
    }

    fn said(&self, user: &str, query: &str) -> String {
        let directory = self.certificates.directory().display().to_string();
        let query = query.replace('~', &directory);
        look(&format!("mysql://{user}@{}/?{query}", self.host), PASSWORD)
    }

    /// A look at it tells what is missing, and changes nothing.
    fn is_surveyed(&self) {
        let url = format!("mysql://bob@{}/", self.host);
        let address = Address::parse(&url).unwrap();
        let before = self.catalogue();
        let server = remote_server(address.scheme);
        let found = server.survey(&address, Some(&Password::new(PASSWORD)));
        let found = found.unwrap();
        assert_eq!(self.catalogue(), before);
        assert!(found.version.contains("MariaDB"), "{found:?}");
        assert!(
            found.encryption.is_some() && found.clock.is_some(),
            "{found:?}"
        );
        assert_eq!(found.cache_bytes, Some(128 << 20));
        let missing: Vec<&str> = found
            .rights
            .iter()
            .filter_map(|right| right.missing.as_deref())
            .collect();
        assert!(
            missing.contains(&"grant all on `spindle\\_%`.* to 'bob'@'%'"),
            "{missing:?}"
        );
        assert!(
            missing
                .iter()
                .any(|remedy| remedy.contains("performance_schema")),
            "{missing:?}"
        );
    }

    /// What the server's files of tables and accounts hold.
    fn catalogue(&self) -> Vec<(String, u64)> {
        let mut found = Vec::new();
        let data = self.place.path().join("data");
        for directory in [data.clone(), data.join("mysql")] {
            for entry in fs::read_dir(directory).unwrap() {
                let entry = entry.unwrap();
                let name = entry.file_name().into_string().unwrap();
                let is_log =
                    name.starts_with("ib") || name.starts_with("aria") || name.starts_with("undo");
                if !is_log {
                    found.push((name, entry.metadata().unwrap().len()));
                }
            }
        }
        found.sort();
        found
    }

    fn holds(&self, cases: &[Case]) {
        let mut server = "right";
        let mut wrong = Vec::new();
        for case in cases {
            if server != case.server && case.server != "none" {
                server = case.server;
                self.have(server);
            }
            let said = self.said(case.user, case.query);
            if !said.contains(case.said) {
                wrong.push(format!(
                    "{} {} {}: {said}",
                    case.server, case.user, case.query
                ));
            }
        }
        assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    }
}

/// A program of the server's, as the user who may run it.
fn program(name: &str, place: &Path) -> Command {
    let mut command = Command::new(name);
    command
        .arg("--no-defaults")
        .arg(format!("--datadir={}", place.join("data").display()))
        .arg(format!("--tmpdir={}", place.join("scratch").display()))
        .args(
            rustix::process::geteuid()
                .is_root()
                .then_some("--user=mysql"),
        );
    command
}

fn serve(place: &Path, host: &str, more: &[String]) -> Child {
    let log = fs::File::create(place.join("log")).unwrap();
    program("mariadbd", place)
        .args([
            "--socket=lab.sock",
            "--pid-file=lab.pid",
            "--skip-log-error",
        ])
        .arg(format!("--bind-address={host}"))
        .args(more)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(log)
        .spawn()
        .unwrap()
}

impl Drop for Lab {
    fn drop(&mut self) {
        // Its directory goes after it.
        let _ = self.server.kill();
        let _ = self.server.wait();
    }
}

const NOT_VERIFIED: &str = "certificate was not verified";
const CA_VERIFIED: &str = "certificate was verified, its host was not";
const VERIFIED: &str = "certificate was verified, and its host";
const FROM_NOBODY: &str = "it comes from no authority that is trusted";

#[rustfmt::skip]
const CASES: [Case; 20] = [
    case("right", "bob", "", NOT_VERIFIED),
    case("right", "bob", "ssl-mode=DISABLED", "plain"),
    case("right", "ssl_only", "ssl-mode=DISABLED", "Access denied"),
    case("right", "ssl_only", "ssl-mode=PREFERRED", NOT_VERIFIED),
    case("right", "bob", "ssl-mode=REQUIRED", NOT_VERIFIED),
    case("right", "bob", "ssl-ca=~/ca.crt", CA_VERIFIED),
    case("right", "bob", "ssl-mode=VERIFY_CA&ssl-ca=~/ca.crt", CA_VERIFIED),
    case("right", "bob", "ssl-mode=VERIFY_IDENTITY&ssl-ca=~/ca.crt", VERIFIED),
    case("right", "bob", "ssl-mode=VERIFY_CA&ssl-ca=~/missing.crt", "No such file"),
    case("right", "ann", "ssl-mode=REQUIRED", "Access denied"),
    case("right", "ann", "ssl-mode=REQUIRED&ssl-cert=~/ann.crt&ssl-key=~/ann.key", NOT_VERIFIED),
    case("right", "ann", "ssl-mode=REQUIRED&ssl-cert=~/ann.crt&ssl-key=~/right.key", "do not go together"),
    case("wrong-host", "bob", "ssl-mode=VERIFY_CA&ssl-ca=~/ca.crt", CA_VERIFIED),
    case("wrong-host", "bob", "ssl-mode=VERIFY_IDENTITY&ssl-ca=~/ca.crt", "elsewhere.example"),
    case("untrusted", "bob", "ssl-mode=PREFERRED", NOT_VERIFIED),
    case("untrusted", "bob", "ssl-mode=REQUIRED", NOT_VERIFIED),
    case("untrusted", "bob", "ssl-mode=VERIFY_CA&ssl-ca=~/ca.crt", FROM_NOBODY),
    case("version-1", "bob", "ssl-mode=REQUIRED", NOT_VERIFIED),
    case("version-1", "bob", "ssl-mode=VERIFY_CA&ssl-ca=~/ca.crt", "version 1 of X.509"),
    case("itself", "bob", "ssl-mode=VERIFY_IDENTITY&ssl-ca=~/itself.crt", "an authority's own"),
];

#[rustfmt::skip]
const WITHOUT: [Case; 4] = [
    case("none", "bob", "", "plain"),
    case("none", "bob", "ssl-mode=PREFERRED", "plain"),
    case("none", "bob", "ssl-mode=REQUIRED", "does not encrypt"),
    case("none", "bob", "ssl-mode=VERIFY_IDENTITY&ssl-ca=~/ca.crt", "does not encrypt"),
];

#[test]
fn every_mode_against_every_certificate() {
    if !spindle_harness::is_long_or_skip() {
        return;
    }
    let Some(mut lab) = Lab::open() else {
        return;
    };
    lab.holds(&CASES);
    lab.is_surveyed();
    lab.open_again_without();
    lab.holds(&WITHOUT);
}
