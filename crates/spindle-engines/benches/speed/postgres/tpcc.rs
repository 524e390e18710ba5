//! TPC-C with client-side SQL beside go-tpc and BenchBase, four warehouses and four clients each, every program on the
//! tables it loads itself; and how fast each loads them (ours with making the cluster, the others into one that is
//! there). By procedures beside HammerDB, each calling its own, in HammerDB's mix. The peers are used where they are
//! found: go-tpc on the path, BenchBase (built for PostgreSQL, `benchbase.jar`) and HammerDB (its source) in the
//! directories that the environment variables BENCHBASE and HAMMERDB name.

use std::path::Path;
use std::time::Instant;

use spindle_engines::sql::{Purpose, ServerKind, create_and_load, server};
use spindle_workload::sql::{Tpcc, TpccMix};

use super::benchbase::BenchBase;
use super::go_tpc::GoTpc;
use super::hammerdb::HammerDb;
use super::{CACHE_BYTES, Private, Reached, add_pairs, ours};
use crate::Pace;
use crate::figures::{Figure, Figures, Goal};

pub(super) const WAREHOUSES: u32 = 4;
pub(super) const CLIENTS: usize = 4;
pub(super) const SEED: u64 = 1;

/// Another program that runs TPC-C on the same server.
pub(super) trait Peer {
    fn name(&self) -> &'static str;

    /// Makes its tables in its own database; returns seconds.
    fn load(&self, private: &Private) -> f64;

    /// Runs its clients for this many seconds.
    fn run(&self, private: &Private, measure_s: u64) -> Reached;
}

pub fn run(pace: Pace, directory: &Path, figures: &mut Figures) {
    let peers: [Option<Box<dyn Peer>>; 2] = [
        GoTpc::find().map(|peer| Box::new(peer) as Box<dyn Peer>),
        BenchBase::find(directory).map(|peer| Box::new(peer) as Box<dyn Peer>),
    ];
    let hammerdb = HammerDb::find();
    // The clients and tables of ours, of two programs, and of the two ways of a third.
    let Some(request) = Private::request(
        ServerKind::Postgres,
        5 * CLIENTS,
        CACHE_BYTES,
        5 * Tpcc::loaded_bytes(WAREHOUSES),
    ) else {
        return;
    };
    let directories = Private::directories(directory);
    let workload = |mix, procedures| Tpcc::new(WAREHOUSES, mix, procedures, SEED);
    let postgres = server(ServerKind::Postgres);
    let began = Instant::now();
    let loaded = workload(TpccMix::STANDARD, true);
    create_and_load(
        postgres,
        &request,
        &directories,
        &loaded,
        &std::sync::Arc::default(),
    )
    .expect("it is loaded");
    let load_s = began.elapsed().as_secs_f64();
    BenchBase::let_in(&directories.data);
    let loading = Private::start(
        ServerKind::Postgres,
        &request,
        directories.clone(),
        Purpose::Load,
    );
    let rows = rows(&loading);
    for peer in peers.iter().flatten() {
        figures.add(Figure::of_pairs(
            "PostgreSQL TPC-C loaded with indexes, rows/s".to_owned(),
            peer.name(),
            &[(rows / load_s, rows / peer.load(&loading))],
            (peer.name() == BenchBase::NAME).then_some(Goal::AtLeast(2.5)),
        ));
    }
    for way in &hammerdb {
        way.build(&loading);
    }
    loading.end();
    let private = Private::start(ServerKind::Postgres, &request, directories, Purpose::Trial);
    // A program that is compiled while it runs needs some seconds for it.
    let measure = pace.measure * 4;
    let engine = private.engine(workload(TpccMix::STANDARD, false));
    ours(&engine, CLIENTS, pace.warm_up);
    for peer in peers.into_iter().flatten() {
        let theirs = || peer.run(&private, measure.as_secs().max(1));
        theirs();
        let pairs: Vec<(Reached, Reached)> = (0..pace.pairs)
            .map(|_| (ours(&engine, CLIENTS, measure), theirs()))
            .collect();
        add_pairs(
            figures,
            "PostgreSQL TPC-C",
            peer.name(),
            &pairs,
            (Some(Goal::AtLeast(1.0)), Some(Goal::AtMost(0.5))),
        );
    }
    let engine = private.engine(workload(HammerDb::MIX, true));
    ours(&engine, CLIENTS, pace.warm_up);
    for way in hammerdb {
        let theirs = || way.run(&private, measure);
        theirs();
        let pairs: Vec<(Reached, Reached)> = (0..pace.pairs)
            .map(|_| (ours(&engine, CLIENTS, measure), theirs()))
            .collect();
        add_pairs(
            figures,
            "PostgreSQL TPC-C by procedures",
            way.name,
            &pairs,
            (None, Some(Goal::AtMost(0.5))),
        );
    }
}

/// Rows of the standard's initial population (clause 4.3.3.1), which each of the programs loads.
fn rows(private: &Private) -> f64 {
    const TABLES: [&str; 9] = [
        "warehouse",
        "district",
        "customer",
        "history",
        "orders",
        "new_order",
        "order_line",
        "item",
        "stock",
    ];
    let mut connection = private.running.connect().expect("a connection");
    let mut rows = 0;
    for table in TABLES {
        let count = format!("select count(*) from {table}");
        let asked = connection.ask(&count, &mut |row| {
            rows += row.int(0)?;
            Ok(())
        });
        asked.expect("the rows are counted");
    }
    rows as f64
}
