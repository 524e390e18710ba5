//! The workloads of transactions in SQL on every database that is installed here: each is loaded, worked on by several
//! clients, and checked; and every check finds what was planted for it. What is not installed is left out, with a line.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use spindle_engines::engine::RunningEngine;
use spindle_engines::sql::{
    Purpose, RunningServer, Server, ServerKind, ServerRequest, ServerStop, SqlUnderTest,
    create_and_load, server,
};
use spindle_engines::{EngineError, ErrorKind};
use spindle_io::Env;
use spindle_io::real::{RealEnv, block_on};
use spindle_layout::TreeDirectories;
use spindle_workload::Acknowledged;
use spindle_workload::driver::{Behaviour, KindRecord};
use spindle_workload::sql::{Dialect, Junk, Sizes, SqlWorkload, Tpcb, Tpcc, TpccMix};

use crate::progress::wait_for;

const CLIENTS: usize = 4;
const SEED: u64 = 7;
const JUNK_ROWS: u64 = 10_010;

/// Transactions that show what a workload does.
const ENOUGH: u64 = 100;

/// The smallest database of TPC-C in which every kind of transaction finds what it needs.
const FEW: Sizes = Sizes {
    items: 500,
    customers: 60,
};

pub fn request(server: &dyn Server) -> ServerRequest {
    ServerRequest {
        settings: BTreeMap::new(),
        // Where another MariaDB than that of PATH is to be tested, or a MySQL.
        bin_dir: (server.dialect() == Dialect::MariaDb)
            .then(|| std::env::var_os("SPINDLE_MARIADB_BIN_DIR").map(Into::into))
            .flatten(),
        buffer_cache_bytes: 64 << 20,
        data_bytes: 64 << 20,
        clients: CLIENTS as u32,
        io: None,
        database: None,
    }
}

/// The databases that are there.
pub fn databases() -> Vec<(ServerKind, &'static dyn Server)> {
    let kinds = [
        ServerKind::Sqlite,
        ServerKind::Postgres,
        ServerKind::MariaDb,
    ];
    let mut found = Vec::new();
    for kind in kinds {
        match server(kind).examine(&request(server(kind))) {
            Ok(_) => found.push((kind, server(kind))),
            Err(reason) if reason.kind() == ErrorKind::Unavailable => {
                spindle_harness::skip(format_args!("on {kind:?}: {reason}"));
            }
            Err(error) => panic!("{kind:?}: {error}"),
        }
    }
    found
}

/// A database with a workload loaded, in a directory that goes with it.
pub struct Loaded {
    pub server: Arc<dyn RunningServer>,
    pub directories: TreeDirectories,
    _place: tempfile::TempDir,
}

impl Loaded {
    pub fn with(server: &dyn Server, workload: &dyn SqlWorkload) -> Loaded {
        let (place, directories) = empty();
        create_and_load(
            server,
            &request(server),
            &directories,
            workload,
            &Arc::default(),
        )
        .unwrap();
        let server = server.start(&request(server), &directories, Purpose::Trial);
        Loaded {
            server: server.unwrap(),
            directories,
            _place: place,
        }
    }
}

/// Directories for a database, in a place that goes when it is dropped.
pub fn empty() -> (tempfile::TempDir, TreeDirectories) {
    let place = tempfile::tempdir().unwrap();
    open_to_all(place.path());
    let directories = TreeDirectories::within(|_| place.path().to_owned());
    directories.make().unwrap();
    (place, directories)
}

/// Servers run as users of their own.
fn open_to_all(directory: &Path) {
    use std::os::unix::fs::PermissionsExt;
    let open = std::fs::Permissions::from_mode(0o755);
    std::fs::set_permissions(directory, open).unwrap();
}

fn tpcb() -> Arc<dyn SqlWorkload> {
    Arc::new(Tpcb::new(1, false))
}

fn tpcc(procedures: bool) -> Arc<dyn SqlWorkload> {
    Arc::new(Tpcc::new(2, TpccMix::STANDARD, procedures, SEED).with_sizes(FEW))
}

fn junk(procedure: bool) -> Arc<dyn SqlWorkload> {
    Arc::new(Junk {
        rows: JUNK_ROWS,
        commit_every: 20,
        procedure,
    })
}

/// What clients did, and what the check says.
struct Worked {
    committed: u64,
    errors: u64,
    by_kind: Vec<(String, u64)>,
    promised: Vec<Acknowledged>,
    check: Result<String, EngineError>,
}

/// Lets clients work until each kind of transaction was carried out, or a minute has passed.
fn work(loaded: &Loaded, workload: &Arc<dyn SqlWorkload>) -> Worked {
    let env: Arc<dyn Env> = RealEnv::new(SEED);
    let (server, directories) = (Arc::clone(&loaded.server), loaded.directories.clone());
    let engine = SqlUnderTest::new(server, Arc::clone(workload), directories);
    let behaviour = Behaviour {
        clients: CLIENTS,
        ..Behaviour::default()
    };
    let mut running = engine.start_clients(&env, behaviour);
    running.measure(true);
    std::thread::sleep(Duration::from_millis(1500));
    wait_for(&running, ENOUGH);
    let until = Instant::now() + Duration::from_secs(60);
    let is_missing = |kind: &KindRecord| kind.latencies.count() == 0;
    while running.by_kind().iter().any(is_missing) && Instant::now() < until {
        std::thread::sleep(Duration::from_millis(5));
    }
    block_on(running.stop()).unwrap();
    let by_kind = running.by_kind();
    let promised = running.acknowledged();
    Worked {
        committed: running.committed(),
        errors: running.errors(),
        by_kind: by_kind
            .iter()
            .map(|kind| (kind.kind.clone(), kind.latencies.count()))
            .collect(),
        check: block_on(engine.check(promised.clone())),
        promised,
    }
}

/// Lets clients work; everything is found to be in order, and then what `faults` do is found, each on its own.
pub fn works_and_faults_are_found(
    server: &dyn Server,
    workload: &Arc<dyn SqlWorkload>,
    faults: &[(&[&str], &str)],
) {
    let loaded = Loaded::with(server, &**workload);
    let worked = work(&loaded, workload);
    let name = workload.name();
    worked.check.unwrap_or_else(|loss| panic!("{name}: {loss}"));
    assert_eq!(worked.errors, 0, "{name}");
    let counted: u64 = worked.by_kind.iter().map(|(_, count)| count).sum();
    // Some may have ended before they were measured.
    assert!(counted <= worked.committed, "{name}");
    assert!(counted > ENOUGH / 5, "{name}: {counted}");
    let mut connection = loaded.server.connect().unwrap();
    for (changes, says) in faults {
        connection.begin().unwrap();
        for change in *changes {
            connection.run(change).unwrap();
        }
        let found = workload.check(&mut *connection, &worked.promised);
        connection.rollback().unwrap();
        let found = found.expect_err(changes[0]).to_string();
        assert!(found.contains(says), "{changes:?}: {found}");
    }
    let again = workload.check(&mut *connection, &worked.promised);
    assert!(again.is_ok(), "{name}: a fault was not undone");
    drop(connection);
    loaded.server.stop(ServerStop::Kill).unwrap();
}

#[test]
fn tpcb_keeps_its_balances_and_loses_nothing() {
    if !spindle_harness::is_long_or_skip() {
        return;
    }
    for (_, server) in databases() {
        works_and_faults_are_found(
            server,
            &tpcb(),
            &[
                (
                    &["update accounts set abalance = abalance + 1 where aid = 7"],
                    "do not agree",
                ),
                (
                    &["update tellers set tbalance = tbalance - 1 where tid = 3"],
                    "do not agree",
                ),
                (&["update history set delta = delta + 1"], "do not agree"),
                // Of every client one is gone without a trace but for its number.
                (
                    &["update history set number = number + 1"],
                    "of those up to",
                ),
                (
                    &["update history set client = client + 100"],
                    "was promised",
                ),
                (
                    &[
                        "insert into history (tid, bid, aid, delta, client, number) select tid, bid, aid, 0, client, number from history where number = 1",
                    ],
                    "more than once",
                ),
            ],
        );
    }
}

#[test]
fn selects_of_tpcb_change_nothing() {
    if !spindle_harness::is_long_or_skip() {
        return;
    }
    for (_, server) in databases() {
        let select: Arc<dyn SqlWorkload> = Arc::new(Tpcb::new(1, true));
        let loaded = Loaded::with(server, &*select);
        let worked = work(&loaded, &select);
        assert!(worked.committed >= ENOUGH && worked.errors == 0);
        let said = worked.check.unwrap();
        assert!(said.starts_with("0 transactions"), "{said}");
        loaded.server.stop(ServerStop::Kill).unwrap();
    }
}

/// Each breaks one condition of consistency alone, or loses something that was promised.
const FAULTS_OF_TPCC: [(&[&str], &str); 14] = [
    (
        &["update warehouse set w_ytd = w_ytd + 1 where w_id = 1"],
        "consistency 1,",
    ),
    (
        &["update district set d_next_o_id = d_next_o_id + 1 where d_w_id = 1 and d_id = 1"],
        "consistency 2,",
    ),
    (
        &["insert into new_order (no_w_id, no_d_id, no_o_id) values (1, 1, 999999)"],
        "consistency 2,",
    ),
    (
        &["insert into new_order (no_w_id, no_d_id, no_o_id) values (2, 2, -5)"],
        "consistency 3,",
    ),
    (
        &[
            "delete from order_line where ol_w_id = 1 and ol_d_id = 1 and ol_o_id = 1 and ol_number = 1",
        ],
        "consistency 4,",
    ),
    (
        &[
            "delete from order_line where ol_w_id = 1 and ol_d_id = 1 and ol_o_id = 1 and ol_number = 5",
            "insert into order_line (ol_w_id, ol_d_id, ol_o_id, ol_number, ol_i_id, ol_supply_w_id, ol_quantity, ol_amount, \
           ol_dist_info, ol_delivery_d) values (1, 1, 2, 99, 1, 1, 1, 0, 'x', current_timestamp)",
        ],
        "consistency 6,",
    ),
    (
        &["update orders set o_carrier_id = null where o_w_id = 1 and o_d_id = 1 and o_id = 1"],
        "consistency 5,",
    ),
    (
        &[
            "update order_line set ol_delivery_d = null where ol_w_id = 1 and ol_d_id = 1 and ol_o_id = 1",
        ],
        "consistency 7,",
    ),
    (
        &["delete from history where h_c_w_id = 1 and h_c_d_id = 1 and h_c_id = 1"],
        "consistency 8,",
    ),
    (
        &[
            "update district set d_ytd = d_ytd + 5 where d_w_id = 1 and d_id = 1",
            "update district set d_ytd = d_ytd - 5 where d_w_id = 1 and d_id = 2",
        ],
        "consistency 9,",
    ),
    (
        &[
            "update customer set c_balance = c_balance + 1 where c_w_id = 1 and c_d_id = 1 and c_id = 1",
        ],
        "consistency 10",
    ),
    (
        &[
            "update customer set c_delivery_cnt = c_delivery_cnt + 1 where c_w_id = 1 and c_d_id = 1 and c_id = 1",
        ],
        "consistency 11",
    ),
    (
        &["update orders set o_number = o_number + 1000000"],
        "ended with transaction",
    ),
    (&["update history set h_client = h_client + 100"], "client "),
];

#[test]
fn tpcc_stays_consistent_and_loses_nothing() {
    if !spindle_harness::is_long_or_skip() {
        return;
    }
    for (_, server) in databases() {
        works_and_faults_are_found(server, &tpcc(false), &FAULTS_OF_TPCC);
    }
}

#[test]
fn tpcc_does_the_same_as_procedures() {
    if !spindle_harness::is_long_or_skip() {
        return;
    }
    for (kind, server) in databases() {
        if kind != ServerKind::Sqlite {
            works_and_faults_are_found(server, &tpcc(true), &FAULTS_OF_TPCC);
        }
    }
}

#[test]
fn every_kind_of_tpcc_is_carried_out() {
    let (_, server) = databases()[0];
    let even = TpccMix {
        new_order: 20,
        payment: 20,
        order_status: 20,
        delivery: 20,
        stock_level: 20,
    };
    for is_delivery_deferred in [false, true] {
        let tpcc = Tpcc::new(1, even, false, SEED)
            .with_sizes(FEW)
            .with_deferred_delivery(is_delivery_deferred);
        let workload: Arc<dyn SqlWorkload> = Arc::new(tpcc);
        let loaded = Loaded::with(server, &*workload);
        let worked = work(&loaded, &workload);
        worked.check.unwrap();
        assert_eq!(worked.promised.len(), CLIENTS);
        assert_eq!(worked.by_kind.len(), 5);
        for (kind, count) in worked.by_kind {
            assert!(count > 0, "{kind}");
        }
        loaded.server.stop(ServerStop::Kill).unwrap();
    }
}

#[test]
fn junk_has_the_rows_of_whole_commits() {
    if !spindle_harness::is_long_or_skip() {
        return;
    }
    for (kind, server) in databases() {
        for procedure in [false, true] {
            if procedure && kind == ServerKind::Sqlite {
                continue;
            }
            works_and_faults_are_found(
                server,
                &junk(procedure),
                &[
                    (
                        &["delete from junk where c1 = 7"],
                        "not those of whole commits",
                    ),
                    (&["delete from junk where c1 <= 20"], "was promised"),
                    (&["delete from junk"], "was promised"),
                    (&["update junk set c3 = -c1"], "do not agree"),
                ],
            );
        }
    }
}
