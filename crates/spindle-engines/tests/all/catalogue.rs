//! The tables of workloads in the dictionary of the embedded database: every row, loaded or written by transactions, is
//! what its columns say, byte for byte, and keys are the columns of the standards.

use std::sync::Arc;

use spindle_engines::engine::RunningEngine;
use spindle_engines::kernel::{KernelEngine, KernelSettings, KernelUnderTest, WriteSync, files_of};
use spindle_io::Env;
use spindle_io::env::seeded_rng;
use spindle_io::real::{RealEnv, block_on};
use spindle_workload::sql::Tpch;
use spindle_workload::sql::tpch::{Parameters, TpchVersion};
use spindle_workload::{Acknowledged, Client, ClientSession, TableShare, Workload};

use crate::crashes::{tpcb, tpcc};
use crate::{junk, small};

const BLOCK_BYTES: usize = 8192;

/// Loads a workload, carries transactions out, and looks at every row; what the check of the database says.
fn looked_through(workload: &Arc<dyn Workload>, transactions: u64) -> String {
    let env: Arc<dyn Env> = RealEnv::new(1);
    let shape = files_of(&**workload, 1, BLOCK_BYTES, 2, 3, 64 << 20);
    let settings = KernelSettings {
        block_bytes: BLOCK_BYTES,
        buffer_cache_bytes: 16 << 20,
        log_buffer_bytes: 64 * BLOCK_BYTES,
        ..small::settings(WriteSync::Dsync)
    };
    let started = KernelEngine::in_memory(&env, &shape, &settings, &**workload, 1);
    let engine = Arc::new(block_on(started).unwrap());
    let mut session = engine.connector()();
    let tables = engine.tables();
    let mut client = Client {
        number: 0,
        clients: 1,
        changes: 0,
        rng: seeded_rng(1, 0),
    };
    let mut last = 0;
    for _ in 0..transactions {
        let txn = workload.next(&mut client, &tables);
        for operation in &txn.operations {
            block_on(session.execute(operation)).unwrap();
        }
        block_on(session.commit()).unwrap();
        last = last.max(txn.number);
    }
    let mut rows = 0;
    for (number, table) in workload.tables().iter().enumerate() {
        let layout = workload.columns(number).unwrap();
        let mut again = Vec::new();
        let mut look = |row: &[u8]| {
            let name = table.name;
            let values = layout.decode(row);
            let values = values.unwrap_or_else(|error| panic!("{name}: {error}"));
            layout.encode(&values, &mut again).unwrap();
            assert_eq!(again, row, "{name}: {values:?}");
            rows += 1;
        };
        block_on(session.visit(number, TableShare::WHOLE, &mut look)).unwrap();
    }
    assert!(rows > 50, "{rows} rows");
    drop(session);
    let engine = Arc::into_inner(engine).unwrap();
    let under_test = Arc::new(KernelUnderTest::new(&env, engine, Arc::clone(workload)));
    let checked = under_test.check(vec![Acknowledged::up_to(last)]);
    let said = block_on(checked).unwrap();
    block_on(under_test.stop()).unwrap();
    said
}

fn has_keys(said: &str, keys: &[&str]) {
    for key in keys {
        assert!(said.contains(&format!("; index {key}: ")), "{key}: {said}");
    }
}

#[test]
fn rows_of_workloads_have_the_columns_of_the_dictionary() {
    let said = looked_through(&tpcb::workload(), 40);
    has_keys(
        &said,
        &[
            "branches_bid (bid)",
            "tellers_tid (tid)",
            "accounts_aid (aid)",
        ],
    );
    let said = looked_through(&tpcc::workload(false), 60);
    let by_name = "customer_by_name (c_w_id, c_d_id, c_last, c_first)";
    let by_customer = "orders_by_customer (o_w_id, o_d_id, o_c_id, o_id)";
    let lines = "order_line_key (ol_w_id, ol_d_id, ol_o_id, ol_number)";
    has_keys(
        &said,
        &[by_name, by_customer, lines, "stock_key (s_w_id, s_i_id)"],
    );
    let said = looked_through(&junk::workload(240, 8), 30);
    has_keys(&said, &["junk_c1_c2 (c1, c2)", "junk_c3_c4 (c3, c4)"]);
    let tpch = Tpch {
        version: TpchVersion::H,
        scale: 0.01,
        queries: TpchVersion::H.queries().collect(),
        refresh: false,
        parameters: Parameters::Validation,
        query_limit: None,
        kept: None,
        seed: 7,
    };
    let said = looked_through(&Arc::from(tpch.in_plans(1, 1)), 0);
    has_keys(
        &said,
        &[
            "orders_key (o_orderkey)",
            "lineitem_key (l_orderkey, l_linenumber)",
        ],
    );
}
