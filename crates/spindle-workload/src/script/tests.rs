//! Scripts as a whole: what expressions give, where mistakes are told, which way a client takes, and that any text is
//! read or refused. That pgbench gives the same is compared in the tests of the engines, where there is a server.

use std::collections::BTreeMap;
use std::sync::Arc;

use spindle_io::sync::Latch;
use spindle_text::section::TextFile;

use super::client::{ClientVariables, ScriptTransaction};
use super::expression::{Expression, Names, Operator, Scope, parse};
use super::function::Function;
use super::lexer::tokens;
use super::program::{Program, read};
use super::random::Random;
use super::value::{Scalar, Variable};
use crate::session::SessionError;
use crate::sql::connection::{LoadPart, Visit};
use crate::sql::{Dialect, SqlConnection, SqlRow, SqlTransaction, Value};

/// Why parameters of a script's own are refused.
const OWN: &str = "parameters are Spindle's own";

fn file(text: &str) -> TextFile {
    TextFile {
        name: "x.sql".to_owned(),
        weight: 1,
        text: text.to_owned(),
    }
}

/// The value of an expression, or what is wrong with it.
fn value(text: &str) -> Result<Scalar, String> {
    let mut names = Names::default();
    let tokens = tokens(text, 0).map_err(|mistake| mistake.message)?;
    let expression = parse(&tokens, &mut names).map_err(|mistake| mistake.message)?;
    let mut variables = vec![Variable::Unset; names.len()];
    for (name, value) in [
        ("a", "3"),
        ("half", "0.5"),
        ("default_seed", "7"),
        ("word", "blue"),
    ] {
        if let Some(number) = names.known(name) {
            variables[number] = Variable::of_text(value);
        }
    }
    let mut scope = Scope {
        variables: &variables,
        names: &names,
        random: &mut Random::seeded(1),
        stack: &mut Vec::new(),
    };
    expression
        .evaluate(&mut scope)
        .map_err(|error| error.to_string())
}

#[test]
fn operators_bind_as_in_pgbench() {
    for (text, wanted) in [
        ("1 + 2 * 3 - 4", Scalar::Int(3)),
        ("-2 * 3 % 4", Scalar::Int(-2)),
        ("not 1 = 2", Scalar::Bool(true)),
        ("~1 + 2", Scalar::Int(-4)),
        ("~1 | 2", Scalar::Int(-2)),
        ("1 | 2 << 3", Scalar::Int(24)),
        ("2 + 3 = 5 and 1 < 2 or false", Scalar::Bool(true)),
        ("true or false and false", Scalar::Bool(true)),
        ("null is null is null", Scalar::Bool(false)),
        ("1 + null isnull", Scalar::Bool(true)),
        ("2 notnull", Scalar::Bool(true)),
        ("1 is not true", Scalar::Bool(true)),
        ("3 >= 2", Scalar::Bool(true)),
        ("1 != 2", Scalar::Bool(true)),
        ("-9223372036854775808", Scalar::Int(i64::MIN)),
        ("- - 3", Scalar::Int(3)),
        (":a * :half", Scalar::Double(1.5)),
        ("1 + \\\n 2", Scalar::Int(3)),
        ("CASE WHEN :a > 2 THEN 'x' END", Scalar::Null),
    ] {
        if text.contains('\'') {
            assert!(value(text).is_err(), "texts are no expressions");
        } else {
            assert_eq!(value(text), Ok(wanted), "{text}");
        }
    }
}

#[test]
fn functions_give_what_pgbench_gives() {
    for (text, wanted) in [
        ("abs(-5)", Scalar::Int(5)),
        ("abs(-9223372036854775808)", Scalar::Int(i64::MIN)),
        ("least(3, 2.5, 7)", Scalar::Double(2.5)),
        ("greatest(3, 2, 7)", Scalar::Int(7)),
        ("int(2.5)", Scalar::Int(2)),
        ("double(2)", Scalar::Double(2.0)),
        ("mod(54, 32) + 54 % 32", Scalar::Int(44)),
        ("pow(2, 10) + power(2, 3)", Scalar::Double(1032.0)),
        ("sqrt(4) + ln(1) + exp(0)", Scalar::Double(3.0)),
        ("pi() > 3", Scalar::Bool(true)),
        ("1 << 65", Scalar::Int(2)),
        ("-5 / 2", Scalar::Int(-2)),
        ("5 % -3", Scalar::Int(2)),
        ("7 / 0.0 > 1", Scalar::Bool(true)),
        (
            "case when null then 1 when 0.5 then 2 else 3 end",
            Scalar::Int(2),
        ),
        ("case when false then 1 end", Scalar::Null),
        ("false and 1 / 0 = 1", Scalar::Bool(false)),
        ("null and true", Scalar::Null),
        ("1 + null", Scalar::Null),
        (
            "hash(10, 5432) = hash_murmur2(10, 5432)",
            Scalar::Bool(true),
        ),
        ("hash_fnv1a(10) = hash_fnv1a(10, 7)", Scalar::Bool(true)),
        ("permute(3, 10) = permute(3, 10, 7)", Scalar::Bool(true)),
        ("debug(3)", Scalar::Int(3)),
        ("random(4, 4)", Scalar::Int(4)),
        (
            "case when 1 > 2 then 1 / 0 when 2 > 1 then case when null then 1 else 7 end else 1 / 0 end + 1",
            Scalar::Int(8),
        ),
    ] {
        assert_eq!(value(text), Ok(wanted), "{text}");
    }
}

#[test]
fn what_cannot_be_calculated_is_told_in_the_words_of_pgbench() {
    for (text, wanted) in [
        ("9223372036854775807 + 1", "bigint add out of range"),
        ("-9223372036854775808 - 1", "bigint sub out of range"),
        ("9223372036854775807 * 2", "bigint mul out of range"),
        ("-9223372036854775808 / -1", "bigint div out of range"),
        ("1 / 0", "division by zero"),
        ("1 % 0", "division by zero"),
        ("int(1e100)", "double to int overflow"),
        ("true + 1", "cannot coerce boolean to int"),
        ("not 1", "cannot coerce int to boolean"),
        ("random(5, 1)", "empty range given to random"),
        (
            "random(-9223372036854775808, 9223372036854775807)",
            "random range is too large",
        ),
        (
            "random_gaussian(1, 2, 1.5)",
            "gaussian parameter must be at least 2.000000 (not 1.5",
        ),
        (
            "random_exponential(1, 2, 0)",
            "exponential parameter must be greater than zero",
        ),
        (
            "random_zipfian(1, 2, 1)",
            "zipfian parameter must be in range [1.001, 1000]",
        ),
        (
            "permute(1, 0, 1)",
            "permute size parameter must be greater than zero",
        ),
        (":word + 1", "malformed variable \"word\" value: \"blue\""),
        (":nowhere", "undefined variable \"nowhere\""),
        ("9223372036854775808", "bigint constant overflow"),
        ("1e999", "double constant overflow"),
        ("1 < 2 < 3", "brackets"),
        ("1 +", "the line ends here"),
        ("(1", "\")\" is missing"),
        ("sqrt()", "sqrt takes one argument and has 0"),
        ("least()", "least takes 1 to 16 arguments and has 0"),
        ("hash()", "hash takes 1 or 2 arguments"),
        ("rnd(1, 2)", "there is no function \"rnd\""),
        ("1 ? 2", "unexpected character '?'"),
    ] {
        let told = value(text).expect_err(text);
        assert!(told.contains(wanted), "{text}: {told}");
    }
    for text in [
        "random_gaussian(1, 10, 0.0 / 0)",
        "random_gaussian(1, 10, 1.0 / 0)",
        "random_exponential(1, 10, 0.0 / 0)",
        "random_zipfian(1, 10, 0.0 / 0)",
        "random_zipfian(1, 10, 1.0 / 0)",
    ] {
        let told = value(text).expect_err(text);
        assert!(told.contains("parameter must be"), "{text}: {told}");
        let not = if text.contains("1.0 /") {
            "(not Infinity)"
        } else {
            "(not NaN)"
        };
        assert!(told.contains(not), "{text}: {told}");
    }
    let deep = format!("{}1{}", "(".repeat(100_000), ")".repeat(100_000));
    assert!(value(&deep).unwrap_err().contains("within each other"));
}

fn program(text: &str) -> Program {
    let files = [file(text)];
    let defined = BTreeMap::from([("n".to_owned(), "0".to_owned())]);
    let read = read(&files, &defined, Dialect::Postgres);
    read.map_err(|(_, mistake)| mistake).expect(text)
}

#[test]
fn mistakes_are_told_with_their_place() {
    for (text, dialect, at, wanted) in [
        (
            "\\set x 1 +\nselect 1;",
            Dialect::Postgres,
            "\n",
            "the line ends here",
        ),
        (
            "select 1;\n\\setshell x date\n",
            Dialect::Postgres,
            "\\setshell",
            "runs a program",
        ),
        ("\\shell ls", Dialect::Sqlite, "\\shell", "runs a program"),
        (
            "select :aid;",
            Dialect::Postgres,
            ":aid",
            "nothing sets :aid",
        ),
        (
            "\\set aid 1\nselect ':aid';",
            Dialect::Postgres,
            ":aid'",
            "within quotes",
        ),
        (
            "select 1 as x \\gset\nselect ':x';",
            Dialect::Postgres,
            ":x'",
            "within quotes",
        ),
        (
            "\\set x 1\nselect $$:x$$;",
            Dialect::Postgres,
            ":x$",
            "within quotes",
        ),
        (
            "\\set x 1\nselect \":x\";",
            Dialect::MariaDb,
            ":x\"",
            "within quotes",
        ),
        (
            "select 1 as a \\gset 1x",
            Dialect::Postgres,
            "1x",
            "begins no name of a variable",
        ),
        ("select $1;", Dialect::Postgres, "$1", OWN),
        ("select a = ?;", Dialect::MariaDb, "?", OWN),
        ("select 1, ?2;", Dialect::Sqlite, "?2", OWN),
        ("select @a + 1;", Dialect::Sqlite, "@a", OWN),
        ("select $a;", Dialect::Sqlite, "$a", OWN),
        (
            "select 1 \\; select 2;",
            Dialect::Postgres,
            "\\;",
            "cannot be prepared",
        ),
        (
            "\\if 1\nselect 1;",
            Dialect::Postgres,
            "\\if",
            "without matching \\endif",
        ),
        (
            "\\endif",
            Dialect::Postgres,
            "\\endif",
            "without matching \\if",
        ),
        (
            "\\if 1\n\\else\n\\elif 2\n\\endif",
            Dialect::Postgres,
            "\\elif",
            "after \\else",
        ),
        ("\\else 3", Dialect::Postgres, "3", "takes no argument"),
        (
            "\\gset",
            Dialect::Postgres,
            "\\gset",
            "must follow an SQL command",
        ),
        (
            "select 1 \\gset\n\\gset",
            Dialect::Postgres,
            "\\gset\u{0}",
            "must follow an SQL command",
        ),
        ("\\sleep 1 h", Dialect::Postgres, "h", "not a unit"),
        ("\\sleep soon", Dialect::Postgres, "soon", "not a unit"),
        ("\\set 1x 1", Dialect::Postgres, "1x", "not a name"),
        (
            "\\wait",
            Dialect::Postgres,
            "\\wait",
            "there is no command \\wait",
        ),
        (
            "\\startpipeline\nselect 1;",
            Dialect::Postgres,
            "\\start",
            "without matching",
        ),
        (
            "\\endpipeline",
            Dialect::Postgres,
            "\\end",
            "no \\startpipeline",
        ),
        (
            "\\startpipeline\nselect 1 \\gset\n\\endpipeline",
            Dialect::Postgres,
            "\\gset",
            "not allowed",
        ),
        (
            "\\startpipeline\n\\endpipeline",
            Dialect::MariaDb,
            "\\start",
            "only PostgreSQL",
        ),
        (
            "-- nothing\n",
            Dialect::Postgres,
            "--",
            "no command in this script",
        ),
    ] {
        let files = [file(text)];
        let (_, mistake) = read(&files, &BTreeMap::new(), dialect).expect_err(text);
        assert!(
            mistake.message.contains(wanted),
            "{text}: {}",
            mistake.message
        );
        let at = match at.strip_suffix('\u{0}') {
            Some(at) => text.rfind(at),
            None => text.find(at),
        };
        assert_eq!(Some(mistake.span.start), at, "{text}");
    }
}

#[test]
fn what_a_prepared_statement_cannot_be_is_told_with_its_place() {
    for (text, at, wanted) in [
        (
            "\\set x 1\ncreate table t_:x (a int);",
            ":x (",
            "within names",
        ),
        (
            "\\set x 1\nselect (array[1,2])[1:x];",
            ":x]",
            "within names",
        ),
        (
            "select 1;\n discard all;",
            "discard",
            "drops the prepared statements",
        ),
        (
            "deallocate prepare all;",
            "deallocate",
            "drops the prepared statements",
        ),
        (
            "copy t from stdin;",
            "copy",
            "pgbench does not take them either",
        ),
        ("\\setrandom aid 1 5", "\\setrandom", "random(LEAST, MOST)"),
        ("\\timing on", "\\timing", "a command of psql"),
    ] {
        let files = [file(text)];
        let refused = read(&files, &BTreeMap::new(), Dialect::Postgres);
        let (_, mistake) = refused.expect_err(text);
        assert!(
            mistake.message.contains(wanted),
            "{text}: {}",
            mistake.message
        );
        assert_eq!(Some(mistake.span.start), text.find(at), "{text}");
    }
}

/// A database that notes what it is asked, and answers each statement with the same rows.
#[derive(Default)]
struct Noting {
    statements: Vec<String>,
    noted: Vec<String>,
    rows: Vec<(&'static str, i64)>,
    in_transaction: bool,
}

struct OneColumn(&'static str, i64);

impl SqlRow for OneColumn {
    fn columns(&self) -> usize {
        1
    }

    fn name(&self, _: usize) -> &str {
        self.0
    }

    fn value(&self, _: usize) -> Result<Value<'_>, SessionError> {
        Ok(Value::Int(self.1))
    }
}

impl SqlConnection for Noting {
    fn dialect(&self) -> Dialect {
        Dialect::Postgres
    }

    fn prepare_what_can(
        &mut self,
        statements: &[String],
    ) -> Result<Vec<(usize, SessionError)>, SessionError> {
        self.statements = statements.to_vec();
        Ok(Vec::new())
    }

    fn in_transaction(&self) -> bool {
        self.in_transaction
    }

    fn run(&mut self, _: &str) -> Result<(), SessionError> {
        Ok(())
    }

    fn ask(&mut self, _: &str, _: Visit<'_>) -> Result<(), SessionError> {
        Ok(())
    }

    fn begin(&mut self) -> Result<(), SessionError> {
        Ok(())
    }

    fn commit(&mut self) -> Result<(), SessionError> {
        Ok(())
    }

    fn rollback(&mut self) -> Result<(), SessionError> {
        Ok(())
    }

    fn execute(&mut self, _: usize, _: &[Value<'_>]) -> Result<u64, SessionError> {
        Ok(0)
    }

    fn query(
        &mut self,
        statement: usize,
        parameters: &[Value<'_>],
        visit: Visit<'_>,
    ) -> Result<u64, SessionError> {
        let sql = &self.statements[statement];
        self.in_transaction = match sql.as_str() {
            "begin" => true,
            "commit" => false,
            _ => self.in_transaction,
        };
        self.noted.push(format!("{sql} {parameters:?}"));
        for (name, number) in &self.rows {
            visit(&OneColumn(name, *number))?;
        }
        Ok(self.rows.len() as u64)
    }

    fn load(&mut self, _: &LoadPart) -> Result<u64, SessionError> {
        Ok(0)
    }

    fn is_closed(&self) -> bool {
        false
    }
}

/// Carries a script out `times`, and says what the database was asked.
fn carried_out(
    text: &str,
    times: usize,
    rows: &[(&'static str, i64)],
) -> Result<Vec<String>, SessionError> {
    let program = Arc::new(program(text));
    let mut database = Noting {
        rows: rows.to_vec(),
        ..Noting::default()
    };
    let statements: Vec<String> = program.statements.iter().map(|of| of.sql.clone()).collect();
    database.prepare(&statements)?;
    let places: Arc<[ClientVariables]> = Arc::new([Latch::new(program.beginning.clone())]);
    for _ in 0..times {
        let transaction = ScriptTransaction {
            program: Arc::clone(&program),
            places: Arc::clone(&places),
            client: 0,
            script: 0,
            random: Random::seeded(5),
        };
        transaction.run(&mut database)?;
    }
    Ok(database.noted)
}

#[test]
fn conditions_lead_to_one_branch() {
    let text = "\\set x :x1\n\\if :x = 1\nselect 1;\n\\elif :x = 2\n\\if false\nselect 20;\n\\else\nselect 2;\n\\endif\n\\else\n\
                select 3;\n\\endif\nselect 4;";
    for (x, taken) in [(1, "select 1"), (2, "select 2"), (3, "select 3")] {
        let text = format!("\\set x1 {x}\n{text}");
        let noted = carried_out(&text, 1, &[]).unwrap();
        assert_eq!(noted, [format!("{taken} []"), "select 4 []".to_owned()]);
    }
}

#[test]
fn variables_stay_and_answers_become_some() {
    let noted = carried_out("\\set n :n + 1\nselect :n;", 2, &[]).unwrap();
    assert_eq!(noted, ["select $1 [Int(1)]", "select $1 [Int(2)]"]);
    let unset = "\\if false\n\\set x 1\n\\endif\n\\set y :x";
    let refused = carried_out(unset, 1, &[]).unwrap_err().to_string();
    assert_eq!(refused, "x.sql:4:1: undefined variable \"x\"");

    let noted = carried_out("select 1 \\gset p_\nselect :p_a + :p_a;", 1, &[("a", 7)]).unwrap();
    assert_eq!(noted[1], "select $1 + $2 [Int(7), Int(7)]");
    let two = [("a", 7), ("a", 8)];
    let refused = carried_out("\nselect 1 \\gset\nselect :a;", 1, &two).unwrap_err();
    assert_eq!(
        refused,
        SessionError::Failed("x.sql:2:1: expected one row, got 2".to_owned())
    );
    let unnamed = carried_out("select 1 \\gset", 1, &[("?column?", 7)]).unwrap_err();
    assert!(
        unnamed
            .to_string()
            .starts_with("x.sql:1:1: error storing into variable ?column?"),
        "{unnamed}"
    );
    let noted = carried_out("select 1 \\aset\nselect :a;", 1, &two).unwrap();
    assert_eq!(noted[1], "select $1 [Int(8)]");
    let noted = carried_out("select 1 \\aset\nselect :a;", 1, &[]).unwrap();
    assert_eq!(noted[1], "select $1 [Null]");

    let twice = carried_out("\\set d random(1, 1000000)\nselect :d;", 2, &[]).unwrap();
    assert_eq!(twice[0], twice[1], "the same chance, tried again");
}

#[test]
fn doubles_truths_and_nothing_are_parameters() {
    let text = "\\set d 1.5\n\\set t 1 = 1\n\\set n null\nselect :d, :t, :n;";
    let noted = carried_out(text, 1, &[]).unwrap();
    assert_eq!(
        noted,
        ["select $1, $2, $3 [Text(\"1.5\"), Text(\"true\"), Null]"]
    );
}

#[test]
fn long_chains_of_operators_take_no_more_of_the_stack() {
    const TERMS: usize = 100_000;
    assert_eq!(
        value(&vec!["1"; TERMS].join("+")),
        Ok(Scalar::Int(TERMS as i64))
    );
    assert_eq!(
        value(&vec!["true"; TERMS].join(" and ")),
        Ok(Scalar::Bool(true))
    );
}

#[test]
fn a_script_that_leaves_its_transaction_or_pipeline_open_fails_where_it_began() {
    let refused = |text: &str| carried_out(text, 1, &[]).unwrap_err().to_string();
    let open = "select 1;\n begin;\nselect 2;\n\\if :n = 1\ncommit;\n\\endif\n";
    let told = refused(open);
    assert!(
        told.starts_with("x.sql:2:2: end of script reached without completing"),
        "{told}"
    );
    assert!(carried_out(&format!("{open}commit;"), 2, &[]).is_ok());
    let pipeline = "\\startpipeline\n\\if :n = 1\n\\endpipeline\n\\endif\n";
    let told = refused(pipeline);
    assert!(
        told.starts_with("x.sql:1:1: end of script reached with pipeline open"),
        "{told}"
    );
}

#[test]
fn commands_in_branches_do_what_those_of_pgbench_do() {
    // What is never evaluated may be unknown; what is, not.
    assert!(
        carried_out(
            "\\if false\n\\if :nope\n\\endif\n\\endif\nselect 1;",
            1,
            &[]
        )
        .is_ok()
    );
    let told = carried_out("\\if true\n\\if :nope\n\\endif\n\\endif", 1, &[]).unwrap_err();
    assert_eq!(told.to_string(), "x.sql:2:1: undefined variable \"nope\"");
    assert!(
        carried_out(
            "\\set x -5\n\\sleep :x\n\\sleep -1 ms\n\\sleep +1us",
            1,
            &[]
        )
        .is_ok()
    );
    let told = carried_out("\\set x true\n\\sleep :x", 1, &[]).unwrap_err();
    assert_eq!(
        told.to_string(),
        "x.sql:2:1: invalid sleep time \"true\" for variable \"x\""
    );
}

#[test]
fn places_of_long_files_are_found_in_one_pass() {
    // Were the text counted through for each statement or each condition, this would take minutes.
    const LINES: usize = 100_000;
    let nested = format!(
        "{}{}select 1;",
        "\\if 1\n".repeat(LINES),
        "\\endif\n".repeat(LINES)
    );
    assert_eq!(program(&nested).statements[0].place, "x.sql:200001:1");
    let one_line = "select 1; ".repeat(LINES);
    assert_eq!(
        program(&one_line).statements[LINES - 1].place,
        "x.sql:1:999991"
    );
    let file = file(&"select 1;\n".repeat(LINES));
    let none = BTreeMap::new();
    let all = super::program::statements(&file, &none, Dialect::Sqlite, |_, _| None).unwrap();
    assert_eq!(all[LINES - 1].place, "x.sql:100000:1");
}

/// A random expression, and how it is written with all its brackets.
fn drawn(random: &mut Random, depth: u32) -> (Expression, String) {
    const BINARY: [(&str, Operator); 10] = [
        ("+", Operator::Of(Function::Add)),
        ("-", Operator::Of(Function::Subtract)),
        ("*", Operator::Of(Function::Multiply)),
        ("/", Operator::Of(Function::Divide)),
        ("%", Operator::Of(Function::Modulo)),
        ("<", Operator::Of(Function::Below)),
        ("|", Operator::Of(Function::BitOr)),
        (">>", Operator::Of(Function::ShiftRight)),
        ("and", Operator::And),
        ("or", Operator::Or),
    ];
    if depth == 0 || random.uniform(0, 4) == 0 {
        return match random.uniform(0, 3) {
            0 => (Expression::constant(Scalar::Bool(true)), "true".to_owned()),
            1 => (Expression::constant(Scalar::Null), "null".to_owned()),
            2 => (Expression::constant(Scalar::Double(0.5)), ".5".to_owned()),
            _ => {
                let number = random.uniform(0, 99);
                (
                    Expression::constant(Scalar::Int(number)),
                    number.to_string(),
                )
            }
        };
    }
    let (left, left_text) = drawn(random, depth - 1);
    let (right, right_text) = drawn(random, depth - 1);
    let (sign, operator) = BINARY[random.uniform(0, BINARY.len() as i64 - 1) as usize];
    let text = format!("({left_text} {sign} {right_text})");
    let sides = match sign {
        ">" => [right, left],
        _ => [left, right],
    };
    (Expression::operation(operator, sides), text)
}

#[test]
fn what_is_written_is_what_is_read() {
    let mut random = Random::seeded(17);
    for _ in 0..2_000 {
        let (expression, text) = drawn(&mut random, 5);
        let tokens = tokens(&text, 0).unwrap();
        assert_eq!(
            parse(&tokens, &mut Names::default()),
            Ok(expression),
            "{text}"
        );
    }
}

#[test]
fn any_text_is_read_or_refused_within_itself() {
    const BEGINNING: &str = "\\set aid random(1, 100 * :scale) + (2 - -3) \\\n / 4.5e-1\n-- note\nBEGIN;\n\
        select 'it''s', $x$ a $x$, \"b\" /* c */ from t where a = :aid and b = :b::int \\gset p_\n\\if :p_x is not null\n\
        \\sleep :aid ms\n\\elif not false\n\\startpipeline\nselect :p_ä;\n\\endpipeline\n\\else\nEND;\n\\endif\n";
    const AWKWARD: [&str; 16] = [
        "'", "\"", "`", "$", "\\", "\n", ":", ";", "(", ")", "/*", "*/", "--", "é", "\\set ",
        "\u{0}",
    ];
    let mut random = Random::seeded(29);
    for _ in 0..20_000 {
        let mut letters: Vec<char> = BEGINNING.chars().collect();
        for _ in 0..random.uniform(0, 6) {
            let at = random.uniform(0, letters.len() as i64) as usize;
            let end = (at + random.uniform(0, 12) as usize).min(letters.len());
            let awkward = AWKWARD[random.uniform(0, AWKWARD.len() as i64 - 1) as usize];
            match random.uniform(0, 2) {
                0 => drop(letters.drain(at..end)),
                1 => drop(letters.splice(at..at, awkward.chars())),
                _ => letters.truncate(at.max(1)),
            }
        }
        let text: String = letters.into_iter().collect();
        let dialects = [Dialect::Postgres, Dialect::MariaDb, Dialect::Sqlite];
        let dialect = dialects[random.uniform(0, 2) as usize];
        if let Err((_, mistake)) = read(&[file(&text)], &BTreeMap::new(), dialect) {
            assert!(
                text.get(mistake.span.clone()).is_some(),
                "{text}: {mistake:?}"
            );
            assert!(!mistake.message.is_empty());
        }
    }
}
