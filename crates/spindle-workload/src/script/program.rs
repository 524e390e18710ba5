//! Scripts as steps that a client takes one after the other: commands are read, conditions are jumps, variables are
//! numbers, and statements have parameters where variables stand. What cannot work is told here, with its place.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use spindle_text::section::TextFile;

use super::beyond;
use super::expression::{Expression, Names, parse};
use super::lexer::{is_name, tokens};
use super::makes::{made_by, names_any};
use super::mistake::{Mistake, Places, shown};
use super::scanner::{Command, Piece, Statement, StatementPart, pieces};
use super::value::Variable;
use crate::session::{Complaint, SessionError};
use crate::sql::Dialect;

/// What a client does next.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Step {
    /// `\set`.
    Set {
        variable: usize,
        expression: Expression,
        place: String,
    },
    /// A statement, by its number among those prepared.
    Statement {
        number: usize,
        /// The variables that are its parameters.
        parameters: Vec<usize>,
        keep: Option<Keep>,
    },
    /// Begins or ends a transaction, where that cannot be prepared; and its place.
    Control(Control, String),
    /// Continues at another step when the condition is not true.
    JumpUnless {
        condition: Expression,
        to: usize,
        place: String,
    },
    Jump(usize),
    Sleep {
        time: Time,
        unit_us: u64,
        place: String,
    },
    Pipeline(Pipeline, String),
}

/// What begins and ends a transaction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Control {
    Begin,
    Commit,
    Rollback,
}

/// A command of pipelines.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Pipeline {
    Start,
    Sync,
    End,
}

/// `\gset` or `\aset`: the columns of an answer become variables.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Keep {
    /// What the names of the variables begin with, before those of the columns.
    pub prefix: String,
    /// The answer must be one row; else it may be none, and the last counts.
    pub is_one: bool,
}

/// How long to sleep.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Time {
    Of(i64),
    Variable(usize),
}

/// A script.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Script {
    pub name: String,
    pub weight: u32,
    pub steps: Vec<Step>,
}

/// A statement and where it stands, in words.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Placed {
    pub sql: String,
    pub place: String,
}

/// Scripts that are carried out together.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Program {
    pub scripts: Vec<Script>,
    pub statements: Vec<Placed>,
    pub names: Names,
    /// Of each name, what every client begins with.
    pub beginning: Vec<Variable>,
    /// Names of what its own statements make.
    made: BTreeSet<String>,
    /// Statements between `\if` and `\endif`.
    conditional: BTreeSet<usize>,
    /// Variables that may be something else than what they begin with.
    pub changing: BTreeSet<usize>,
}

impl Program {
    /// Whether a statement that the database refuses to prepare may be fit when its turn comes, or has none: it is not
    /// written wrongly, and stands between `\if` and `\endif`, or the refusal names something that the program itself
    /// makes.
    pub fn may_wait(&self, statement: usize, refusal: &SessionError) -> bool {
        let is_conditional = || self.conditional.contains(&statement);
        refusal.complaint() != Some(Complaint::Syntax)
            && (is_conditional() || names_any(&refusal.to_string(), &self.made))
    }
}

/// Commands that people bring along from scripts of psql.
const OF_PSQL: [&str; 16] = [
    "c", "connect", "copy", "d", "echo", "g", "gexec", "gx", "i", "ir", "o", "pset", "q", "timing",
    "watch", "x",
];
/// Variables that every client has: of the client, of chance, and the scale.
pub(super) const OF_CLIENTS: [&str; 4] = ["client_id", "default_seed", "random_seed", "scale"];

/// A mistake, and the file that it is in.
pub(crate) type FileMistake<'a> = (&'a TextFile, Mistake);

/// Reads scripts; `defined` are variables that they begin with.
///
/// # Errors
/// The first mistake.
pub(super) fn read<'a>(
    files: &'a [TextFile],
    defined: &BTreeMap<String, String>,
    dialect: Dialect,
) -> Result<Program, FileMistake<'a>> {
    let mut reader = Reader {
        dialect,
        names: Names::default(),
        statements: Vec::new(),
        conditional: BTreeSet::new(),
        set: BTreeSet::new(),
        prefixes: BTreeSet::new(),
        used: Vec::new(),
        quoted: Vec::new(),
    };
    for name in OF_CLIENTS
        .iter()
        .copied()
        .chain(defined.keys().map(String::as_str))
    {
        let number = reader.names.number(name);
        reader.set.insert(number);
    }
    let mut scripts: Vec<Script> = Vec::new();
    for (number, file) in files.iter().enumerate() {
        let steps = reader
            .script(number, file)
            .map_err(|mistake| (file, mistake))?;
        let name = last_part(&file.name);
        let before = files[..number].iter();
        let alike = before
            .filter(|other| last_part(&other.name) == name)
            .count();
        scripts.push(Script {
            name: match alike {
                0 => name.to_owned(),
                alike => format!("{name} ({})", alike + 1),
            },
            weight: file.weight,
            steps,
        });
    }
    reader
        .check_variables()
        .map_err(|(file, mistake)| (&files[file], mistake))?;
    let beginning = (0..reader.names.len()).map(|number| {
        let value = defined.get(reader.names.name(number));
        value.map_or(Variable::Unset, |text| Variable::of_text(text))
    });
    let made = reader.statements.iter().flat_map(|of| made_by(&of.sql));
    Ok(Program {
        made: made.collect(),
        changing: reader.changing(&scripts),
        beginning: beginning.collect(),
        scripts,
        statements: reader.statements,
        names: reader.names,
        conditional: reader.conditional,
    })
}

/// Reads a file of statements alone, in which variables are replaced by what they are defined as. Those are refused for
/// which `unfit` has a reason.
///
/// # Errors
/// The first mistake.
pub(super) fn statements<'a>(
    file: &'a TextFile,
    defined: &BTreeMap<String, String>,
    dialect: Dialect,
    unfit: fn(&str, Dialect) -> Option<&'static str>,
) -> Result<Vec<Placed>, FileMistake<'a>> {
    let in_file = |mistake| (file, mistake);
    let (mut all, mut places) = (Vec::new(), Places::new(file));
    for piece in pieces(&file.text, dialect).map_err(in_file)? {
        let statement = match piece {
            Piece::Statement(statement) => statement,
            Piece::Command(command) => {
                let message = format!(
                    "a file of this kind has statements only, no commands: {}",
                    instead_of(&command.name)
                );
                return Err(in_file(Mistake::new(command.span, message)));
            }
        };
        let mut sql = String::new();
        for part in &statement.parts {
            match part {
                StatementPart::Text(text) => sql.push_str(text),
                StatementPart::Variable(name, span) => {
                    let unknown = || Mistake::new(span.clone(), undefined(name));
                    sql.push_str(defined.get(name).ok_or_else(unknown).map_err(in_file)?);
                }
            }
        }
        if let Some(reason) = unfit(&sql, dialect) {
            return Err(in_file(Mistake::new(statement.span, reason)));
        }
        let place = places.at(statement.span.start);
        all.push(Placed { sql, place });
    }
    Ok(all)
}

/// What to do instead of a command in a file of statements.
fn instead_of(command: &str) -> &'static str {
    match command {
        "connect" | "c" => "one database is loaded, and the experiment says which",
        "copy" => "load a dump, or write insert",
        "i" | "ir" | "include" | "include_relative" => "name the other file in the list, too",
        "set" | "gset" | "if" | "elif" | "else" | "endif" => {
            "values of variables stand under define in [workload]"
        }
        _ => "leave it out",
    }
}

/// What people call a file: the last part of its path.
fn last_part(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or(path)
}

fn undefined(name: &str) -> String {
    format!("nothing sets :{name}; define = {{ {name} = ... }} in [workload] does")
}

struct Reader {
    dialect: Dialect,
    names: Names,
    statements: Vec<Placed>,
    conditional: BTreeSet<usize>,
    /// Variables that something sets.
    set: BTreeSet<usize>,
    /// What the names of those that answers set begin with.
    prefixes: BTreeSet<String>,
    /// Variables that are asked for: number, file and place.
    used: Vec<(usize, usize, Range<usize>)>,
    /// What looks like variables within quotes.
    quoted: Vec<(String, usize, Range<usize>)>,
}

/// An `\if` whose `\endif` has not come.
struct OpenIf {
    span: Range<usize>,
    /// The jump that the next branch is the aim of.
    to_next: Option<usize>,
    /// The jumps to the end.
    to_end: Vec<usize>,
    has_else: bool,
}

/// A script being read.
struct Body<'a> {
    file: &'a TextFile,
    places: Places<'a>,
    number: usize,
    steps: Vec<Step>,
    open: Vec<OpenIf>,
    pipeline: Option<Range<usize>>,
    /// The last piece was a statement that no `\gset` follows yet.
    may_keep: bool,
}

impl Reader {
    fn script(&mut self, number: usize, file: &TextFile) -> Result<Vec<Step>, Mistake> {
        let mut body = Body {
            file,
            places: Places::new(file),
            number,
            steps: Vec::new(),
            open: Vec::new(),
            pipeline: None,
            may_keep: false,
        };
        for piece in pieces(&file.text, self.dialect)? {
            match piece {
                Piece::Statement(statement) => self.statement(&mut body, statement)?,
                Piece::Command(command) => self.command(&mut body, &command)?,
            }
        }
        if let Some(open) = body.open.pop() {
            return Err(Mistake::new(open.span, "\\if without matching \\endif"));
        }
        if let Some(span) = body.pipeline {
            return Err(Mistake::new(
                span,
                "\\startpipeline without matching \\endpipeline",
            ));
        }
        match body.steps.is_empty() {
            true => Err(Mistake::new(0..0, "there is no command in this script")),
            false => Ok(body.steps),
        }
    }

    fn statement(&mut self, body: &mut Body<'_>, statement: Statement) -> Result<(), Mistake> {
        if let Some(joined) = statement.joined {
            let message = "statements that \\; joins cannot be prepared; end each with a semicolon";
            return Err(Mistake::new(joined, message));
        }
        if let Some(parameter) = statement.parameter {
            let message = "parameters are Spindle's own; write a variable, such as :aid";
            return Err(Mistake::new(parameter, message));
        }
        if let Some((name, span)) = statement.within {
            let message = format!(
                "a prepared statement has no parameters within names: :{name} would not be replaced; write a statement for each name"
            );
            return Err(Mistake::new(span, message));
        }
        let quoted = statement.quoted.into_iter();
        self.quoted
            .extend(quoted.map(|(name, span)| (name, body.number, span)));
        let (mut sql, mut parameters) = (String::new(), Vec::new());
        for part in &statement.parts {
            match part {
                StatementPart::Text(text) => sql.push_str(text),
                StatementPart::Variable(name, span) => {
                    let variable = self.names.number(name);
                    self.used.push((variable, body.number, span.clone()));
                    parameters.push(variable);
                    sql.push_str(&format!("${}", parameters.len()));
                }
            }
        }
        if let Some(reason) = beyond::unfit(&sql, self.dialect) {
            return Err(Mistake::new(statement.span, reason));
        }
        let place = body.places.at(statement.span.start);
        // PostgreSQL prepares these as pgbench does; others do not.
        let control = control(&sql).filter(|_| self.dialect != Dialect::Postgres);
        body.may_keep = control.is_none();
        body.steps.push(match control {
            Some(control) => Step::Control(control, place),
            None => {
                let number = self.statements.len();
                self.statements.push(Placed { sql, place });
                if !body.open.is_empty() {
                    self.conditional.insert(number);
                }
                Step::Statement {
                    number,
                    parameters,
                    keep: None,
                }
            }
        });
        Ok(())
    }

    fn command(&mut self, body: &mut Body<'_>, command: &Command) -> Result<(), Mistake> {
        let words = command.words(&body.file.text);
        let no_arguments = || match words.first() {
            Some((_, span)) => Err(Mistake::new(
                span.clone(),
                format!("\\{} takes no argument", command.name),
            )),
            None => Ok(()),
        };
        match command.name.as_str() {
            "set" => self.set(body, command)?,
            "if" => {
                let jump = self.condition(body, command)?;
                body.open.push(OpenIf {
                    span: command.span.clone(),
                    to_next: Some(jump),
                    to_end: Vec::new(),
                    has_else: false,
                });
            }
            "elif" => {
                body.next_branch(command)?;
                let jump = self.condition(body, command)?;
                body.innermost(command)?.to_next = Some(jump);
            }
            "else" => {
                no_arguments()?;
                body.next_branch(command)?;
                body.innermost(command)?.has_else = true;
            }
            "endif" => {
                no_arguments()?;
                body.end_if(command)?;
            }
            "sleep" => self.sleep(body, command, &words)?,
            "gset" | "aset" => self.keep(body, command, &words)?,
            "startpipeline" | "syncpipeline" | "endpipeline" => {
                no_arguments()?;
                body.pipeline(command, self.dialect)?;
            }
            "setshell" | "shell" => {
                let message = format!(
                    "\\{} runs a program on the clients' machine, and its time would be measured as the database's: \
                     calculate with \\set, or define = {{ ... }} before the run",
                    command.name
                );
                return Err(Mistake::new(command.span.clone(), message));
            }
            "setrandom" => {
                let message =
                    "\\setrandom went with PostgreSQL 9.6: write \\set NAME random(LEAST, MOST)";
                return Err(Mistake::new(command.span.clone(), message));
            }
            name if OF_PSQL.contains(&name) => {
                let message =
                    format!("\\{name} is a command of psql, and not of pgbench: leave it out");
                return Err(Mistake::new(command.span.clone(), message));
            }
            name => {
                let message = format!(
                    "there is no command \\{name}; there are \\set, \\if, \\elif, \\else, \\endif, \\sleep, \\gset, \\aset, \
                     \\startpipeline, \\syncpipeline and \\endpipeline"
                );
                return Err(Mistake::new(command.span.clone(), message));
            }
        }
        body.may_keep = false;
        Ok(())
    }

    /// The expression from a place to the end of a command; notes the variables that it asks for.
    fn expression(
        &mut self,
        body: &Body<'_>,
        command: &Command,
        start: usize,
    ) -> Result<Expression, Mistake> {
        let tokens = tokens(&body.file.text[..command.arguments.end], start)?;
        let expression = parse(&tokens, &mut self.names)?;
        for token in tokens {
            // Within a condition, it may never be evaluated.
            if let super::lexer::TokenKind::Variable(name) = token.kind
                && body.open.is_empty()
            {
                self.used
                    .push((self.names.number(&name), body.number, token.span));
            }
        }
        Ok(expression)
    }

    fn set(&mut self, body: &mut Body<'_>, command: &Command) -> Result<(), Mistake> {
        let words = command.words(&body.file.text);
        let Some((name, span)) = words.first().cloned() else {
            return Err(Mistake::new(
                command.span.clone(),
                "\\set takes a variable and an expression",
            ));
        };
        if !is_name(name) {
            return Err(Mistake::new(
                span,
                format!("{} is not a name of a variable", shown(name)),
            ));
        }
        let expression = self.expression(body, command, span.end)?;
        let variable = self.names.number(name);
        self.set.insert(variable);
        let place = body.places.at(command.span.start);
        body.steps.push(Step::Set {
            variable,
            expression,
            place,
        });
        Ok(())
    }

    /// The step of a condition, which does not know yet where it jumps to; its number.
    fn condition(&mut self, body: &mut Body<'_>, command: &Command) -> Result<usize, Mistake> {
        let condition = self.expression(body, command, command.arguments.start)?;
        let place = body.places.at(command.span.start);
        body.steps.push(Step::JumpUnless {
            condition,
            to: 0,
            place,
        });
        Ok(body.steps.len() - 1)
    }

    fn sleep(
        &mut self,
        body: &mut Body<'_>,
        command: &Command,
        words: &[(&str, Range<usize>)],
    ) -> Result<(), Mistake> {
        let (number, unit, span) = match words {
            [(first, span)] if !first.starts_with(':') => {
                let sign = usize::from(first.starts_with(['+', '-']));
                let digits = first[sign..].find(|letter: char| !letter.is_ascii_digit());
                let (number, unit) = first.split_at(digits.map_or(first.len(), |at| sign + at));
                (number, unit, span)
            }
            [(first, span)] => (*first, "", span),
            [(first, span), (unit, _)] => (*first, *unit, span),
            _ => {
                let message = "\\sleep takes a time and a unit: us, ms or s";
                return Err(Mistake::new(command.span.clone(), message));
            }
        };
        let unit_us = match unit.to_ascii_lowercase().as_str() {
            "us" => 1,
            "ms" => 1_000,
            "" | "s" => 1_000_000,
            _ => {
                let message = format!("{unit:?} is not a unit of \\sleep; use us, ms or s");
                return Err(Mistake::new(words[words.len() - 1].1.clone(), message));
            }
        };
        let time = match number.strip_prefix(':') {
            Some(name) => {
                let variable = self.names.number(name);
                self.used.push((variable, body.number, span.clone()));
                Time::Variable(variable)
            }
            None => Time::Of(number.parse().map_err(|_| {
                let message = format!("{number:?} is not a whole number or a variable");
                Mistake::new(span.clone(), message)
            })?),
        };
        let place = body.places.at(command.span.start);
        body.steps.push(Step::Sleep {
            time,
            unit_us,
            place,
        });
        Ok(())
    }

    fn keep(
        &mut self,
        body: &mut Body<'_>,
        command: &Command,
        words: &[(&str, Range<usize>)],
    ) -> Result<(), Mistake> {
        let refused = |message: String| Err(Mistake::new(command.span.clone(), message));
        let name = &command.name;
        if body.pipeline.is_some() {
            return refused(format!("\\{name} is not allowed in a pipeline"));
        }
        if let Some((_, span)) = words.get(1) {
            let message =
                format!("\\{name} takes one argument, what the variables' names begin with");
            return Err(Mistake::new(span.clone(), message));
        }
        let prefix = words.first().map_or("", |(word, _)| *word).to_owned();
        if let Some((word, span)) = words.first().filter(|(word, _)| !is_name(word)) {
            let message = format!("{} begins no name of a variable", shown(word));
            return Err(Mistake::new(span.clone(), message));
        }
        match body.steps.last_mut() {
            Some(Step::Statement { keep, .. }) if body.may_keep => {
                self.prefixes.insert(prefix.clone());
                *keep = Some(Keep {
                    prefix,
                    is_one: name == "gset",
                });
                Ok(())
            }
            _ => refused(format!("\\{name} must follow an SQL command")),
        }
    }

    /// Whether an answer may set a variable of this name.
    fn is_answer(&self, name: &str) -> bool {
        self.prefixes.iter().any(|of| name.starts_with(of.as_str()))
    }

    /// Variables that are not the same for all clients at all times.
    fn changing(&self, scripts: &[Script]) -> BTreeSet<usize> {
        let steps = scripts.iter().flat_map(|script| &script.steps);
        let set = steps.filter_map(|step| match step {
            Step::Set { variable, .. } => Some(*variable),
            _ => None,
        });
        let names = 0..self.names.len();
        let answers = names.filter(|number| self.is_answer(self.names.name(*number)));
        set.chain(answers)
            .chain(self.names.known("client_id"))
            .collect()
    }

    /// That something sets each variable that is asked for, and that none is within quotes.
    fn check_variables(&self) -> Result<(), (usize, Mistake)> {
        let is_set = |number: usize, name: &str| self.set.contains(&number) || self.is_answer(name);
        for (variable, file, span) in &self.used {
            let name = self.names.name(*variable);
            if !is_set(*variable, name) {
                return Err((*file, Mistake::new(span.clone(), undefined(name))));
            }
        }
        for (name, file, span) in &self.quoted {
            // What nothing sets is a text.
            let is_set = match self.names.known(name) {
                Some(number) => is_set(number, name),
                None => self.is_answer(name),
            };
            if is_set {
                let sets_any = !self
                    .names
                    .known(name)
                    .is_some_and(|it| self.set.contains(&it));
                let remedy = match sets_any && self.prefixes.contains("") {
                    true => {
                        "; if it is none, give \\gset a prefix, as in \\gset p_: without one an answer may set any name"
                    }
                    false => "",
                };
                let message = format!(
                    "a prepared statement has no parameters within quotes: put :{name} outside, as in '...' || :{name}{remedy}"
                );
                return Err((*file, Mistake::new(span.clone(), message)));
            }
        }
        Ok(())
    }
}

impl Body<'_> {
    fn innermost(&mut self, command: &Command) -> Result<&mut OpenIf, Mistake> {
        let message = || format!("\\{} without matching \\if", command.name);
        let open = self.open.last_mut();
        open.ok_or_else(|| Mistake::new(command.span.clone(), message()))
    }

    /// Ends a branch: what follows is where the condition before it leads.
    fn next_branch(&mut self, command: &Command) -> Result<(), Mistake> {
        let jump = self.steps.len();
        let open = self.innermost(command)?;
        if open.has_else {
            let message = format!("\\{} after \\else", command.name);
            return Err(Mistake::new(command.span.clone(), message));
        }
        open.to_end.push(jump);
        let to_next = open.to_next.take();
        self.steps.push(Step::Jump(0));
        self.lead(to_next, jump + 1);
        Ok(())
    }

    fn end_if(&mut self, command: &Command) -> Result<(), Mistake> {
        self.innermost(command)?;
        let end = self.steps.len();
        if let Some(open) = self.open.pop() {
            self.lead(open.to_next, end);
            self.lead(open.to_end, end);
        }
        Ok(())
    }

    /// Lets jumps lead to a step.
    fn lead(&mut self, jumps: impl IntoIterator<Item = usize>, aim: usize) {
        for jump in jumps {
            match &mut self.steps[jump] {
                Step::Jump(to) | Step::JumpUnless { to, .. } => *to = aim,
                _ => unreachable!("only jumps are noted"),
            }
        }
    }

    fn pipeline(&mut self, command: &Command, dialect: Dialect) -> Result<(), Mistake> {
        let refused = |message: &str| Err(Mistake::new(command.span.clone(), message));
        if !dialect.has_pipelines() {
            return refused(
                "only PostgreSQL's protocol has pipelines: leave these commands out for other databases",
            );
        }
        let what = match (command.name.as_str(), &self.pipeline) {
            ("startpipeline", None) => Pipeline::Start,
            ("startpipeline", Some(_)) => return refused("\\startpipeline within a pipeline"),
            (_, None) => return refused("there is no \\startpipeline before"),
            ("endpipeline", Some(_)) => Pipeline::End,
            (_, Some(_)) => Pipeline::Sync,
        };
        match what {
            Pipeline::Start => self.pipeline = Some(command.span.clone()),
            Pipeline::End => self.pipeline = None,
            Pipeline::Sync => {}
        }
        let place = self.places.at(command.span.start);
        self.steps.push(Step::Pipeline(what, place));
        Ok(())
    }
}

/// What a statement does that begins or ends a transaction and says nothing more.
fn control(sql: &str) -> Option<Control> {
    let words: Vec<String> = sql
        .split_whitespace()
        .map(str::to_ascii_lowercase)
        .collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    match words[..] {
        ["begin"] | ["begin", "transaction" | "work"] | ["start", "transaction"] => {
            Some(Control::Begin)
        }
        ["commit" | "end"] | ["commit" | "end", "transaction" | "work"] => Some(Control::Commit),
        ["rollback" | "abort"] | ["rollback" | "abort", "transaction" | "work"] => {
            Some(Control::Rollback)
        }
        _ => None,
    }
}
