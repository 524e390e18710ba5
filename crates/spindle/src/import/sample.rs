//! A statement with values for its parameters: which column each meets is looked up, and its values are drawn as the
//! table has them.

use std::collections::BTreeSet;
use std::rc::Rc;

use spindle_workload::sql::Dialect;

use super::column::{Drawn, End, ImportedColumn, ValueKind};
use super::error::LeftOutStatement;
use super::statement::{ColumnName, InsertedColumn, Role, Statement, VARIABLE, Verb};
use super::table::{ImportedTable, Tables};

/// Rows of a range, where the server does not tell how many were found.
const RANGE_ROWS: f64 = 100.0;
/// Values of an array at most.
const AMONG_MAX: f64 = 20.0;

/// Rows of a call, on average.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct RowsOfCall {
    /// Those that it found or changed.
    pub found: f64,
    /// Those that were looked at for it, where the server counts them.
    pub examined: Option<f64>,
}

/// A statement that can be carried out.
#[derive(Debug, Clone, PartialEq)]
pub struct Sampled {
    /// It in the language of scripts, its `\set` lines before it, without a semicolon.
    pub text: String,
    /// What these values do not have of the real ones.
    pub doubts: BTreeSet<String>,
    /// Rows of its tables: the largest.
    pub table_rows: f64,
}

/// Draws values for all parameters.
///
/// # Errors
/// Why the statement is left out.
pub fn sample(
    statement: &Statement,
    rows: RowsOfCall,
    dialect: Dialect,
    tables: &mut dyn Tables,
) -> Result<Sampled, LeftOutStatement> {
    let mut known = Vec::new();
    if !statement.parameters.is_empty() {
        for relation in &statement.relations {
            let table = tables.table(&relation.name)?;
            known.extend(table.map(|table| (relation.alias.clone(), table)));
        }
    }
    let mut sampler = Sampler {
        statement,
        rows,
        dialect,
        tables,
        known,
        doubts: BTreeSet::new(),
        fresh: BTreeSet::new(),
    };
    sampler.find_fresh()?;
    let mut given: Vec<Option<Drawn>> = vec![None; statement.parameters.len()];
    sampler.ranges(&mut given)?;
    for (number, drawn) in given.iter_mut().enumerate() {
        if drawn.is_none() {
            *drawn = Some(sampler.draw(number)?);
        }
    }
    let given: Vec<Drawn> = given.into_iter().flatten().collect();
    let texts: Vec<String> = given.iter().map(|drawn| drawn.given.clone()).collect();
    let largest = sampler.known.iter().map(|(_, table)| table.rows);
    let table_rows = largest.fold(0.0, f64::max);
    let lines = given.into_iter().flat_map(|drawn| drawn.sets);
    let lines: Vec<String> = lines.chain([statement.script(&texts)]).collect();
    Ok(Sampled {
        text: lines.join("\n"),
        doubts: sampler.doubts,
        table_rows,
    })
}

struct Sampler<'a> {
    statement: &'a Statement,
    rows: RowsOfCall,
    dialect: Dialect,
    tables: &'a mut dyn Tables,
    /// Tables by what columns have before their point.
    known: Vec<(String, Rc<ImportedTable>)>,
    doubts: BTreeSet<String>,
    /// Columns of the first table that get a value which no row has.
    fresh: BTreeSet<usize>,
}

fn no_keys(of: &str) -> LeftOutStatement {
    LeftOutStatement::Values(format!("no new keys can be made for {of}"))
}

fn variable(number: usize) -> String {
    format!("{VARIABLE}{}", number + 1)
}

impl Sampler<'_> {
    /// The column that a name means.
    fn find(&mut self, name: &ColumnName) -> Result<ImportedColumn, LeftOutStatement> {
        let matching = self.known.iter().filter(|(alias, _)| {
            let qualifier = name.qualifier.as_ref();
            qualifier.is_none_or(|qualifier| qualifier == alias)
        });
        let found = matching
            .filter_map(|(_, table)| {
                Some((Rc::clone(table), table.place(&name.name, self.dialect)?))
            })
            .next();
        let Some((table, place)) = found else {
            return Err(LeftOutStatement::Values(format!(
                "no column {} is known in its tables",
                name.name
            )));
        };
        self.values(&table, place)
    }

    fn values(
        &mut self,
        table: &ImportedTable,
        place: usize,
    ) -> Result<ImportedColumn, LeftOutStatement> {
        let column = self.tables.column(table, place)?;
        let name = &table.columns[place].name;
        column.ok_or_else(|| {
            LeftOutStatement::Values(format!(
                "nothing is known of the values of {}.{name}: run ANALYZE there, or grant select on it",
                table.name
            ))
        })
    }

    /// Of each unique index whose columns are all given by parameters, one column gets a value that no row has.
    fn find_fresh(&mut self) -> Result<(), LeftOutStatement> {
        let inserted = self.inserted();
        if self.statement.verb != Verb::Insert || self.statement.forgives_doubles {
            return Ok(());
        }
        let Some((_, table)) = self.known.first().cloned() else {
            return Ok(());
        };
        for index in &table.unique {
            if !index.iter().all(|place| inserted.contains(place))
                || index.iter().any(|place| self.fresh.contains(place))
            {
                continue;
            }
            let of = |wanted: fn(&ValueKind) -> bool| {
                let mut places = index.iter().rev();
                places
                    .find(|place| wanted(&table.columns[**place].kind))
                    .copied()
            };
            let place = of(|kind| matches!(kind, ValueKind::Whole { .. }))
                .or_else(|| of(|kind| *kind == ValueKind::Uuid))
                .or_else(|| of(|kind| *kind == ValueKind::Text))
                .or_else(|| of(|kind| *kind == ValueKind::Bytes));
            let Some(place) = place else {
                return Err(no_keys(&table.name));
            };
            self.fresh.insert(place);
        }
        Ok(())
    }

    /// Columns of the first table that parameters are inserted into.
    fn inserted(&self) -> BTreeSet<usize> {
        let roles = self.statement.parameters.iter().flatten();
        roles.filter_map(|role| self.inserted_place(role)).collect()
    }

    fn inserted_place(&self, role: &Role) -> Option<usize> {
        let (_, table) = self.known.first()?;
        match role {
            Role::Inserted(InsertedColumn::Named(name)) => table.place(name, self.dialect),
            Role::Inserted(InsertedColumn::Nth(number)) => {
                (*number < table.columns.len()).then_some(*number)
            }
            _ => None,
        }
    }

    /// Draws pairs of parameters that are both ends of a range of one column.
    fn ranges(&mut self, given: &mut [Option<Drawn>]) -> Result<(), LeftOutStatement> {
        let statement = self.statement;
        let begins = statement.parameters.iter().enumerate();
        for (from, role) in begins {
            let Some(Role::From(column)) = role else {
                continue;
            };
            let is_end = |role: &Option<Role>| *role == Some(Role::To(column.clone()));
            let Some(to) = statement.parameters.iter().position(is_end) else {
                continue;
            };
            let found = self.find(column)?;
            self.must_have_values(&found)?;
            let rows = self.found_rows().unwrap_or_else(|| {
                let doubt = format!(
                    "{}: how long ranges are is not known; they have about {RANGE_ROWS} rows",
                    found.name
                );
                self.doubts.insert(doubt);
                RANGE_ROWS
            });
            let rows = self.rows_alone(rows, &found)?;
            let variables = [variable(from), variable(to)];
            let (first, second) =
                found.range(rows, variables.each_ref().map(String::as_str), self.dialect);
            // The first of a range is set before its last.
            let (low, high) = (from.min(to), from.max(to));
            let sets = first.sets.into_iter().chain(second.sets).collect();
            let (low_given, high_given) = match from < to {
                true => (first.given, second.given),
                false => (second.given, first.given),
            };
            given[low] = Some(Drawn {
                sets,
                given: low_given,
            });
            given[high] = Some(Drawn {
                sets: Vec::new(),
                given: high_given,
            });
        }
        Ok(())
    }

    /// Rows that a call finds, where its answer tells, or what was looked at for it.
    fn found_rows(&self) -> Option<f64> {
        let RowsOfCall { found, examined } = self.rows;
        let statement = self.statement;
        if statement.is_limited && found < 1.0 {
            return None;
        }
        if !statement.is_aggregate {
            return Some(found.max(1.0));
        }
        // Where about all rows were looked at, no index led to those of the range.
        let most = self
            .known
            .first()
            .map_or(0.0, |(_, table)| 0.5 * table.rows);
        let examined = examined.filter(|rows| statement.relations.len() == 1 && *rows < most);
        // MariaDB puts the answer of GROUP BY into a table, which it reads twice to sort it.
        examined.map(|examined| (examined - 2.0 * (found - 1.0)).max(found).max(1.0))
    }

    /// Rows that a condition on this column finds alone, of which `rows` have the values that other columns must have,
    /// too.
    fn rows_alone(&mut self, rows: f64, column: &ImportedColumn) -> Result<f64, LeftOutStatement> {
        let statement = self.statement;
        let mut values: Vec<(&ColumnName, f64)> = Vec::new();
        for role in statement.parameters.iter().flatten() {
            let Role::Equal(name) = role else {
                continue;
            };
            match values.iter_mut().find(|(known, _)| *known == name) {
                Some((_, count)) => *count += 1.0,
                None => values.push((name, 1.0)),
            }
        }
        let mut alone = rows;
        for (name, count) in values {
            alone *= (self.find(name)?.distinct / count).max(1.0);
        }
        Ok(alone.min(column.rows.max(rows)))
    }

    fn must_have_values(&self, column: &ImportedColumn) -> Result<(), LeftOutStatement> {
        match column.has_values() {
            true => Ok(()),
            false => Err(LeftOutStatement::Values(format!(
                "no values of {} are known",
                column.name
            ))),
        }
    }

    fn draw(&mut self, number: usize) -> Result<Drawn, LeftOutStatement> {
        let name = variable(number);
        let plain = |given: &str| Drawn {
            sets: Vec::new(),
            given: given.to_owned(),
        };
        let Some(role) = &self.statement.parameters[number] else {
            return Err(LeftOutStatement::Values(format!(
                "what its parameter {} is compared with is not known",
                number + 1
            )));
        };
        match role {
            Role::Equal(column) | Role::Other(column) => {
                let column = self.find(column)?;
                self.must_have_values(&column)?;
                self.doubts.extend(column.doubt());
                Ok(column.any(&name, self.dialect))
            }
            Role::From(column) => self.one_end(column, End::From, &name),
            Role::To(column) => self.one_end(column, End::To, &name),
            Role::Among(column) => self.among(column, &name),
            Role::Written(column) => {
                let column = self.find(column)?;
                Ok(self.written(&column, &name))
            }
            Role::Inserted(_) => self.inserted_value(role, &name),
            Role::Amount => Ok(Drawn {
                sets: vec![format!("\\set {name} random(1, 100)")],
                given: format!(":{name}"),
            }),
            Role::Limit => Ok(plain(&format!("{:.0}", self.rows.found.round().max(1.0)))),
            Role::Offset => {
                let doubt = "OFFSET is 0 in each call: how many rows calls skipped is not counted";
                self.doubts.insert(doubt.to_owned());
                Ok(plain("0"))
            }
            Role::Told => Ok(plain("1")),
        }
    }

    fn one_end(
        &mut self,
        column: &ColumnName,
        end: End,
        name: &str,
    ) -> Result<Drawn, LeftOutStatement> {
        let column = self.find(column)?;
        self.must_have_values(&column)?;
        self.doubts.extend(column.doubt());
        let rows = self.found_rows().filter(|_| !self.statement.is_limited);
        Ok(match rows {
            Some(rows) => {
                let rows = self.rows_alone(rows, &column)?;
                column.end(end, rows, name, self.dialect)
            }
            None => column.any(name, self.dialect),
        })
    }

    fn among(&mut self, column: &ColumnName, name: &str) -> Result<Drawn, LeftOutStatement> {
        let column = self.find(column)?;
        self.must_have_values(&column)?;
        self.doubts.extend(column.doubt());
        let rows = self.found_rows().unwrap_or(1.0);
        let rows = self.rows_alone(rows, &column)?;
        let per_value = (column.rows / column.distinct.max(1.0)).max(1.0);
        let count = (rows / per_value).round().clamp(1.0, AMONG_MAX) as usize;
        let drawn = (1..=count).map(|each| column.any(&format!("{name}_{each}"), self.dialect));
        let drawn: Vec<Drawn> = drawn.collect();
        let given: Vec<&str> = drawn.iter().map(|drawn| drawn.given.as_str()).collect();
        let given = given.join(", ");
        Ok(Drawn {
            given: match self.dialect {
                // Within the brackets of IN.
                Dialect::MariaDb => given,
                Dialect::Postgres | Dialect::Sqlite => {
                    format!("(ARRAY[{given}]::{}[])", column.type_name)
                }
            },
            sets: drawn.into_iter().flat_map(|drawn| drawn.sets).collect(),
        })
    }

    fn written(&mut self, column: &ImportedColumn, name: &str) -> Drawn {
        match (column.has_values(), column.kind) {
            (true, _) => column.any(name, self.dialect),
            (false, ValueKind::Text) if column.width > 0 => column.filler(name),
            (false, _) => Drawn {
                sets: Vec::new(),
                given: "null".to_owned(),
            },
        }
    }

    fn inserted_value(&mut self, role: &Role, name: &str) -> Result<Drawn, LeftOutStatement> {
        let place = self.inserted_place(role);
        let first = self.known.first().cloned();
        let (Some(place), Some((_, table))) = (place, first) else {
            return Err(LeftOutStatement::Values(
                "the columns that it fills are not known".to_owned(),
            ));
        };
        let column = self.values(&table, place)?;
        match self.fresh.contains(&place) {
            false => Ok(self.written(&column, name)),
            true => column
                .fresh(name, self.dialect)
                .ok_or_else(|| no_keys(&column.name)),
        }
    }
}
