//! A statement as a server's statistics tell it: texts of strangers, with `$1` or `?` where constants stood. It is
//! read, never run. What may be carried out is taken; for anything else there is a reason. Of each parameter it is
//! found which column it meets.

use std::collections::BTreeMap;
use std::ops::ControlFlow;

use spindle_workload::sql::Dialect;
use sqlparser::ast::{
    Assignment, AssignmentTarget, BinaryOperator, Expr, FunctionArguments, Ident, Insert,
    LimitClause, ObjectName, ObjectNamePart, OnConflictAction, OnInsert, Query, Select, SelectItem,
    SetExpr, Spanned, Statement as Parsed, TableFactor, TableObject, Value, Visit, Visitor,
};
use sqlparser::dialect::{Dialect as Grammar, MySqlDialect, PostgreSqlDialect};
use sqlparser::parser::Parser;
use sqlparser::tokenizer::{Location, Token, TokenWithSpan, Tokenizer, Whitespace};

use super::error::LeftOutStatement;
use super::harmless::{is_aggregate, is_harmless};
use spindle_text::quantity::size;
use std::borrow::Cow;

/// Longer texts are left out, bytes.
pub const TEXT_BYTES_MAX: usize = 16 << 10;
/// Parameters of a statement at most.
pub const PARAMETERS_MAX: usize = 1000;
/// Brackets within brackets, and the like.
const DEPTH_MAX: usize = 60;
/// What the variables of scripts begin with. A quoted text that has one of them would be taken for a variable.
pub const VARIABLE: &str = "sampled_";
/// Where servers keep what they know of themselves.
const CATALOGUES: [&str; 6] = [
    "pg_catalog",
    "pg_toast",
    "information_schema",
    "performance_schema",
    "mysql",
    "sys",
];

/// What a statement does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verb {
    /// Reads.
    Select,
    /// Adds rows.
    Insert,
    /// Changes rows.
    Update,
    /// Removes rows.
    Delete,
}

impl Verb {
    /// Its word.
    pub fn word(self) -> &'static str {
        match self {
            Verb::Select => "select",
            Verb::Insert => "insert",
            Verb::Update => "update",
            Verb::Delete => "delete",
        }
    }
}

/// A table that a statement names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NamedTable {
    /// Its name, with its schema before it where that is named.
    pub name: Vec<String>,
    /// What columns have before their point.
    pub alias: String,
}

/// A column that a parameter meets.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ColumnName {
    /// What stands before the point.
    pub qualifier: Option<String>,
    /// Its name.
    pub name: String,
}

/// What a parameter is for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Role {
    /// Rows are looked for whose column has this value.
    Equal(ColumnName),
    /// Rows are looked for whose column has another value.
    Other(ColumnName),
    /// The least value of a range.
    From(ColumnName),
    /// The greatest value of a range.
    To(ColumnName),
    /// An array or a list of values that rows are looked for by.
    Among(ColumnName),
    /// It is written to a column.
    Written(ColumnName),
    /// It is written to a column of the table that rows are added to; without names, by its place.
    Inserted(InsertedColumn),
    /// It is added to a column, or the like.
    Amount,
    /// The most rows that are wanted.
    Limit,
    /// Rows that are passed over.
    Offset,
    /// It is told back.
    Told,
}

/// Which column of the table that rows are added to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum InsertedColumn {
    /// By its name.
    Named(String),
    /// By its place, from 0.
    Nth(usize),
}

/// A part of a statement's text.
#[derive(Debug, Clone, PartialEq, Eq)]
enum StatementPiece {
    Text(String),
    Parameter(usize),
}

/// A statement that may be carried out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Statement {
    /// What it does.
    pub verb: Verb,
    /// It locks the rows that it reads.
    pub locks: bool,
    /// The rows of its answer are not those that it found.
    pub is_aggregate: bool,
    /// It has a limit of rows.
    pub is_limited: bool,
    /// Adding a row that already exists is no error.
    pub forgives_doubles: bool,
    /// Its tables; the one that is changed is the first.
    pub relations: Vec<NamedTable>,
    /// Of each parameter, what it is for; `None`: that is not understood.
    pub parameters: Vec<Option<Role>>,
    parts: Vec<StatementPiece>,
}

impl Statement {
    /// Its text in the language of scripts, `given` in the places of parameters.
    pub fn script(&self, given: &[String]) -> String {
        let parts = self.parts.iter().map(|part| match part {
            StatementPiece::Text(text) => text.as_str(),
            StatementPiece::Parameter(number) => &given[*number],
        });
        parts.collect::<String>().trim().to_owned()
    }
}

/// Reads a statement.
///
/// # Errors
/// Why it is left out.
pub fn read(text: &str, dialect: Dialect) -> Result<Statement, LeftOutStatement> {
    let too_long = || out(format!("it is longer than {}", size(TEXT_BYTES_MAX as u64)));
    if text.len() > TEXT_BYTES_MAX {
        return Err(too_long());
    }
    let is_control = |letter: char| letter.is_control() && !matches!(letter, '\n' | '\r' | '\t');
    if text.contains(is_control) {
        return Err(out("it has control characters"));
    }
    if text.contains("/*!") || text.contains("/*M!") {
        return Err(out("it has a comment that the server carries out"));
    }
    let grammar: &dyn Grammar = match dialect {
        Dialect::MariaDb => &MySqlDialect {},
        Dialect::Postgres | Dialect::Sqlite => &PostgreSqlDialect {},
    };
    let not_understood = |error: String| out(format!("it is not understood: {error}"));
    let tokens = Tokenizer::new(grammar, text)
        .with_unescape(false)
        .tokenize_with_location()
        .map_err(|error| not_understood(error.to_string()))?;
    let (parts, places, count) = parts_of(text, &tokens)?;
    let parsed = Parser::new(grammar)
        .with_recursion_limit(DEPTH_MAX)
        .with_tokens_with_locations(tokens)
        .parse_statements()
        .map_err(|error| not_understood(error.to_string()))?;
    let [parsed] = &parsed[..] else {
        return Err(out("it is not one statement"));
    };
    let verb = match parsed {
        Parsed::Query(_) => Verb::Select,
        Parsed::Insert(_) => Verb::Insert,
        Parsed::Update(_) => Verb::Update,
        Parsed::Delete(_) => Verb::Delete,
        _ => return Err(out("it is neither SELECT nor INSERT, UPDATE or DELETE")),
    };
    let mut look = Look {
        dialect,
        places,
        roles: vec![None; count],
        relations: Vec::new(),
        temporary: Vec::new(),
        changes: false,
        locks: false,
        is_aggregate: false,
        is_limited: false,
        forgives_doubles: false,
    };
    if let ControlFlow::Break(reason) = parsed.visit(&mut look) {
        return Err(*reason);
    }
    let temporary = std::mem::take(&mut look.temporary);
    look.relations
        .retain(|relation| relation.name.len() > 1 || !temporary.contains(&relation.name[0]));
    Ok(Statement {
        // A query that changes something in a part of it is a change.
        verb: match (verb, look.changes) {
            (Verb::Select, true) => Verb::Update,
            (verb, _) => verb,
        },
        locks: look.locks,
        is_aggregate: look.is_aggregate,
        is_limited: look.is_limited,
        forgives_doubles: look.forgives_doubles,
        relations: look.relations,
        parameters: look.roles,
        parts,
    })
}

/// Which parameter stands at a place.
type Places = BTreeMap<(u64, u64), usize>;

/// The text in parts, without comments, and as scripts have it: a colon alone is no variable there. Also where its
/// parameters stand, and how many there are.
fn parts_of(
    text: &str,
    tokens: &[TokenWithSpan],
) -> Result<(Vec<StatementPiece>, Places, usize), LeftOutStatement> {
    let offsets = offsets(text, tokens);
    let (mut parts, mut places, mut count) = (Vec::new(), Places::new(), 0);
    let ends = offsets.iter().skip(1).copied().chain([text.len()]);
    for ((token, start), end) in tokens.iter().zip(&offsets).zip(ends) {
        let written = &text[*start..end];
        let kept = match &token.token {
            Token::Placeholder(name) => {
                let number = match name.strip_prefix('$') {
                    Some(digits) => digits.parse::<usize>().ok().and_then(|n| n.checked_sub(1)),
                    None if name == "?" => Some(count),
                    None => None,
                };
                let number = number.filter(|number| *number < PARAMETERS_MAX);
                let number = number.ok_or_else(|| out(format!("it has a parameter {name:?}")))?;
                count = count.max(number + 1);
                let Location { line, column } = token.span.start;
                places.insert((line, column), number);
                parts.push(StatementPiece::Parameter(number));
                continue;
            }
            Token::Whitespace(
                Whitespace::SingleLineComment { .. } | Whitespace::MultiLineComment(_),
            ) => " ",
            Token::SemiColon if text[end..].trim().is_empty() => "",
            Token::SemiColon | Token::Backslash | Token::Assignment => {
                return Err(out(format!("it has {written:?} in an odd place")));
            }
            Token::Colon => "\\:",
            Token::EOF => "",
            _ if written.contains(&format!(":{VARIABLE}")) || written.contains(":chance") => {
                return Err(out("a quoted text looks like a variable of scripts"));
            }
            _ => written,
        };
        match parts.last_mut() {
            Some(StatementPiece::Text(text)) => text.push_str(kept),
            _ => parts.push(StatementPiece::Text(kept.to_owned())),
        }
    }
    Ok((parts, places, count))
}

/// Where each token begins in the text, in bytes.
fn offsets(text: &str, tokens: &[TokenWithSpan]) -> Vec<usize> {
    let mut found = Vec::with_capacity(tokens.len());
    let (mut line, mut column) = (1, 1);
    let mut letters = text.char_indices();
    let mut at = 0;
    for token in tokens {
        let Location {
            line: to_line,
            column: to_column,
        } = token.span.start;
        while (line, column) < (to_line, to_column) {
            let Some((start, letter)) = letters.next() else {
                break;
            };
            at = start + letter.len_utf8();
            (line, column) = match letter {
                '\n' => (line + 1, 1),
                _ => (line, column + 1),
            };
        }
        found.push(at);
    }
    found
}

/// Walks through a statement.
struct Look {
    dialect: Dialect,
    places: Places,
    roles: Vec<Option<Role>>,
    relations: Vec<NamedTable>,
    /// Names that `WITH` gives.
    temporary: Vec<String>,
    changes: bool,
    locks: bool,
    is_aggregate: bool,
    is_limited: bool,
    forgives_doubles: bool,
}

/// What a parameter is for that meets a column.
type OfColumn = fn(ColumnName) -> Role;

/// Why a statement is left out; boxed, as it is handed through every part of a statement.
type Reason = Box<LeftOutStatement>;

fn out(reason: impl Into<Cow<'static, str>>) -> LeftOutStatement {
    LeftOutStatement::Statement(reason.into())
}

fn leave(reason: impl Into<Cow<'static, str>>) -> ControlFlow<Reason> {
    ControlFlow::Break(Box::new(out(reason)))
}

impl Look {
    fn name(&self, ident: &Ident) -> String {
        match (self.dialect, ident.quote_style) {
            (Dialect::Postgres, None) => ident.value.to_lowercase(),
            _ => ident.value.clone(),
        }
    }

    /// The parts of a name; `None`: one of them is calculated.
    fn names(&self, name: &ObjectName) -> Option<Vec<String>> {
        let parts = name.0.iter().map(|part| match part {
            ObjectNamePart::Identifier(ident) => Some(self.name(ident)),
            ObjectNamePart::Function(_) => None,
        });
        parts.collect()
    }

    fn relate(&mut self, name: &ObjectName, alias: Option<&Ident>) -> ControlFlow<Reason> {
        let Some(name) = self.names(name).filter(|name| !name.is_empty()) else {
            return leave("a table's name is calculated");
        };
        let of_catalogue = match &name[..] {
            [table] => table.starts_with("pg_"),
            [.., schema, _] => CATALOGUES.contains(&schema.to_lowercase().as_str()),
            [] => false,
        };
        if of_catalogue {
            return leave("it asks for what the server knows of itself");
        }
        if self.dialect == Dialect::MariaDb && name.len() > 1 {
            return leave(
                "it names another database, and those of the mix have their tables in one",
            );
        }
        let last = name.last().cloned().unwrap_or_default();
        let alias = alias.map_or(last, |alias| self.name(alias));
        self.relations.push(NamedTable { name, alias });
        ControlFlow::Continue(())
    }

    /// The parameter that an expression is.
    fn parameter(&self, expr: &Expr) -> Option<usize> {
        match expr {
            Expr::Value(value) if matches!(value.value, Value::Placeholder(_)) => {
                let Location { line, column } = value.span().start;
                self.places.get(&(line, column)).copied()
            }
            Expr::Nested(inner) | Expr::Cast { expr: inner, .. } => self.parameter(inner),
            _ => None,
        }
    }

    /// The column that an expression is.
    fn column(&self, expr: &Expr) -> Option<ColumnName> {
        match expr {
            Expr::Identifier(name) => Some(ColumnName {
                qualifier: None,
                name: self.name(name),
            }),
            Expr::CompoundIdentifier(names) => {
                let [.., qualifier, name] = &names[..] else {
                    return None;
                };
                Some(ColumnName {
                    qualifier: Some(self.name(qualifier)),
                    name: self.name(name),
                })
            }
            Expr::Nested(inner) | Expr::Cast { expr: inner, .. } => self.column(inner),
            _ => None,
        }
    }

    /// Notes what a parameter is for, if this is one; what was found first counts.
    fn note(&mut self, expr: &Expr, role: impl FnOnce() -> Role) {
        if let Some(parameter) = self.parameter(expr)
            && let Some(known) = self.roles.get_mut(parameter)
        {
            known.get_or_insert_with(role);
        }
    }

    fn meet(&mut self, column: &Expr, expr: &Expr, role: OfColumn) {
        match (column, expr) {
            (Expr::Tuple(columns), Expr::Tuple(exprs)) => {
                for (column, expr) in columns.iter().zip(exprs) {
                    self.meet(column, expr, role);
                }
            }
            _ => {
                if let Some(column) = self.column(column) {
                    self.note(expr, || role(column));
                }
            }
        }
    }

    fn compare(&mut self, left: &Expr, op: &BinaryOperator, right: &Expr) {
        let (to_right, to_left): (OfColumn, OfColumn) = match op {
            BinaryOperator::Eq | BinaryOperator::Spaceship => (Role::Equal, Role::Equal),
            BinaryOperator::NotEq => (Role::Other, Role::Other),
            BinaryOperator::Gt | BinaryOperator::GtEq => (Role::From, Role::To),
            BinaryOperator::Lt | BinaryOperator::LtEq => (Role::To, Role::From),
            BinaryOperator::Plus | BinaryOperator::Minus | BinaryOperator::Multiply => {
                (|_| Role::Amount, |_| Role::Amount)
            }
            _ => return,
        };
        self.meet(left, right, to_right);
        self.meet(right, left, to_left);
    }

    fn assign(&mut self, assignments: &[Assignment]) {
        for Assignment { target, value } in assignments {
            let AssignmentTarget::ColumnName(name) = target else {
                continue;
            };
            let last = self.names(name).and_then(|mut names| names.pop());
            if let Some(name) = last {
                self.note(value, || {
                    Role::Written(ColumnName {
                        qualifier: None,
                        name,
                    })
                });
            }
        }
    }

    fn insert(&mut self, insert: &Insert) -> ControlFlow<Reason> {
        let TableObject::TableName(table) = &insert.table else {
            return leave("it adds rows to no table");
        };
        let alias = insert.table_alias.as_ref().map(|alias| &alias.alias);
        self.relate(table, alias)?;
        self.changes = true;
        self.forgives_doubles |= insert.ignore || insert.replace_into || insert.on.is_some();
        let columns: Vec<Option<String>> = insert
            .columns
            .iter()
            .map(|name| self.names(name).and_then(|mut names| names.pop()))
            .collect();
        let place = |number: usize| match columns.get(number) {
            Some(Some(name)) => InsertedColumn::Named(name.clone()),
            _ => InsertedColumn::Nth(number),
        };
        if let Some(source) = &insert.source {
            let mut rows: Vec<Vec<&Expr>> = Vec::new();
            match &*source.body {
                SetExpr::Values(values) => {
                    rows.extend(values.rows.iter().map(|row| row.iter().collect()));
                }
                SetExpr::Select(select) => rows.push(
                    select
                        .projection
                        .iter()
                        .map_while(|item| match item {
                            SelectItem::UnnamedExpr(expr) => Some(expr),
                            SelectItem::ExprWithAlias { expr, .. } => Some(expr),
                            _ => None,
                        })
                        .collect(),
                ),
                _ => {}
            }
            for row in rows {
                for (number, expr) in row.into_iter().enumerate() {
                    self.note(expr, || Role::Inserted(place(number)));
                }
            }
        }
        self.assign(&insert.assignments);
        match &insert.on {
            Some(OnInsert::DuplicateKeyUpdate(assignments)) => self.assign(assignments),
            Some(OnInsert::OnConflict(on)) => {
                if let OnConflictAction::DoUpdate(update) = &on.action {
                    self.assign(&update.assignments);
                }
            }
            _ => {}
        }
        ControlFlow::Continue(())
    }
}

impl Visitor for Look {
    type Break = Reason;

    fn pre_visit_statement(&mut self, statement: &Parsed) -> ControlFlow<Reason> {
        match statement {
            Parsed::Query(_) => {}
            Parsed::Insert(insert) => self.insert(insert)?,
            Parsed::Update(update) => {
                self.changes = true;
                self.assign(&update.assignments);
                if let Some(limit) = &update.limit {
                    self.note(limit, || Role::Limit);
                }
            }
            Parsed::Delete(delete) => {
                self.changes = true;
                if let Some(limit) = &delete.limit {
                    self.note(limit, || Role::Limit);
                }
            }
            _ => return leave("a part of it is neither SELECT nor INSERT, UPDATE or DELETE"),
        }
        ControlFlow::Continue(())
    }

    fn pre_visit_query(&mut self, query: &Query) -> ControlFlow<Reason> {
        if let Some(with) = &query.with {
            let names = with
                .cte_tables
                .iter()
                .map(|table| self.name(&table.alias.name));
            let names: Vec<String> = names.collect();
            self.temporary.extend(names);
        }
        self.locks |= !query.locks.is_empty();
        match &query.limit_clause {
            Some(LimitClause::LimitOffset { limit, offset, .. }) => {
                self.is_limited |= limit.is_some();
                if let Some(limit) = limit {
                    self.note(limit, || Role::Limit);
                }
                if let Some(offset) = offset {
                    self.note(&offset.value, || Role::Offset);
                }
            }
            Some(LimitClause::OffsetCommaLimit { offset, limit }) => {
                self.is_limited = true;
                self.note(limit, || Role::Limit);
                self.note(offset, || Role::Offset);
            }
            None => {}
        }
        ControlFlow::Continue(())
    }

    fn pre_visit_select(&mut self, select: &Select) -> ControlFlow<Reason> {
        if select.into.is_some() {
            return leave("its answer becomes a table, a file or a variable");
        }
        self.is_aggregate |= select.distinct.is_some();
        for item in &select.projection {
            if let SelectItem::UnnamedExpr(expr) | SelectItem::ExprWithAlias { expr, .. } = item {
                self.note(expr, || Role::Told);
            }
        }
        ControlFlow::Continue(())
    }

    fn pre_visit_table_factor(&mut self, factor: &TableFactor) -> ControlFlow<Reason> {
        match factor {
            TableFactor::Table {
                name,
                alias,
                args: None,
                ..
            } => self.relate(name, alias.as_ref().map(|alias| &alias.name)),
            TableFactor::Derived { .. } | TableFactor::NestedJoin { .. } => {
                ControlFlow::Continue(())
            }
            _ => leave("it reads from a function"),
        }
    }

    fn pre_visit_expr(&mut self, expr: &Expr) -> ControlFlow<Reason> {
        match expr {
            Expr::BinaryOp { left, op, right } => self.compare(left, op, right),
            Expr::Between {
                expr, low, high, ..
            } => {
                self.meet(expr, low, Role::From);
                self.meet(expr, high, Role::To);
            }
            Expr::InList {
                expr,
                list,
                negated,
            } => {
                let role: OfColumn = match (self.dialect, &list[..]) {
                    _ if *negated => Role::Other,
                    // How many values there were, digests do not tell.
                    (Dialect::MariaDb, [_]) => Role::Among,
                    _ => Role::Equal,
                };
                for item in list {
                    self.meet(expr, item, role);
                }
            }
            Expr::AnyOp {
                left,
                compare_op: BinaryOperator::Eq,
                right,
                ..
            } => self.meet(left, right, Role::Among),
            Expr::Function(function) => {
                let name = self.names(&function.name).unwrap_or_default();
                let name = match &name[..] {
                    [name] => name.to_lowercase(),
                    [schema, name] if schema == "pg_catalog" => name.to_lowercase(),
                    _ => String::new(),
                };
                if !is_harmless(&name) {
                    return leave(format!(
                        "it calls {}, and what that does is not known",
                        function.name
                    ));
                }
                let is_called = !matches!(function.args, FunctionArguments::None);
                self.is_aggregate |= is_called && is_aggregate(&name) && function.over.is_none();
            }
            _ => {}
        }
        ControlFlow::Continue(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(text: &str) -> Statement {
        read(text, Dialect::Postgres).unwrap_or_else(|why| panic!("{text}: {why}"))
    }

    fn column(qualifier: Option<&str>, name: &str) -> ColumnName {
        ColumnName {
            qualifier: qualifier.map(str::to_owned),
            name: name.to_owned(),
        }
    }

    #[test]
    fn parameters_meet_columns() {
        let statement = of(
            "SELECT $1 AS one, \"Odd\" FROM shop.items AS i JOIN o ON o.item = i.id \
             WHERE i.id = $2 AND $3 < o.placed AND (code)::text IN ($4, $5) AND k = ANY ($6) \
             AND a BETWEEN $7 AND $8 AND length(code) > $9 ORDER BY 1 LIMIT $10 OFFSET $11",
        );
        let roles = [
            Some(Role::Told),
            Some(Role::Equal(column(Some("i"), "id"))),
            Some(Role::From(column(Some("o"), "placed"))),
            Some(Role::Equal(column(None, "code"))),
            Some(Role::Equal(column(None, "code"))),
            Some(Role::Among(column(None, "k"))),
            Some(Role::From(column(None, "a"))),
            Some(Role::To(column(None, "a"))),
            None,
            Some(Role::Limit),
            Some(Role::Offset),
        ];
        assert_eq!(statement.parameters, roles);
        assert_eq!(statement.relations[0].name, ["shop", "items"]);
        assert_eq!(statement.relations[0].alias, "i");
        assert!(statement.is_limited && !statement.is_aggregate);
        let statement = of(
            "insert into t (a, b) values ($1, $2), ($3, now()) on conflict (a) do update set b = $4",
        );
        let inserted = |name: &str| Some(Role::Inserted(InsertedColumn::Named(name.to_owned())));
        let written = Some(Role::Written(column(None, "b")));
        assert_eq!(
            statement.parameters,
            [inserted("a"), inserted("b"), inserted("a"), written.clone()]
        );
        assert!(statement.forgives_doubles);
        let statement = of("select a from t where a <> $1 and b not in ($2)");
        let others = ["a", "b"].map(|name| Some(Role::Other(column(None, name))));
        assert_eq!(statement.parameters, others);
        let listed = read("select a from t where b in (?)", Dialect::MariaDb).unwrap();
        assert_eq!(listed.parameters, [Some(Role::Among(column(None, "b")))]);
        let statement = of("update t set b = $1, n = n + $2 where k = $3");
        let key = Some(Role::Equal(column(None, "k")));
        assert_eq!(statement.parameters, [written, Some(Role::Amount), key]);
        assert_eq!(statement.verb, Verb::Update);
    }

    #[test]
    fn a_text_is_kept_without_its_comments() {
        let given = |count: usize| (1..=count).map(|n| format!(":v{n}")).collect::<Vec<_>>();
        let statement = of(
            "select é, a::int, b[1:2] -- one; \\set\n from t /* two :v */ where \"x$1\" = $2 and c = $1::text and d = '$3' ;",
        );
        assert_eq!(
            statement.script(&given(2)),
            "select é, a::int, b[1\\:2]  \n from t   where \"x$1\" = :v2 and c = :v1::text and d = '$3'"
        );
    }

    #[test]
    fn what_may_do_more_than_read_and_change_rows_is_left_out() {
        let long = format!("select {} from t", "1+".repeat(9000));
        for (text, why) in [
            ("do $$ begin end $$", "it is not understood"),
            ("vacuum t", "neither SELECT nor"),
            ("drop table t", "neither SELECT nor"),
            ("copy t to stdout", "neither SELECT nor"),
            ("select 1; drop table t", "in an odd place"),
            ("select pg_sleep($1)", "it calls pg_sleep"),
            (
                "select a from t where pg_terminate_backend(a)",
                "it calls pg_terminate_backend",
            ),
            ("select mine.count(*) from t", "it calls mine.count"),
            ("select * from pg_read_file($1)", "it reads from a function"),
            (
                "select * from generate_series($1, $2)",
                "it reads from a function",
            ),
            ("select * into copied from t", "its answer becomes"),
            (
                "select * from pg_stat_activity",
                "what the server knows of itself",
            ),
            (
                "delete from pg_catalog.pg_class",
                "what the server knows of itself",
            ),
            (
                "with x as (insert into t values (1) returning a) select dblink_exec(a) from x",
                "it calls dblink_exec",
            ),
            ("select a \\! ls", "in an odd place"),
            ("select 'a\u{1b}[2J'", "control characters"),
            ("select ':sampled_1'", "looks like a variable"),
            ("select $0", "a parameter \"$0\""),
            ("select $99999999999999999999", "a parameter"),
            ("select 'a", "it is not understood"),
            ("", "it is not one statement"),
            (&long, "longer than 16 KiB"),
        ] {
            match read(text, Dialect::Postgres) {
                Ok(read) => panic!("{text}: {read:?}"),
                Err(said) => assert!(said.to_string().contains(why), "{text}: {said}"),
            }
        }
    }
}
