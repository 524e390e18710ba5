//! A table with indexes in the simulated world: each transaction puts rows in, changes the key of one of the
//! transaction before, deletes those of three transactions ago, and looks at all rows by one of two indexes. And
//! there is a row that everybody puts in or deletes, whichever is possible.

use std::ops::ControlFlow;

use rand_xoshiro::rand_core::RngCore;
use spindle_io::env::seeded_rng;
use spindle_kernel::{Index, IndexKey, Instance, KernelError, KeyPart, Result, Session, Table};

use super::{SESSIONS, Scenario};

/// The longest row.
const ROW_BYTES_MAX: usize = 260;
/// Where the word begins in a row.
const WORD_AT: usize = 16;
/// The session whose row everybody puts in or deletes.
const EVERYBODY: u8 = 255;

/// A table whose rows a unique index knows by transaction, session and place in the transaction, and another index by
/// their words, which are of any length, and many of them the same.
pub async fn make(instance: &Instance) {
    let none = |_, _: &mut Vec<u8>| {};
    let made = instance.create_table("words", ROW_BYTES_MAX, 0, none).await;
    let table = made.unwrap();
    let part = |offset, bytes| KeyPart { offset, bytes };
    let id = [part(1, 8), part(0, 1), part(9, 1)];
    let created = instance.create_index(&table, "words_id", true, IndexKey::Bytes(&id));
    created.await.unwrap();
    let word = [part(WORD_AT as u16, (ROW_BYTES_MAX - WORD_AT) as u16)];
    let created = instance.create_index(&table, "words_word", false, IndexKey::Bytes(&word));
    created.await.unwrap();
}

fn id(me: u8, number: u64, place: u8) -> Vec<u8> {
    [&number.to_be_bytes()[..], &[me, place]].concat()
}

/// A row as its transaction puts it in, or as the next one changes it.
fn row(scenario: Scenario, me: u8, number: u64, place: u8, is_changed: bool) -> Vec<u8> {
    let stream = u64::from(me) << 40 | number << 16 | u64::from(place) << 1 | u64::from(is_changed);
    // A transaction that is given up puts in the same rows, for others look at what it sees.
    let mut rng = seeded_rng((scenario.seed >> 1) ^ 0x0072_0D50, stream);
    let mut row = vec![me];
    row.extend_from_slice(&number.to_be_bytes());
    row.push(place);
    row.resize(WORD_AT, 0);
    let length = match rng.next_u64() % 4 {
        0 => rng.next_u64() % 4,
        _ => rng.next_u64() % (ROW_BYTES_MAX - WORD_AT) as u64,
    };
    let letter = b'a' + (rng.next_u64() % 4) as u8;
    row.resize(WORD_AT + length as usize, letter);
    row
}

/// What one session has in the table after its transaction `last`, in order of the unique index.
fn rows_after(scenario: Scenario, me: u8, last: u64) -> Vec<Vec<u8>> {
    let kept = last.saturating_sub(2).max(1)..=last;
    let of = |number| {
        let is_changed = move |place| place == 0 && number < last;
        (0..scenario.words as u8)
            .map(move |place| row(scenario, me, number, place, is_changed(place)))
    };
    kept.flat_map(of).collect()
}

/// The part of a transaction that is about words.
pub async fn attempt(
    instance: &Instance,
    session: &mut Session,
    scenario: Scenario,
    me: usize,
    number: u64,
) -> Result<()> {
    let table = instance.table("words")?;
    let by_id = table.index("words_id")?;
    let sees = if number.is_multiple_of(2) {
        "words_id"
    } else {
        "words_word"
    };
    look(session, &*table.index(sees)?, scenario, me).await?;
    let (me, places) = (me as u8, 0..scenario.words as u8);
    for place in places.clone() {
        let row = row(scenario, me, number, place, false);
        session.insert_row(&table, &row).await?;
    }
    if number > 1 {
        let id = id(me, number - 1, 0);
        let found = session
            .get(&by_id, &id, |row, _| row)
            .await?
            .expect("its row is there");
        let again = row(scenario, me, number - 1, 1, false);
        if scenario.words > 1 {
            match session.insert_row(&table, &again).await {
                Err(KernelError::DuplicateKey { .. }) => {}
                // A disk may fail here, too.
                Err(error) => return Err(error),
                Ok(_) => panic!("a key was there twice"),
            }
        }
        let changed = row(scenario, me, number - 1, 0, true);
        session.replace_row(&table, found, &changed).await?;
    }
    if number > 3 {
        for place in places {
            let id = id(me, number - 3, place);
            let found = session
                .get(&by_id, &id, |row, _| row)
                .await?
                .expect("its row is there");
            session.delete_row(&table, found).await?;
        }
    }
    if (number + u64::from(me)).is_multiple_of(3) {
        turn(session, &table, &by_id, scenario).await?;
    }
    Ok(())
}

/// Puts the row of everybody in, or deletes it.
async fn turn(
    session: &mut Session,
    table: &Table,
    by_id: &Index,
    scenario: Scenario,
) -> Result<()> {
    let row = row(scenario, EVERYBODY, 0, 0, false);
    match session.insert_row(table, &row).await {
        Err(KernelError::DuplicateKey { .. }) => {
            let id = id(EVERYBODY, 0, 0);
            // The key is locked by now: nobody else can take the row away.
            let found = session.get(by_id, &id, |row, _| row).await?;
            session.delete_row(table, found.expect("it is there")).await
        }
        inserted => inserted.map(drop),
    }
}

/// All rows by one of the indexes, each session's by itself, in the order of the unique one.
async fn all(session: &mut Session, index: &Index) -> Result<Vec<Vec<Vec<u8>>>> {
    let mut rows = vec![Vec::new(); usize::from(EVERYBODY) + 1];
    let mut before = Vec::new();
    let seen = session.range(index, &[], None, |key, _, row| {
        assert!(before.as_slice() <= key, "a range is not in order");
        before = key.to_vec();
        rows[usize::from(row[0])].push(row.to_vec());
        ControlFlow::Continue(())
    });
    seen.await?;
    rows.iter_mut()
        .for_each(|rows| rows.sort_unstable_by(|a, b| a[1..10].cmp(&b[1..10])));
    Ok(rows)
}

/// Rows as transaction, place and length.
fn told(rows: &[Vec<u8>]) -> String {
    let told = rows
        .iter()
        .map(|row| format!("{}.{}:{}", row[8], row[9], row.len()));
    told.collect::<Vec<_>>().join(" ")
}

/// What others have in the table must be what they had committed at one moment.
async fn look(session: &mut Session, index: &Index, scenario: Scenario, me: usize) -> Result<()> {
    let rows = all(session, index).await?;
    assert!(
        rows[usize::from(EVERYBODY)].len() <= 1,
        "a unique key is there twice"
    );
    for (other, rows) in rows.iter().enumerate().take(SESSIONS) {
        let last = rows
            .last()
            .map_or(0, |row| u64::from_be_bytes(row[1..9].try_into().unwrap()));
        let is_whole = *rows == rows_after(scenario, other as u8, last);
        let name = index.name();
        assert!(
            other == me || is_whole,
            "session {me} saw by {name} of session {other}: {}",
            told(rows)
        );
    }
    Ok(())
}

/// Both indexes are what they should be, and lead to what the transactions found have left.
pub async fn check(
    instance: &Instance,
    session: &mut Session,
    scenario: Scenario,
    found: [u64; SESSIONS],
) -> std::result::Result<(), String> {
    let words = |error: KernelError| error.to_string();
    let table = instance.table("words").map_err(words)?;
    for index in table.indexes().iter() {
        session.check_index(&table, index).await.map_err(words)?;
        let rows = all(session, index).await.map_err(words)?;
        for (me, last) in found.iter().enumerate() {
            let expected = rows_after(scenario, me as u8, *last);
            if rows[me] != expected {
                let name = index.name();
                return Err(format!(
                    "by {name} session {me} has {}, its {last} transactions make {}",
                    told(&rows[me]),
                    told(&expected)
                ));
            }
        }
    }
    Ok(())
}
