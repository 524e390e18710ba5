//! Authorities and certificates, made with `openssl` (https://docs.openssl.org/3.0/man1/openssl-x509/).

use std::fs;
use std::os::unix::fs::{PermissionsExt, chown};
use std::path::{Path, PathBuf};
use std::process::Command;

/// A directory of certificates `NAME.crt` with their keys `NAME.key`:
///
/// | name | is |
/// | --- | --- |
/// | `ca` | the authority that is trusted |
/// | `right` | a server's, from it, for the host |
/// | `wrong-host` | the same for another host |
/// | `untrusted` | for the host, from another authority |
/// | `version-1` | from `ca`, of version 1, as `openssl x509 -req` makes it without extensions |
/// | `itself` | for the host, signed by itself |
/// | `expired` | the same, and its time is over |
/// | `ann` | a client's, from `ca` |
/// | `between` | an authority that `ca` signed; `chain` holds both |
/// | `below` | a server's, signed by `between` |
/// | `stranger` | a client's, from another authority |
pub struct Certificates {
    directory: tempfile::TempDir,
}

impl Certificates {
    /// Makes them; `None`, and says so, when there is no `openssl`.
    pub fn for_host(host: &str) -> Option<Certificates> {
        if Command::new("openssl").arg("version").output().is_err() {
            spindle_harness::skip("there is no openssl to make certificates with");
            return None;
        }
        let directory = tempfile::tempdir().unwrap();
        // Servers may run as other users.
        let open = fs::Permissions::from_mode(0o755);
        fs::set_permissions(directory.path(), open).unwrap();
        let made = Certificates { directory };
        let for_host = format!("subjectAltName=IP:{host}");
        made.by_itself("ca", &["-days", "2"]);
        made.by_itself("other-ca", &["-days", "2"]);
        made.by_itself("itself", &["-days", "2", "-addext", &for_host]);
        let over = [
            "-not_before",
            "20200101000000Z",
            "-not_after",
            "20200201000000Z",
        ];
        made.expired(&for_host, &over);
        made.signed("right", "ca", Some(&for_host));
        made.signed(
            "wrong-host",
            "ca",
            Some("subjectAltName=DNS:elsewhere.example"),
        );
        made.signed("untrusted", "other-ca", Some(&for_host));
        made.signed("version-1", "ca", None);
        made.signed("between", "ca", Some("basicConstraints=critical,CA:TRUE"));
        made.signed("below", "between", Some(&for_host));
        let chain = ["between.crt", "ca.crt"].map(|name| fs::read(made.path(name)).unwrap());
        fs::write(made.path("chain.crt"), chain.concat()).unwrap();
        made.signed("ann", "ca", Some("subjectAltName=DNS:ann"));
        made.signed("stranger", "other-ca", Some("subjectAltName=DNS:ann"));
        Some(made)
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    pub fn directory(&self) -> &Path {
        self.directory.path()
    }

    fn openssl(&self, arguments: &[&str]) {
        let mut command = Command::new("openssl");
        let output = command.args(arguments).current_dir(self.directory.path());
        let output = output.output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "openssl {arguments:?}: {said}");
    }

    fn request(&self, name: &str, more: &[&str]) {
        let (key, subject) = (format!("{name}.key"), format!("/CN={name}"));
        let mut arguments = vec![
            "req",
            "-newkey",
            "ec",
            "-pkeyopt",
            "ec_paramgen_curve:prime256v1",
        ];
        arguments.extend(["-nodes", "-keyout", &key, "-subj", &subject]);
        arguments.extend(more);
        self.openssl(&arguments);
        let closed = fs::Permissions::from_mode(0o600);
        fs::set_permissions(self.path(&key), closed).unwrap();
    }

    fn by_itself(&self, name: &str, more: &[&str]) {
        let certificate = format!("{name}.crt");
        let mut arguments = vec!["-x509", "-out", &certificate];
        arguments.extend(more);
        self.request(name, &arguments);
    }

    /// `openssl ca` alone signs for times of one's choice in all versions.
    fn expired(&self, extension: &str, over: &[&str]) {
        self.request("expired", &["-out", "expired.csr", "-addext", extension]);
        fs::write(self.path("index"), "").unwrap();
        fs::write(self.path("serial"), "01\n").unwrap();
        let settings = "[ca]\ndefault_ca=it\n[it]\ndatabase=index\nserial=serial\nnew_certs_dir=.\ndefault_md=sha256\n\
                        policy=any\ncopy_extensions=copy\n[any]\ncommonName=supplied\n";
        fs::write(self.path("settings"), settings).unwrap();
        let [from, until] = [over[1], over[3]];
        self.openssl(&[
            "ca",
            "-batch",
            "-notext",
            "-config",
            "settings",
            "-selfsign",
            "-keyfile",
            "expired.key",
            "-in",
            "expired.csr",
            "-out",
            "expired.crt",
            "-startdate",
            from,
            "-enddate",
            until,
        ]);
    }

    fn signed(&self, name: &str, authority: &str, extension: Option<&str>) {
        let [request, certificate, extensions] =
            ["csr", "crt", "ext"].map(|kind| format!("{name}.{kind}"));
        let [by, key] = ["crt", "key"].map(|kind| format!("{authority}.{kind}"));
        self.request(name, &["-out", &request]);
        let mut arguments = vec!["x509", "-req", "-in", &request, "-out", &certificate];
        arguments.extend(["-CA", &by, "-CAkey", &key, "-CAcreateserial", "-days", "2"]);
        if let Some(extension) = extension {
            fs::write(self.path(&extensions), extension).unwrap();
            arguments.extend(["-extfile", &extensions]);
        }
        self.openssl(&arguments);
    }

    /// Puts a certificate and its key where a server looks, as the owner of that directory.
    pub fn put(&self, name: &str, into: &Path) {
        use std::os::unix::fs::MetadataExt;
        let owner = fs::metadata(into).unwrap();
        for kind in ["crt", "key"] {
            let to = into.join(format!("server.{kind}"));
            fs::copy(self.path(&format!("{name}.{kind}")), &to).unwrap();
            chown(&to, Some(owner.uid()), Some(owner.gid())).unwrap();
        }
        let authority = into.join("clients.crt");
        fs::copy(self.path("ca.crt"), authority).unwrap();
    }
}
