//! Tables with columns: what the dictionary keeps of them over restarts and crashes, and their rows by values, beside
//! an ordered map.

use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::sync::Arc;

use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::RngCore;
use spindle_io::env::seeded_rng;
use spindle_kernel::{
    IndexKey, Instance, KernelError, KeyPart, Session, Shutdown, Table, ask_plan,
};
use spindle_query::{
    Cell, Column, Columns, DataType, Direction, Form, QueryPlan, Relation, RowLayout,
    RowLayoutError, Type,
};

use crate::simulated::live::Live;
use crate::simulated::{Scenario, loaded};
use crate::space::{made, play};

const TABLE: &str = "things";
const KEY: &str = "things_key";

/// A value with bytes of its own.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Value {
    Number(i128, u8),
    Date(i32),
    Text(Vec<u8>),
}

impl Value {
    fn cell(&self) -> Cell<'_> {
        match self {
            Value::Number(digits, scale) => Cell::Number {
                digits: *digits,
                scale: *scale,
            },
            Value::Date(day) => Cell::Date(*day),
            Value::Text(text) => Cell::Text(text),
        }
    }

    fn of(cell: &Cell<'_>) -> Value {
        match *cell {
            Cell::Number { digits, scale } => Value::Number(digits, scale),
            Cell::Date(day) => Value::Date(day),
            Cell::Text(text) => Value::Text(text.to_vec()),
            Cell::Null => panic!("NULL in a table"),
        }
    }

    /// What it is ordered by, in a column.
    fn rank(&self, column: &Column) -> Rank {
        match (self, column.of()) {
            (Value::Number(digits, _), _) => Rank::Number(*digits),
            (Value::Date(day), _) => Rank::Number((*day).into()),
            // The shorter text counts as filled up with blanks.
            (Value::Text(text), DataType::Char(bytes)) if column.form() == Form::Blanks => {
                let mut padded = text.clone();
                padded.resize(bytes.into(), b' ');
                Rank::Text(padded)
            }
            (Value::Text(text), _) => Rank::Text(text.clone()),
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
enum Rank {
    Number(i128),
    Text(Vec<u8>),
}

struct Chance(Xoshiro256PlusPlus);

impl Chance {
    fn below(&mut self, limit: usize) -> usize {
        (self.0.next_u64() % limit as u64) as usize
    }

    fn column(&mut self, number: usize) -> Column {
        let name = format!("c{number}");
        let bytes = 1 + self.below(20) as u16;
        let numbers = [4, 8][self.below(2)];
        let signs = [
            Form::Ordered(numbers),
            Form::Unsigned(numbers),
            Form::Signed(numbers),
        ];
        let sign = signs[self.below(3)];
        match self.below(9) {
            0 => Column::new(name, DataType::Integer),
            1 => Column::in_form(name, DataType::Integer, sign),
            2 => Column::in_form(name, DataType::Decimal(self.below(5) as u8), sign),
            3 => Column::in_form(name, DataType::Decimal(2), Form::Ordered(16)),
            4 => Column::new(name, DataType::Date),
            5 => Column::new(name, DataType::Timestamp),
            6 => Column::new(name, DataType::Char(bytes)),
            7 => Column::in_form(name, DataType::Varchar(bytes), Form::Zeros),
            _ => Column::new(name, DataType::Varchar(bytes)),
        }
    }

    /// One of few values, so that keys meet, and now and then one of the last that the column takes.
    fn value(&mut self, column: &Column) -> Value {
        let few = self.below(5) as i128;
        let extreme = self.below(8);
        let (least, greatest) = match column.form() {
            Form::Ordered(16) => (i128::MIN, i128::MAX),
            Form::Unsigned(bytes) => (0, (1 << (8 * bytes)) - 1),
            Form::Ordered(bytes) | Form::Signed(bytes) => {
                (-(1 << (8 * bytes - 1)), (1 << (8 * bytes - 1)) - 1)
            }
            _ => (0, 0),
        };
        let digits = match extreme {
            0 => least,
            1 => greatest,
            _ if least < 0 => few - 2,
            _ => few,
        };
        let (longest, is_char) = match column.of() {
            DataType::Integer => return Value::Number(digits, 0),
            DataType::Decimal(scale) => return Value::Number(digits, scale),
            DataType::Timestamp => return Value::Number(digits, 6),
            DataType::Date => return Value::Date(digits as i32),
            DataType::Char(bytes) => (bytes, true),
            DataType::Varchar(bytes) => (bytes, false),
        };
        let length = match extreme {
            0 => usize::from(longest),
            _ => self.below(usize::from(longest.min(3)) + 1),
        };
        let letters = [b'!', b'a', b'b', b' ', 1, 255];
        let mut text: Vec<u8> = (0..length).map(|_| letters[self.below(6)]).collect();
        while is_char && text.last() == Some(&b' ') {
            text.pop();
        }
        Value::Text(text)
    }

    fn row(&mut self, layout: &RowLayout) -> Vec<Value> {
        let columns = layout.columns().iter();
        columns.map(|column| self.value(column)).collect()
    }

    /// Columns, and some of them as a key.
    fn table(&mut self) -> (RowLayout, Vec<u16>) {
        loop {
            let count = 2 + self.below(6);
            let layout = RowLayout::new((0..count).map(|number| self.column(number))).unwrap();
            let mut key: Vec<u16> = Vec::new();
            for _ in 0..1 + self.below(3) {
                let number = self.below(count) as u16;
                if !key.contains(&number) {
                    key.push(number);
                }
            }
            if layout.key_parts(&key).is_ok() {
                return (layout, key);
            }
        }
    }
}

fn cells(values: &[Value]) -> Vec<Cell<'_>> {
    values.iter().map(Value::cell).collect()
}

/// Rows of a table with a unique key, and what they must be.
struct Model {
    layout: RowLayout,
    key: Vec<u16>,
    rows: BTreeMap<Vec<Rank>, Vec<Value>>,
}

impl Model {
    fn key_of(&self, row: &[Value]) -> Vec<Value> {
        let key = self.key.iter();
        key.map(|number| row[usize::from(*number)].clone())
            .collect()
    }

    fn ranks(&self, key: &[Value]) -> Vec<Rank> {
        let columns = self
            .key
            .iter()
            .map(|number| &self.layout.columns()[usize::from(*number)]);
        key.iter()
            .zip(columns)
            .map(|(value, column)| value.rank(column))
            .collect()
    }

    /// A key that is there, mostly.
    fn some_key(&self, chance: &mut Chance) -> Vec<Value> {
        let row = match self.rows.len() {
            0 => chance.row(&self.layout),
            _ if chance.below(5) == 0 => chance.row(&self.layout),
            rows => self.rows.values().nth(chance.below(rows)).unwrap().clone(),
        };
        self.key_of(&row)
    }

    /// One change of table and model alike.
    async fn change(&mut self, session: &mut Session, table: &Table, chance: &mut Chance) {
        let mut typed = session.typed(table).unwrap();
        let key = self.some_key(chance);
        let ranks = self.ranks(&key);
        match chance.below(4) {
            0 => {
                let deleted = typed.delete(KEY, &cells(&key)).await.unwrap();
                assert_eq!(deleted, self.rows.remove(&ranks).is_some());
            }
            1 => {
                let columns = self.layout.columns();
                let number = chance.below(columns.len());
                let value = chance.value(&columns[number]);
                let changes = [(columns[number].name(), value.cell())];
                let updated = typed.update(KEY, &cells(&key), &changes).await;
                let Some(mut row) = self.rows.get(&ranks).cloned() else {
                    return assert_eq!(updated, Ok(false));
                };
                row[number] = value;
                let after = self.ranks(&self.key_of(&row));
                match updated {
                    Ok(is_there) => assert!(is_there),
                    Err(KernelError::DuplicateKey { .. }) => {
                        return assert!(after != ranks && self.rows.contains_key(&after));
                    }
                    Err(error) => panic!("{error}"),
                }
                self.rows.remove(&ranks);
                assert_eq!(self.rows.insert(after, row), None);
            }
            _ => {
                let row = chance.row(&self.layout);
                let ranks = self.ranks(&self.key_of(&row));
                match typed.insert(&cells(&row)).await {
                    Ok(_) => assert_eq!(self.rows.insert(ranks, row), None),
                    Err(KernelError::DuplicateKey { .. }) => {
                        assert!(self.rows.contains_key(&ranks));
                    }
                    Err(error) => panic!("{error}"),
                }
            }
        }
    }

    /// A row by its key, and those of a range of beginnings of keys.
    async fn look(&self, session: &mut Session, table: &Table, chance: &mut Chance) {
        let mut typed = session.typed(table).unwrap();
        let key = self.some_key(chance);
        let read = |row: &[Cell<'_>]| row.iter().map(Value::of).collect::<Vec<_>>();
        let found = typed.get(KEY, &cells(&key), read).await.unwrap();
        assert_eq!(found.as_ref(), self.rows.get(&self.ranks(&key)));
        let (mut from, mut to) = (self.some_key(chance), self.some_key(chance));
        from.truncate(chance.below(from.len() + 1));
        to.truncate(chance.below(to.len() + 1));
        let mut seen = Vec::new();
        let (first, last) = (cells(&from), cells(&to));
        let read = typed.range(KEY, &first, &last, |row| {
            seen.push(row.iter().map(Value::of).collect::<Vec<_>>());
            ControlFlow::Continue(())
        });
        read.await.unwrap();
        let (from, to) = (self.ranks(&from), self.ranks(&to));
        let is_within =
            |key: &[Rank]| key >= &from[..] && (key[..to.len().min(key.len())] <= to[..]);
        let expected = self.rows.iter().filter(|(key, _)| is_within(key));
        let expected: Vec<_> = expected.map(|(_, row)| row.clone()).collect();
        assert_eq!(seen, expected, "{from:?} to {to:?}");
    }
}

fn live(seed: u64) -> Live {
    let scenario = Scenario {
        cache_blocks: 64,
        datafile_extents: 8,
        undo_blocks: 200,
        ..Scenario::plain(seed)
    };
    Live::on(scenario, &loaded(scenario))
}

async fn random_changes(instance: Arc<Instance>, seed: u64) -> (RowLayout, Vec<u16>) {
    let mut chance = Chance(seeded_rng(seed, 0));
    let (layout, key) = chance.table();
    let none = |_, _: &mut Vec<u8>| {};
    let table = instance.create_table(TABLE, layout.clone(), 0, none).await;
    let table = table.unwrap();
    let names = layout.names(&key);
    let index = instance.create_index(&table, KEY, true, IndexKey::Columns(&names));
    let index = index.await.unwrap();
    let mut session = instance.session();
    let rows = BTreeMap::new();
    let mut model = Model { layout, key, rows };
    for _ in 0..30 {
        let before = model.rows.clone();
        for _ in 0..chance.below(20) {
            model.change(&mut session, &table, &mut chance).await;
        }
        match chance.below(4) {
            0 => {
                session.rollback().await.unwrap();
                model.rows = before;
            }
            _ => session.commit().await.unwrap(),
        }
        model.look(&mut session, &table, &mut chance).await;
    }
    let shape = session.check_index(&table, &index).await.unwrap();
    assert_eq!(shape.entries, model.rows.len() as u64);
    (model.layout, model.key)
}

#[test]
fn random_columns_values_and_changes_do_what_they_do_to_a_map() {
    for seed in 0..60 {
        let mut live = live(500 + seed);
        let instance = Arc::new(live.start().unwrap());
        let (layout, key) = live.run(random_changes(Arc::clone(&instance), seed));
        let instance = Arc::into_inner(instance).unwrap();
        live.run(instance.shutdown(Shutdown::Normal)).unwrap();
        let instance = live.start().unwrap();
        let table = instance.table(TABLE).unwrap();
        assert_eq!(table.columns(), Some(&layout), "seed {seed}");
        assert_eq!(table.index(KEY).unwrap().columns(), Some(&key[..]));
        drop(table);
        live.run(instance.shutdown(Shutdown::Normal)).unwrap();
    }
}

/// Columns of every type, two of whose keys are in an order that their places are not.
fn accounts() -> RowLayout {
    RowLayout::new([
        Column::new("branch", DataType::Char(8)),
        Column::in_form("number", DataType::Integer, Form::Ordered(4)),
        Column::in_form("balance", DataType::Decimal(2), Form::Signed(8)),
        Column::new("opened", DataType::Date),
        Column::new("seen", DataType::Timestamp),
        Column::new("owner", DataType::Varchar(60)),
    ])
    .unwrap()
}

fn account(number: i32) -> Vec<Value> {
    vec![
        Value::Text(format!("b{}", number.rem_euclid(3)).into_bytes()),
        Value::Number(number.into(), 0),
        Value::Number(-100 * i128::from(number), 2),
        Value::Date(number - 10),
        Value::Number(i128::from(number) << 20, 6),
        Value::Text(vec![b'o'; number.unsigned_abs() as usize % 60]),
    ]
}

const ACCOUNT_KEY: [&str; 2] = ["number", "branch"];
const LOADED: i32 = 40;
const ADDED: i32 = 25;

/// Makes a table with columns and two indexes, and adds rows to it.
async fn make_accounts(instance: Instance) -> Result<(), KernelError> {
    let layout = accounts();
    let fill = |number: u64, row: &mut Vec<u8>| {
        accounts()
            .encode(&cells(&account(number as i32)), row)
            .unwrap();
    };
    let table = instance
        .create_table("accounts", layout, LOADED as u64, fill)
        .await?;
    let key = IndexKey::Columns(&ACCOUNT_KEY);
    instance
        .create_index(&table, "accounts_key", true, key)
        .await?;
    let owner = IndexKey::Columns(&["owner"]);
    instance
        .create_index(&table, "accounts_owner", false, owner)
        .await?;
    let mut session = instance.session();
    for number in -ADDED..0 {
        let mut typed = session.typed(&table)?;
        typed.insert(&cells(&account(number))).await?;
        session.commit().await?;
    }
    // So that some crashes come after the last row.
    instance.checkpoint().await
}

/// What the dictionary has must be whole, and rows must be what their columns say. True when everything is there.
async fn look_at_accounts(instance: &Instance) -> Result<bool, KernelError> {
    let tables = instance.tables();
    let Some(table) = tables.iter().find(|table| table.name() == "accounts") else {
        return Ok(false);
    };
    assert_eq!(table.columns(), Some(&accounts()));
    let Ok(index) = table.index("accounts_key") else {
        return Ok(false);
    };
    assert!(index.is_unique());
    assert_eq!(index.columns(), Some(&[1, 0][..]));
    let mut session = instance.session();
    session.check_index(table, &index).await?;
    let mut numbers = Vec::new();
    let read = |row: &[Cell<'_>]| {
        let Cell::Number { digits, .. } = row[1] else {
            panic!("{row:?}")
        };
        assert_eq!(row, cells(&account(digits as i32)));
        numbers.push(digits as i32);
        ControlFlow::Continue(())
    };
    session
        .typed(table)?
        .range("accounts_key", &[], &[], read)
        .await?;
    let added = numbers.len() as i32 - LOADED;
    // In the order of the numbers: of the negative ones the first come first.
    let expected = (-ADDED..-ADDED + added).chain(0..LOADED);
    assert_eq!(numbers, expected.collect::<Vec<_>>());
    let mut typed = session.typed(table)?;
    let wanted = account(7);
    let key = [wanted[1].cell(), wanted[0].cell()];
    let found = typed
        .get("accounts_key", &key, |row| row == cells(&wanted))
        .await?;
    assert_eq!(found, Some(true));
    if let Ok(by_owner) = table.index("accounts_owner") {
        assert_eq!(by_owner.columns(), Some(&[5][..]));
        session.check_index(table, &by_owner).await?;
    }
    Ok(added == ADDED)
}

#[test]
fn the_catalogue_is_whole_after_every_crash() {
    if !spindle_harness::is_long_or_skip() {
        return;
    }
    let images = made(6);
    let (_, ios) = play(&images, None, make_accounts);
    let mut whole = 0;
    for cut in (1..=ios).step_by(3) {
        let (images, _) = play(&images, Some(cut), make_accounts);
        let found = Arc::new(std::sync::Mutex::new(false));
        let told = Arc::clone(&found);
        play(&images, None, |instance| async move {
            *told.lock().unwrap() = look_at_accounts(&instance).await?;
            instance.shutdown(Shutdown::Normal).await
        });
        whole += usize::from(*found.lock().unwrap());
    }
    assert!(whole > 0, "no crash came after the last row");
}

async fn refusals(instance: Arc<Instance>) {
    let none = |_, _: &mut Vec<u8>| {};
    let table = instance
        .create_table("accounts", accounts(), 0, none)
        .await
        .unwrap();
    let bytes = instance.create_table("bytes", 20, 0, none).await.unwrap();
    let refused = |table: Arc<Table>, key: Vec<&'static str>| {
        let instance = Arc::clone(&instance);
        async move {
            let made = instance.create_index(&table, "i", true, IndexKey::Columns(&key));
            made.await.err().expect("it is refused")
        }
    };
    let error = refused(Arc::clone(&table), vec!["number", "none"]).await;
    assert_eq!(
        error.to_string(),
        "table accounts: there is no column `none`; there are branch, number, balance, opened, seen, owner"
    );
    let error = refused(Arc::clone(&table), vec!["owner", "number"]).await;
    assert!(
        error.to_string().contains("`owner` has a varying length"),
        "{error}"
    );
    let error = refused(Arc::clone(&table), vec!["balance"]).await;
    let unordered = matches!(
        error,
        KernelError::Columns {
            error: RowLayoutError::Unordered { .. },
            ..
        }
    );
    assert!(unordered, "{error}");
    let error = refused(Arc::clone(&bytes), vec!["number"]).await;
    assert!(matches!(error, KernelError::NoColumns { .. }), "{error}");
    let part = [KeyPart {
        offset: 0,
        bytes: 8,
    }];
    let made = instance
        .create_index(&table, "i", true, IndexKey::Bytes(&part))
        .await;
    assert!(matches!(made.err(), Some(KernelError::KeyOfBytes { .. })));
    let part = [KeyPart {
        offset: 0,
        bytes: 3000,
    }];
    let made = instance
        .create_index(&bytes, "i", true, IndexKey::Bytes(&part))
        .await;
    assert!(matches!(made.err(), Some(KernelError::KeysTooLong { .. })));
    let long = RowLayout::new([Column::new("text", DataType::Varchar(9000))]).unwrap();
    let made = instance.create_table("long", long, 0, none).await;
    assert!(matches!(made.err(), Some(KernelError::RowsTooLong { .. })));

    let index = IndexKey::Columns(&ACCOUNT_KEY);
    instance
        .create_index(&table, "accounts_key", true, index)
        .await
        .unwrap();
    let mut session = instance.session();
    let untyped = session.typed(&bytes).err();
    assert!(matches!(untyped, Some(KernelError::NoColumns { .. })));
    let mut typed = session.typed(&table).unwrap();
    let row = account(1);
    let mut null = cells(&row);
    null[3] = Cell::Null;
    let error = typed.insert(&null).await.unwrap_err();
    assert_eq!(
        error.to_string(),
        "table accounts: column `opened` needs a value: NULL is not supported"
    );
    let error = typed
        .get("accounts_key", &[row[1].cell()], |_| ())
        .await
        .unwrap_err();
    assert!(
        error
            .to_string()
            .contains("1 values were given: 2 are wanted"),
        "{error}"
    );
    let error = typed.delete("none", &[]).await.unwrap_err();
    assert!(matches!(error, KernelError::NoSuchIndex { .. }), "{error}");
    typed.insert(&cells(&row)).await.unwrap();
    let key = [row[1].cell(), row[0].cell()];
    let long = [("owner", Cell::Text(&[b'x'; 61]))];
    let error = typed.update("accounts_key", &key, &long).await.unwrap_err();
    assert!(
        error.to_string().contains("a text of 61 bytes is too long"),
        "{error}"
    );
    let found = typed
        .get("accounts_key", &key, |found| found == cells(&row))
        .await;
    assert_eq!(found, Ok(Some(true)));
    // A row that does not keep to the columns is told, not taken for another.
    let short = [0; 34];
    session.insert_row(&table, &short).await.unwrap();
    let mut typed = session.typed(&table).unwrap();
    let read = typed.range("accounts_key", &[], &[], |_| ControlFlow::Continue(()));
    let error = read.await.unwrap_err();
    assert!(
        error.to_string().contains("does not fit the columns"),
        "{error}"
    );
    session.rollback().await.unwrap();
}

async fn plans(instance: Arc<Instance>) {
    let columns = |names: [&'static str; 2]| {
        Columns::new(names.into_iter().zip([Type::Key, Type::Varying(9)]))
    };
    let layout = RowLayout::try_from(&columns(["id", "name"])).unwrap();
    let fill = |number: u64, row: &mut Vec<u8>| {
        let digits = i128::from(number);
        let values = [Cell::Number { digits, scale: 0 }, Cell::Text(b"name")];
        layout.encode(&values, row).unwrap();
    };
    let made = instance
        .create_table("named", layout.clone(), 3, fill)
        .await;
    let tables = [made.unwrap()];
    let mut session = instance.session();
    let mut rows = 0;
    let of = |columns| {
        let name = "named";
        let by_id = [("id", Direction::Up)];
        QueryPlan::scan(&Relation { name, columns }).order(&by_id)
    };
    let known = of(columns(["id", "name"]));
    ask_plan(&mut session, &tables, &known, |_, _| rows += 1)
        .await
        .unwrap();
    assert_eq!(rows, 3);
    let other = of(columns(["id", "title"]));
    let error = ask_plan(&mut session, &tables, &other, |_, _| {})
        .await
        .unwrap_err();
    assert_eq!(
        error.to_string(),
        "a plan takes table named for other columns than it has: id integer, name varchar(9)"
    );
}

#[test]
fn plans_must_know_the_columns_of_the_dictionary() {
    let mut live = live(4);
    let instance = Arc::new(live.start().unwrap());
    live.run(plans(Arc::clone(&instance)));
    let instance = Arc::into_inner(instance).unwrap();
    live.run(instance.shutdown(Shutdown::Normal)).unwrap();
}

#[test]
fn what_does_not_fit_is_refused_in_words() {
    let mut live = live(3);
    let instance = Arc::new(live.start().unwrap());
    live.run(refusals(Arc::clone(&instance)));
    let instance = Arc::into_inner(instance).unwrap();
    live.run(instance.shutdown(Shutdown::Normal)).unwrap();
}
