//! Where a test's cluster lies, and what must not be left of it.

use std::collections::BTreeMap;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustix::process::{Pid, Signal, kill_process};
use spindle_engines::sql::{
    Address, Purpose, RunningServer, Schema, SchemaKind, Server, ServerKind, ServerRequest,
    create_and_load, server,
};
use spindle_layout::TreeDirectories;
use spindle_workload::sql::{RowsInSql, SqlWorkload};
use spindle_workload::{OltpMix, OltpMixSettings};

pub const CLIENTS: usize = 4;

pub fn postgres() -> &'static dyn Server {
    server(ServerKind::Postgres)
}

/// A request for a small server with these settings.
pub fn request(settings: &[(&str, &str)]) -> ServerRequest {
    let settings = settings.iter();
    ServerRequest {
        settings: settings
            .map(|(name, value)| (name.to_string(), value.to_string()))
            .collect::<BTreeMap<_, _>>(),
        bin_dir: None,
        buffer_cache_bytes: 8 << 20,
        data_bytes: 8 << 20,
        clients: CLIENTS as u32,
        io: None,
        database: None,
    }
}

/// Whether there is a PostgreSQL to test with; when not, the test says so.
pub fn is_installed() -> bool {
    match postgres().examine(&request(&[])) {
        Ok(_) => true,
        Err(error) => {
            spindle_harness::skip(error);
            false
        }
    }
}

pub fn workload() -> Arc<dyn SqlWorkload> {
    let mix = OltpMix {
        data_bytes: 4 << 20,
        clients: CLIENTS as u64,
        settings: OltpMixSettings {
            read_percent: 40,
            row_operations: 5,
        },
    };
    Arc::new(RowsInSql::new(Arc::new(mix), 7))
}

/// A directory for clusters. At its end no process may work in it.
pub struct Home {
    directory: tempfile::TempDir,
}

impl Home {
    pub fn new() -> Home {
        let directory = tempfile::tempdir().unwrap();
        // The server may run as another user.
        let open = std::fs::Permissions::from_mode(0o755);
        std::fs::set_permissions(directory.path(), open).unwrap();
        Home { directory }
    }

    pub fn path(&self) -> &Path {
        self.directory.path()
    }

    /// Empty directories for a cluster.
    pub fn directories(&self, name: &str) -> TreeDirectories {
        let top = self.path().join(name);
        std::fs::create_dir(&top).unwrap();
        let directories = TreeDirectories::within(|_| top.clone());
        directories.make().unwrap();
        directories
    }

    /// A cluster without tables, and its server at work.
    pub fn started(&self, request: &ServerRequest) -> (TreeDirectories, Arc<dyn RunningServer>) {
        let directories = self.directories("made");
        postgres().create(request, &directories).unwrap();
        let running = start(request, &directories);
        (directories, running)
    }

    /// A cluster with the workload loaded.
    pub fn loaded(&self, name: &str, request: &ServerRequest) -> TreeDirectories {
        let directories = self.directories(name);
        create_and_load(
            postgres(),
            request,
            &directories,
            &*workload(),
            &Arc::default(),
        )
        .unwrap();
        directories
    }

    /// Every process that works in this directory.
    pub fn processes(&self) -> Vec<Pid> {
        let top = self.path().canonicalize().unwrap();
        let id_of = |process: PathBuf| {
            let id: i32 = process.file_name()?.to_str()?.parse().ok()?;
            let works_in = std::fs::read_link(process.join("cwd")).ok()?;
            works_in
                .starts_with(&top)
                .then(|| Pid::from_raw(id))
                .flatten()
        };
        let processes = std::fs::read_dir("/proc").unwrap().flatten();
        processes.filter_map(|entry| id_of(entry.path())).collect()
    }

    /// Kills them all at once, as a crash does.
    pub fn kill(&self) {
        for process in self.processes() {
            // It may have ended by itself, as its parent has.
            let _ = kill_process(process, Signal::KILL);
        }
    }
}

impl Drop for Home {
    fn drop(&mut self) {
        let left = self.processes();
        if !left.is_empty() {
            self.kill();
            assert!(std::thread::panicking(), "processes were left: {left:?}");
        }
    }
}

/// The cluster in these directories, as a run that was given its address sees it: what it would make there.
pub fn place_on(directories: &TreeDirectories, kind: SchemaKind, name: &str) -> Schema {
    let socket = directories.data.join("run").display().to_string();
    let password = std::fs::read_to_string(directories.data.join("password")).unwrap();
    let url = format!(
        "postgres://spindle:{}@localhost/postgres?host={socket}",
        password.trim()
    );
    Schema {
        address: Address::parse(&url).unwrap(),
        password_variable: None,
        password: None,
        kind,
        name: name.to_owned(),
        token: "ours".to_owned(),
    }
}

pub fn start(request: &ServerRequest, directories: &TreeDirectories) -> Arc<dyn RunningServer> {
    let started = postgres().start(request, directories, Purpose::Trial);
    started.unwrap_or_else(|error| panic!("{error}"))
}
