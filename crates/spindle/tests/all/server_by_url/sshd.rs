//! A machine that is reached by `ssh`: here this one, by the test's own daemon on a separate port, with keys of
//! its own. Programs that are brought there find a directory of the test's own to lie in.

use std::fs;
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

const DAEMON: &str = "/usr/sbin/sshd";
/// Where the daemon's first process lets others of it live (Debian's /run/sshd).
const SEPARATED: &str = "/run/sshd";
const PATIENCE: Duration = Duration::from_secs(120);

pub struct Sshd {
    daemon: Child,
    pub port: u16,
    top: PathBuf,
}

impl Sshd {
    /// The daemon, which keeps what it needs below a directory; `None`, and says so, when there is none.
    pub fn below(top: &Path) -> Option<Sshd> {
        Sshd::with(top, "")
    }

    /// The same with lines of its own in the daemon's configuration.
    pub fn with(top: &Path, more: &str) -> Option<Sshd> {
        let is_root = rustix::process::geteuid().is_root();
        if !Path::new(DAEMON).exists() || !is_root {
            spindle_harness::skip(format!("needs root and {DAEMON} (openssh-server)"));
            return None;
        }
        fs::create_dir_all(SEPARATED).unwrap();
        let top = top.join("ssh");
        for directory in ["", "bin", "there"] {
            fs::create_dir_all(top.join(directory)).unwrap();
        }
        for key in ["host-key", "user-key"] {
            let made = Command::new("ssh-keygen")
                .args(["-q", "-t", "ed25519", "-N", "", "-f"])
                .arg(top.join(key))
                .status();
            assert!(made.unwrap().success(), "{key}");
        }
        // Another program may take the port before the daemon does.
        let daemon = (0..5).find_map(|_| Sshd::begun(&top, more, free_port()));
        Some(daemon.expect("a daemon that listens"))
    }

    /// A daemon at this port; `None` when it ended before it listened.
    fn begun(top: &Path, more: &str, port: u16) -> Option<Sshd> {
        let of_host = fs::read_to_string(top.join("host-key.pub")).unwrap();
        let at = |name: &str| top.join(name).display().to_string();
        let files = [
            (
                "sshd_config",
                format!(
                    "ListenAddress 127.0.0.1:{port}\nHostKey {}\nAuthorizedKeysFile {}\nStrictModes no\nUsePAM no\n\
                     PidFile none\nPasswordAuthentication no\nKbdInteractiveAuthentication no\nSetEnv TMPDIR={}\n{more}\n",
                    at("host-key"),
                    at("user-key.pub"),
                    at("there")
                ),
            ),
            ("known_hosts", format!("[127.0.0.1]:{port} {of_host}")),
            (
                "config",
                format!(
                    "IdentityFile {}\nIdentitiesOnly yes\nUserKnownHostsFile {}\nStrictHostKeyChecking yes\n",
                    at("user-key"),
                    at("known_hosts")
                ),
            ),
        ];
        for (name, text) in files {
            fs::write(top.join(name), text).unwrap();
        }
        let client = format!("#!/bin/sh\nexec /usr/bin/ssh -F {} \"$@\"\n", at("config"));
        spindle_harness::write_program(&top.join("bin/ssh"), &client);
        let daemon = Command::new(DAEMON)
            .args(["-D", "-e", "-f"])
            .arg(top.join("sshd_config"))
            .stdin(Stdio::null())
            .stderr(fs::File::create(top.join("log")).unwrap())
            .spawn();
        let mut sshd = Sshd {
            daemon: daemon.unwrap(),
            port,
            top: top.to_owned(),
        };
        sshd.listens().then_some(sshd)
    }

    fn listens(&mut self) -> bool {
        let log = || fs::read_to_string(self.top.join("log")).unwrap_or_default();
        let began = Instant::now();
        while !log().contains("Server listening") {
            if self.daemon.try_wait().unwrap().is_some() {
                println!("{}", log());
                return false;
            }
            assert!(began.elapsed() < PATIENCE, "{}", log());
            std::thread::sleep(Duration::from_millis(10));
        }
        true
    }

    /// As an experiment file names it.
    pub fn host(&self) -> String {
        format!("ssh://127.0.0.1:{}", self.port)
    }

    /// The key that it lets in.
    pub fn key(&self) -> PathBuf {
        self.top.join("user-key")
    }

    /// Has its client know another host, too, by the port through which it is come to. The key for that is the caller's
    /// to name.
    pub fn know(&self, other: &Sshd, port: u16) {
        let known = |of: &Sshd| fs::read_to_string(of.top.join("known_hosts")).unwrap();
        let of_other = known(other).replace(&format!("]:{} ", other.port), &format!("]:{port} "));
        fs::write(self.top.join("known_hosts"), known(self) + &of_other).unwrap();
    }

    /// A search path that has a client which knows it.
    pub fn path(&self) -> String {
        let path = std::env::var("PATH").unwrap_or_default();
        format!("{}:{path}", self.top.join("bin").display())
    }

    /// The programs that were brought there, by their processes.
    pub fn agents(&self) -> Vec<u32> {
        let there = self.top.join("there");
        let processes = fs::read_dir("/proc").unwrap().flatten();
        let numbers = processes.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
        let is_agent = |process: &u32| {
            let line = fs::read(format!("/proc/{process}/cmdline")).unwrap_or_default();
            let line = String::from_utf8_lossy(&line).into_owned();
            let mut words = line.split('\0');
            words
                .next()
                .is_some_and(|program| Path::new(program).starts_with(&there))
        };
        numbers.filter(is_agent).collect()
    }

    /// Waits until there are this many of them.
    pub fn wait_for_agents(&self, count: usize) -> Vec<u32> {
        let began = Instant::now();
        loop {
            let agents = self.agents();
            if agents.len() == count {
                return agents;
            }
            assert!(began.elapsed() < PATIENCE, "{agents:?}, not {count}");
            std::thread::sleep(Duration::from_millis(10));
        }
    }

    /// What lies there.
    pub fn files(&self) -> Vec<String> {
        let entries = fs::read_dir(self.top.join("there")).unwrap().flatten();
        entries
            .map(|entry| entry.file_name().display().to_string())
            .collect()
    }

    /// Nothing is there any more, in a moment at the latest.
    pub fn assert_nothing_stays(&self) {
        self.wait_for_agents(0);
        let began = Instant::now();
        while !self.files().is_empty() {
            assert!(began.elapsed() < PATIENCE, "{:?}", self.files());
            std::thread::sleep(Duration::from_millis(10));
        }
    }
}

impl Drop for Sshd {
    fn drop(&mut self) {
        for agent in self.agents() {
            let agent = rustix::process::Pid::from_raw(agent as i32);
            // It may have ended by itself.
            let _ = agent
                .map(|agent| rustix::process::kill_process(agent, rustix::process::Signal::KILL));
        }
        let _ = self.daemon.kill();
        let _ = self.daemon.wait();
    }
}

/// A port that nothing listens on; the daemon takes it again at once.
fn free_port() -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    listener.local_addr().unwrap().port()
}
