//! Indexes by themselves, in the simulated world: against an ordered map, over many entries that come and go, and by
//! the space that they take.

use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::sync::Arc;

use rand_xoshiro::rand_core::RngCore;
use spindle_io::env::seeded_rng;
use spindle_kernel::probe::{self, Probe};
use spindle_kernel::{
    Index, IndexKey, IndexShape, Instance, KernelError, KeyPart, RowId, Session, Shutdown, Table,
};

use crate::simulated::live::Live;
use crate::simulated::{Scenario, loaded};

const ROW_BYTES: usize = 120;
const ROWS_PER_COMMIT: u64 = 25;

/// A database with room to grow, and a cache that holds a part of it.
fn live(seed: u64) -> Live {
    let scenario = Scenario {
        cache_blocks: 64,
        datafile_extents: 8,
        undo_blocks: 200,
        ..Scenario::plain(seed)
    };
    Live::on(scenario, &loaded(scenario))
}

async fn table(instance: &Instance, is_unique: bool) -> (Arc<Table>, Arc<Index>) {
    let made = instance
        .create_table("things", ROW_BYTES, 0, |_, _| {})
        .await;
    let table = made.unwrap();
    let key = [KeyPart {
        offset: 0,
        bytes: ROW_BYTES as u16,
    }];
    let index = instance
        .create_index(&table, "things_key", is_unique, IndexKey::Bytes(&key))
        .await;
    (table, index.unwrap())
}

/// Rows by key, and all rowids of it.
type Model = BTreeMap<Vec<u8>, Vec<RowId>>;

async fn compare(session: &mut Session, index: &Index, model: &Model, from: &[u8], to: &[u8]) {
    let mut found = Model::new();
    let mut keys = Vec::new();
    let read = session.range(index, from, Some(to), |key, row, bytes| {
        assert_eq!(key, bytes);
        keys.push(key.to_vec());
        found.entry(key.to_vec()).or_default().push(row);
        ControlFlow::Continue(())
    });
    read.await.unwrap();
    assert!(keys.is_sorted(), "a range is in order");
    found.values_mut().for_each(|rows| rows.sort());
    let expected = match from <= to {
        true => model.range(from.to_vec()..=to.to_vec()),
        false => Default::default(),
    };
    let expected: Model = expected
        .map(|(key, rows)| (key.clone(), rows.clone()))
        .collect();
    assert_eq!(found, expected);
}

fn forget(model: &mut Model, key: &[u8], row: RowId) {
    let rows = model.get_mut(key).unwrap();
    rows.retain(|of| *of != row);
    if rows.is_empty() {
        model.remove(key);
    }
}

/// One random change; returns whether the key was refused.
async fn change(
    session: &mut Session,
    (table, index): (&Table, &Index),
    model: &mut Model,
    below: &mut impl FnMut(usize) -> usize,
) -> bool {
    let mut key = vec![b'a' + below(3) as u8; below(ROW_BYTES)];
    if let Some(last) = key.last_mut() {
        *last = below(256) as u8;
    }
    let known = model.len();
    let chosen = (known > 0).then(|| model.iter().nth(below(known)).unwrap());
    let chosen = chosen.map(|(key, rows)| (key.clone(), rows[below(rows.len())]));
    let is_refused = index.is_unique() && model.contains_key(&key);
    let result = match (below(5), chosen) {
        (0, Some((old, row))) => {
            session.delete_row(table, row).await.unwrap();
            forget(model, &old, row);
            return false;
        }
        (1, Some((old, row))) if old != key => {
            session.replace_row(table, row, &key).await.map(|()| {
                forget(model, &old, row);
                row
            })
        }
        _ => session.insert_row(table, &key).await,
    };
    match result {
        Ok(row) => {
            assert!(!is_refused, "a key is there twice");
            let rows = model.entry(key).or_default();
            rows.push(row);
            rows.sort();
            false
        }
        Err(KernelError::DuplicateKey { .. }) => {
            assert!(is_refused, "a key was refused that is not there");
            true
        }
        Err(error) => panic!("{error}"),
    }
}

async fn random_changes(instance: Arc<Instance>, seed: u64, is_unique: bool) {
    let (table, index) = table(&instance, is_unique).await;
    let mut rng = seeded_rng(seed, 0);
    let mut below = |limit: usize| (rng.next_u64() % limit as u64) as usize;
    let mut session = instance.session();
    let (mut model, mut refused) = (Model::new(), 0);
    for _ in 0..60 {
        let before = model.clone();
        for _ in 0..below(40) {
            let was_refused = change(&mut session, (&table, &index), &mut model, &mut below).await;
            refused += usize::from(was_refused);
        }
        if below(4) == 0 {
            session.rollback().await.unwrap();
            model = before;
        } else {
            session.commit().await.unwrap();
        }
        let mut any = || vec![b'a' + below(4) as u8; below(5)];
        let (from, to) = (any(), any());
        compare(&mut session, &index, &model, &from, &to).await;
    }
    compare(&mut session, &index, &model, &[], &[255; ROW_BYTES]).await;
    for (key, rows) in &model {
        let first = session.get(&index, key, |row, _| row).await.unwrap();
        assert_eq!(first, Some(rows[0]));
    }
    let shape = session.check_index(&table, &index).await.unwrap();
    let entries: usize = model.values().map(Vec::len).sum();
    assert_eq!(shape.entries, entries as u64);
    assert!(shape.levels > 1, "{shape:?}");
    assert_eq!(refused > 0, is_unique, "{refused} keys were refused");
}

#[test]
fn random_changes_do_what_they_do_to_a_map() {
    for seed in 0..6 {
        let mut live = live(100 + seed);
        let instance = Arc::new(live.start().unwrap());
        live.run(random_changes(Arc::clone(&instance), seed, seed % 2 == 0));
        let instance = Arc::into_inner(instance).unwrap();
        live.run(instance.shutdown(Shutdown::Normal)).unwrap();
        // The dictionary knows the index at the next start.
        let instance = Arc::new(live.start().unwrap());
        let shared = Arc::clone(&instance);
        live.run(async move {
            let table = shared.table("things").unwrap();
            let index = table.index("things_key").unwrap();
            assert_eq!(index.is_unique(), seed % 2 == 0);
            let mut session = shared.session();
            session.check_index(&table, &index).await.unwrap();
        });
        let instance = Arc::into_inner(instance).unwrap();
        live.run(instance.shutdown(Shutdown::Normal)).unwrap();
    }
}

/// Puts in `count` numbered rows, and deletes each when `kept` more are there, in transactions of some rows each.
async fn queue(
    instance: &Instance,
    (table, index): (Arc<Table>, Arc<Index>),
    count: u64,
    kept: u64,
) -> (IndexShape, usize) {
    let mut session = instance.session();
    for number in 0..count {
        let row = session
            .insert_row(&table, &number.to_be_bytes())
            .await
            .unwrap();
        if number == 0 {
            let refused = session.update_row(row, 7..8, |byte| byte[0] = 1).await;
            assert!(
                matches!(refused, Err(KernelError::KeyInPlace { .. })),
                "{refused:?}"
            );
        }
        if let Some(old) = number.checked_sub(kept) {
            let found = session
                .get(&index, &old.to_be_bytes(), |row, _| row)
                .await
                .unwrap();
            session.delete_row(&table, found.unwrap()).await.unwrap();
        }
        if number % ROWS_PER_COMMIT == ROWS_PER_COMMIT - 1 {
            session.commit().await.unwrap();
        }
    }
    session.commit().await.unwrap();
    let shape = session.check_index(&table, &index).await.unwrap();
    let segments = instance.segments();
    let space = segments.iter().find(|segment| segment.name == "things_key");
    (shape, space.unwrap().extents)
}

#[test]
fn keys_that_only_grow_fill_nine_tenths() {
    let mut live = live(7);
    let instance = Arc::new(live.start().unwrap());
    let shared = Arc::clone(&instance);
    let (shape, _) = live.run(async move {
        let made = table(&shared, true).await;
        queue(&shared, made, 3000, u64::MAX).await
    });
    println!("{shape:?}");
    // An entry of 18 bytes and its place of 2, of which the prefix saves a part, in blocks of 2048.
    let entries = shape.entries / shape.leaves;
    assert!(
        (85..=130).contains(&entries),
        "{entries} entries in each leaf: {shape:?}"
    );
    let instance = Arc::into_inner(instance).unwrap();
    live.run(instance.shutdown(Shutdown::Normal)).unwrap();
}

/// How many of 3,000 rows went into one redo record with their entries, by whether keys must be unique; `key` makes the
/// key of a number.
fn in_one_record(is_unique: bool, key: fn(u64) -> u64) -> u64 {
    let mut live = live(9);
    let instance = Arc::new(live.start().unwrap());
    let shared = Arc::clone(&instance);
    let before = probe::hits(Probe::RowInOneRecord);
    live.run(async move {
        let (table, index) = table(&shared, is_unique).await;
        let mut session = shared.session();
        for number in 0..3000 {
            let row = key(number).to_be_bytes();
            session.insert_row(&table, &row).await.unwrap();
            if number % ROWS_PER_COMMIT == 0 {
                session.commit().await.unwrap();
            }
        }
        session.commit().await.unwrap();
        session.check_index(&table, &index).await.unwrap();
    });
    let instance = Arc::into_inner(instance).unwrap();
    live.run(instance.shutdown(Shutdown::Normal)).unwrap();
    probe::hits(Probe::RowInOneRecord) - before
}

/// Also after leaves were split, and where a session has met a leaf that it will not meet again.
#[test]
fn most_rows_go_into_one_record_with_their_entries() {
    for is_unique in [true, false] {
        let in_order = in_one_record(is_unique, |number| number);
        let in_no_order = in_one_record(is_unique, |number| {
            number.wrapping_mul(0x9E37_79B9_7F4A_7C15)
        });
        println!("unique {is_unique}: {in_order} in order, {in_no_order} in none");
        assert!(in_order > 2_700, "{in_order} rows in order");
        assert!(in_no_order > 2_400, "{in_no_order} rows in no order");
    }
}

#[test]
fn what_goes_at_one_end_makes_room_at_the_other() {
    let mut live = live(8);
    let instance = Arc::new(live.start().unwrap());
    let shared = Arc::clone(&instance);
    let (shape, extents) = live.run(async move {
        let made = table(&shared, true).await;
        queue(&shared, made, 12_000, 300).await
    });
    println!("{shape:?}, {extents} extents");
    assert_eq!(shape.entries, 300);
    assert!(shape.nodes + shape.free_blocks < 20, "{shape:?}");
    assert_eq!(extents, 1);
    let instance = Arc::into_inner(instance).unwrap();
    live.run(instance.shutdown(Shutdown::Normal)).unwrap();
}

/// A row: the first digits of its number, the last ones, which come in no order, and the whole number.
fn loaded_row(number: u64, order: u64) -> Vec<u8> {
    let mut row = Vec::from((number / 40).to_be_bytes());
    row.extend((number.wrapping_mul(order) % 40).to_be_bytes());
    row.extend(number.to_be_bytes());
    row
}

#[test]
fn an_index_of_rows_that_are_there_is_whole_and_goes_on() {
    // Rows in order, in order of their first part alone, and in none.
    for (rows, order, first_part) in [
        (0, 1, 0),
        (1, 1, 0),
        (3000, 1, 0),
        (3000, 7, 0),
        (3000, 7, 8),
    ] {
        let mut live = live(5);
        let instance = Arc::new(live.start().unwrap());
        let shared = Arc::clone(&instance);
        live.run(async move {
            let instance = shared;
            let fill = |number: u64, row: &mut Vec<u8>| *row = loaded_row(number, order);
            let made = instance.create_table("loaded", 24, rows, fill).await;
            let table = made.unwrap();
            let parts = [(first_part, 8), (16, 8)].map(|(offset, bytes)| KeyPart { offset, bytes });
            let made = instance.create_index(&table, "loaded_key", true, IndexKey::Bytes(&parts));
            let index = made.await.unwrap();
            let part = [KeyPart {
                offset: 8,
                bytes: 8,
            }];
            let again = instance.create_index(&table, "again", rows > 40, IndexKey::Bytes(&part));
            match again.await {
                Ok(_) => assert!(rows <= 40),
                Err(KernelError::DuplicateKey { .. }) => assert!(rows > 40),
                Err(error) => panic!("{error}"),
            }
            let mut session = instance.session();
            let shape = session.check_index(&table, &index).await.unwrap();
            assert_eq!(shape.entries, rows);
            assert!(rows < 3000 || shape.levels > 1);
            let mut keys: Vec<Vec<u8>> = Vec::new();
            let read = session.range(&index, &[], None, |key, _, _| {
                keys.push(key.to_vec());
                ControlFlow::Continue(())
            });
            read.await.unwrap();
            assert!(keys.is_sorted() && keys.len() as u64 == rows);
            for number in 0..rows {
                let row = loaded_row(number, order);
                let key = index.key_of(&row).unwrap();
                let found = session.get(&index, &key, |_, bytes| bytes.to_vec()).await;
                assert_eq!(found.unwrap(), Some(row.clone()));
                let edit = |bytes: &mut Vec<u8>| bytes[23] ^= 1 << 7;
                let changed = match number % 3 {
                    0 => session.delete_by_key(&table, &index, &key).await,
                    1 => session.update_by_key(&table, &index, &key, edit).await,
                    _ => session.insert_row(&table, &row).await.map(|_| true),
                };
                match changed {
                    Ok(is_there) => assert!(is_there),
                    Err(KernelError::DuplicateKey { .. }) => assert_ne!(number % 3, 0),
                    Err(error) => panic!("{error}"),
                }
                session.commit().await.unwrap();
            }
            let shape = session.check_index(&table, &index).await.unwrap();
            assert_eq!(shape.entries, rows - rows.div_ceil(3));
        });
        let instance = Arc::into_inner(instance).unwrap();
        live.run(instance.shutdown(Shutdown::Normal)).unwrap();
    }
}

fn long_key(letter: u8, number: u64) -> Vec<u8> {
    let mut key = vec![letter; ROW_BYTES - 8];
    key.extend(number.to_be_bytes());
    key
}

async fn insert(session: &mut Session, table: &Table, keys: impl Iterator<Item = Vec<u8>>) {
    for key in keys {
        session.insert_row(table, &key).await.unwrap();
        session.commit().await.unwrap();
    }
}

/// Deletes long keys until `emptied` leaves are empty; how many went.
async fn delete_until_emptied(
    session: &mut Session,
    (table, index): (&Table, &Index),
    numbers: &[u64],
    emptied: u64,
) -> usize {
    for (before, number) in numbers.iter().enumerate() {
        let key = long_key(b'b', *number);
        assert!(session.delete_by_key(table, index, &key).await.unwrap());
        session.commit().await.unwrap();
        let shape = session.check_index(table, index).await.unwrap();
        if shape.emptied == emptied {
            return before + 1;
        }
    }
    numbers.len()
}

/// Empties the first leaf, whose neighbour is full of keys with a long beginning that both together would not have.
/// Others are split meanwhile. Then the neighbour loses keys, `most` of them, and others are split again. How many it
/// lost before it was empty, if it came to that, and the index.
async fn empties_beside_a_full_one(instance: Arc<Instance>, most: usize) -> (usize, IndexShape) {
    let (table, index) = table(&instance, true).await;
    let mut session = instance.session();
    // Leaves of few keys, of which the second is filled when its fences are set.
    let (few, filling) = ((0..1600).step_by(16), (200..360));
    let mut numbers: Vec<u64> = few
        .chain(filling.filter(|number| number % 16 > 0))
        .collect();
    let keys = numbers.iter().map(|number| long_key(b'b', *number));
    insert(&mut session, &table, keys).await;
    numbers.sort_unstable();
    let others = |from: u64| (from..from + 250).map(|number| long_key(b'z', number));
    let both = (&*table, &*index);
    let of_first = delete_until_emptied(&mut session, both, &numbers, 1).await;
    insert(&mut session, &table, others(0)).await;
    let shape = session.check_index(&table, &index).await.unwrap();
    assert_eq!(shape.emptied, 1, "they fit together: {shape:?}");
    let next = &numbers[of_first..];
    let next = &next[..most.min(next.len())];
    let of_second = delete_until_emptied(&mut session, both, next, 2).await;
    insert(&mut session, &table, others(250)).await;
    let shape = session.check_index(&table, &index).await.unwrap();
    (of_second, shape)
}

#[test]
fn an_empty_leaf_goes_when_its_neighbour_has_got_room() {
    let story = |deleted| {
        let mut live = live(9);
        let instance = Arc::new(live.start().unwrap());
        let told = live.run(empties_beside_a_full_one(Arc::clone(&instance), deleted));
        let instance = Arc::into_inner(instance).unwrap();
        live.run(instance.shutdown(Shutdown::Normal)).unwrap();
        told
    };
    let (of_neighbour, _) = story(usize::MAX);
    let (_, shape) = story(of_neighbour - 2);
    assert_eq!(shape.emptied, 0, "{shape:?}");
}

#[test]
fn a_leaf_that_a_split_leaves_empty_is_taken_out() {
    let mut live = live(10);
    let instance = Arc::new(live.start().unwrap());
    let shared = Arc::clone(&instance);
    live.run(async move {
        let (table, index) = table(&shared, true).await;
        let mut session = shared.session();
        let key = |number: u64| number.to_be_bytes().to_vec();
        insert(
            &mut session,
            &table,
            (0..300).map(|number| key(1000 * number)),
        )
        .await;
        let mut of_first = 0;
        while session.check_index(&table, &index).await.unwrap().emptied == 0 {
            let old = key(1000 * of_first);
            assert!(session.delete_by_key(&table, &index, &old).await.unwrap());
            of_first += 1;
        }
        session.rollback().await.unwrap();
        // All but one. The entries stay until the transaction ends, so there is no room, and the leaf is split.
        for number in 0..of_first - 1 {
            let old = key(1000 * number);
            assert!(session.delete_by_key(&table, &index, &old).await.unwrap());
        }
        for number in 1..60 {
            let row = key(1000 * (of_first - 1) + number);
            session.insert_row(&table, &row).await.unwrap();
        }
        session.commit().await.unwrap();
        let shape = session.check_index(&table, &index).await.unwrap();
        assert_eq!((shape.emptied, shape.emptied_told), (1, 1), "{shape:?}");
        insert(
            &mut session,
            &table,
            (1000..1400).map(|number| key(1000 * number)),
        )
        .await;
        let shape = session.check_index(&table, &index).await.unwrap();
        assert_eq!(shape.emptied, 0, "{shape:?}");
    });
    let instance = Arc::into_inner(instance).unwrap();
    live.run(instance.shutdown(Shutdown::Normal)).unwrap();
}
