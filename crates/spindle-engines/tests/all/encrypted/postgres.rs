//! PostgreSQL: `sslmode` and its companions, and channel binding.

use std::fs;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use spindle_engines::sql::{RunningServer, ServerStop};

use super::certificates::Certificates;
use super::{Case, case, look, own_host};
use crate::postgres::home::{Home, is_installed, postgres, request, start};

const PASSWORD: &str = "open-sesame-4711";
const PATIENCE: Duration = Duration::from_secs(60);
/// Who may come, and how.
const RULES: &str = "local all all scram-sha-256\nhostssl all clear all password\nhostssl all trusted all trust\n\
                     hostssl all hashed all md5\nhostssl all ssl_only all scram-sha-256\n\
                     hostnossl all plain_only all scram-sha-256\n\
                     hostnossl all clear all password\nhostssl all ann all cert\nhost all bob all scram-sha-256\n";

/// A server that listens on a separate host.
struct Lab {
    running: Arc<dyn RunningServer>,
    cluster: PathBuf,
    host: String,
    certificates: Certificates,
    _home: Home,
}

impl Lab {
    fn open() -> Option<Lab> {
        if !is_installed() {
            return None;
        }
        let host = own_host();
        let certificates = Certificates::for_host(&host)?;
        let home = Home::new();
        let request = request(&[]);
        let directories = home.directories("made");
        postgres().create(&request, &directories).unwrap();
        let cluster = directories.data.join("cluster");
        certificates.put("right", &cluster);
        // It is read after the settings that Spindle writes.
        let settings = format!(
            "listen_addresses = '{host}'\nssl = on\nssl_cert_file = 'server.crt'\nssl_key_file = 'server.key'\n\
             ssl_ca_file = 'clients.crt'\n"
        );
        fs::write(cluster.join("postgresql.auto.conf"), settings).unwrap();
        fs::write(cluster.join("pg_hba.conf"), RULES).unwrap();
        let running = start(&request, &directories);
        let mut connection = running.connect().unwrap();
        for user in ["bob", "ann", "clear", "trusted", "ssl_only", "plain_only"] {
            let made = format!("create role {user} login password '{PASSWORD}'");
            connection.run(&made).unwrap();
        }
        connection.run("set password_encryption = 'md5'").unwrap();
        let made = format!("create role hashed login password '{PASSWORD}'");
        connection.run(&made).unwrap();
        connection
            .run("grant create on database postgres to public")
            .unwrap();
        Some(Lab {
            running,
            cluster,
            host,
            certificates,
            _home: home,
        })
    }

    /// When the server has read its settings, as a new process of it knows.
    fn loaded(&self) -> String {
        let mut loaded = String::new();
        let mut connection = self.running.connect().unwrap();
        let asked = connection.ask("select pg_conf_load_time()::text", &mut |row| {
            loaded = row.text(0)?;
            Ok(())
        });
        asked.unwrap();
        loaded
    }

    /// Gives the server this certificate, or none.
    fn have(&self, server: &str) {
        let settings = self.cluster.join("postgresql.auto.conf");
        let text = fs::read_to_string(&settings).unwrap();
        let is_on = server != "none";
        if is_on {
            self.certificates.put(server, &self.cluster);
        }
        let [on, off] = ["ssl = on", "ssl = off"];
        let (from, to) = if is_on { (off, on) } else { (on, off) };
        fs::write(&settings, text.replace(from, to)).unwrap();
        let before = self.loaded();
        let mut connection = self.running.connect().unwrap();
        connection
            .ask("select pg_reload_conf()::text", &mut |_| Ok(()))
            .unwrap();
        let began = Instant::now();
        while self.loaded() == before {
            assert!(began.elapsed() < PATIENCE, "the settings were not read");
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    fn look(&self, case: &Case) -> String {
        let directory = self.certificates.directory().display().to_string();
        let query = case.query.replace('~', &directory);
        let url = format!("postgres://{}@{}/postgres?{query}", case.user, self.host);
        look(&url, PASSWORD)
    }
}

impl Drop for Lab {
    fn drop(&mut self) {
        let _ = self.running.stop(ServerStop::Kill);
    }
}

const NOT_VERIFIED: &str = "certificate was not verified";
const CA_VERIFIED: &str = "certificate was verified, its host was not";
const VERIFIED: &str = "certificate was verified, and its host";
const FROM_NOBODY: &str = "it comes from no authority that is trusted";
const NOT_BOUND: &str = "does not ask for SCRAM-SHA-256-PLUS";

#[rustfmt::skip]
const CASES: [Case; 52] = [
    case("right", "bob", "", NOT_VERIFIED),
    case("right", "bob", "sslmode=disable", "plain"),
    case("right", "bob", "sslmode=allow", "plain"),
    case("right", "ssl_only", "sslmode=allow", NOT_VERIFIED),
    case("right", "ssl_only", "sslmode=disable", "no pg_hba.conf entry"),
    case("right", "bob", "sslmode=prefer", NOT_VERIFIED),
    case("right", "plain_only", "sslmode=prefer", "plain"),
    case("right", "plain_only", "sslmode=require", "no pg_hba.conf entry"),
    case("right", "nobody", "sslmode=prefer", "; not encrypted: "),
    case("right", "bob", "sslmode=require", NOT_VERIFIED),
    case("right", "bob", "sslmode=require&sslrootcert=~/ca.crt", CA_VERIFIED),
    case("right", "bob", "sslmode=verify-ca&sslrootcert=~/ca.crt", CA_VERIFIED),
    case("right", "bob", "sslmode=verify-full&sslrootcert=~/ca.crt", VERIFIED),
    case("right", "bob", "sslmode=verify-full&sslrootcert=~/right.crt", FROM_NOBODY),
    case("right", "bob", "sslmode=verify-full&sslrootcert=system", FROM_NOBODY),
    case("right", "bob", "sslmode=verify-full&sslrootcert=~/missing.crt", "No such file"),
    case("right", "bob", "sslmode=verify-full&sslrootcert=~/ca.key", "no certificate in it"),
    // Channel binding.
    case("right", "bob", "sslmode=require&channel_binding=require", NOT_VERIFIED),
    case("right", "bob", "sslmode=require&channel_binding=disable", NOT_VERIFIED),
    case("right", "bob", "sslmode=allow&channel_binding=require", "the connection is not encrypted"),
    case("right", "trusted", "sslmode=require", NOT_VERIFIED),
    case("right", "trusted", "sslmode=require&channel_binding=require", NOT_BOUND),
    case("right", "hashed", "sslmode=require", NOT_VERIFIED),
    case("right", "hashed", "sslmode=require&channel_binding=require", NOT_BOUND),
    case("right", "clear", "sslmode=require", NOT_VERIFIED),
    case("right", "clear", "sslmode=require&channel_binding=require", NOT_BOUND),
    // Nobody listens within this machine.
    case("right", "clear", "sslmode=disable", "plain"),
    // The client's certificate.
    case("right", "ann", "sslmode=require", "client certificate"),
    case("right", "ann", "sslmode=require&sslcert=~/ann.crt&sslkey=~/ann.key", NOT_VERIFIED),
    case("right", "ann", "sslmode=require&sslcert=~/stranger.crt&sslkey=~/stranger.key", "the server refuses the encrypted connection"),
    case("right", "ann", "sslmode=require&sslcert=~/ann.crt&sslkey=~/right.key", "do not go together"),
    case("right", "ann", "sslmode=require&sslcert=~/ann.crt&sslkey=~/open.key", "others may read it"),
    case("wrong-host", "bob", "sslmode=require&channel_binding=require", NOT_VERIFIED),
    case("wrong-host", "bob", "sslmode=verify-ca&sslrootcert=~/ca.crt", CA_VERIFIED),
    case("wrong-host", "bob", "sslmode=verify-full&sslrootcert=~/ca.crt", "elsewhere.example"),
    case("untrusted", "bob", "sslmode=require", NOT_VERIFIED),
    case("untrusted", "bob", "sslmode=require&sslrootcert=~/ca.crt", FROM_NOBODY),
    case("untrusted", "bob", "sslmode=verify-ca&sslrootcert=~/ca.crt", FROM_NOBODY),
    case("untrusted", "bob", "sslmode=prefer&sslrootcert=~/ca.crt", "plain"),
    case("version-1", "bob", "sslmode=require", NOT_VERIFIED),
    case("version-1", "bob", "sslmode=require&channel_binding=require", "cannot be bound to"),
    case("version-1", "bob", "sslmode=verify-ca&sslrootcert=~/ca.crt", "version 1 of X.509"),
    case("below", "bob", "sslmode=verify-full&sslrootcert=~/ca.crt", FROM_NOBODY),
    case("below", "bob", "sslmode=verify-full&sslrootcert=~/between.crt", FROM_NOBODY),
    case("below", "bob", "sslmode=verify-full&sslrootcert=~/chain.crt", VERIFIED),
    case("itself", "bob", "sslmode=verify-full&sslrootcert=~/itself.crt", VERIFIED),
    case("itself", "bob", "sslmode=verify-ca&sslrootcert=~/ca.crt", "not accepted"),
    case("expired", "bob", "sslmode=verify-full&sslrootcert=~/expired.crt", "it has expired"),
    case("none", "bob", "sslmode=prefer", "plain"),
    case("none", "bob", "sslmode=require", "does not encrypt"),
    case("none", "bob", "sslmode=verify-full&sslrootcert=~/ca.crt", "does not encrypt"),
    case("none", "ssl_only", "sslmode=allow", "; encrypted: the server does not encrypt"),
];

/// Certificates that are tried in the long form only.
const RARE: [&str; 4] = ["version-1", "below", "itself", "expired"];

#[test]
fn every_mode_against_every_certificate() {
    if !spindle_harness::is_long_or_skip() {
        return;
    }
    let Some(lab) = Lab::open() else {
        return;
    };
    let open = lab.certificates.path("open.key");
    fs::copy(lab.certificates.path("ann.key"), &open).unwrap();
    let mode = std::os::unix::fs::PermissionsExt::from_mode(0o644);
    fs::set_permissions(&open, mode).unwrap();
    let mut server = "right";
    let mut wrong = Vec::new();
    // Each certificate has the server read its settings again.
    let is_thorough = spindle_harness::is_thorough();
    let is_tried = |case: &&Case| is_thorough || !RARE.contains(&case.server);
    for case in CASES.iter().filter(is_tried) {
        if server != case.server {
            server = case.server;
            lab.have(server);
        }
        let said = lab.look(case);
        if !said.contains(case.said) {
            wrong.push(format!(
                "{} {} {}: {said}",
                case.server, case.user, case.query
            ));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    lab.have("right");
    let url = format!("postgres://bob@{}/postgres", lab.host);
    let said = look(&url, "something else");
    assert!(said.contains("password authentication failed"), "{said}");
    let is_told_once = !said.contains("not encrypted");
    assert!(is_told_once, "{said}");
}
