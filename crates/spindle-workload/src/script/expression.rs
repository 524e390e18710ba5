//! Expressions of `\set` and `\if`: read with the operators' precedence in pgbench (exprparse.y of PostgreSQL 15), and
//! evaluated.

use super::function::{ARGUMENTS_MAX, Arity, Function, apply, named, names};
use super::lexer::{Kind, Token};
use super::mistake::{Mistake, NoValue};
use super::random::Random;
use super::value::{Scalar, Variable};

/// Expressions within expressions, at most: each takes some of the stack.
const DEPTH_MAX: usize = 200;

/// How strongly operators bind; the weakest first.
const OR: u8 = 1;
const AND: u8 = 2;
const NOT: u8 = 3;
const IS: u8 = 4;
const COMPARISON: u8 = 5;
const BITS: u8 = 6;
const SUM: u8 = 7;
const PRODUCT: u8 = 8;
const SIGN: u8 = 9;

/// An expression.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Expression {
    Constant(Scalar),
    /// A variable, by its number among [`Names`].
    Variable(usize),
    Call(Function, Vec<Expression>),
}

/// The names of variables, each with a number.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Names {
    names: Vec<String>,
}

impl Names {
    /// The number of a name, which gets one if it has none.
    pub fn number(&mut self, name: &str) -> usize {
        self.known(name).unwrap_or_else(|| {
            self.names.push(name.to_owned());
            self.names.len() - 1
        })
    }

    /// The number of a name that has one.
    pub fn known(&self, name: &str) -> Option<usize> {
        self.names.iter().position(|known| known == name)
    }

    /// The name of a number.
    pub fn name(&self, number: usize) -> &str {
        &self.names[number]
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.names.len()
    }
}

/// Reads the expression that tokens make.
///
/// # Errors
/// They make none.
pub(super) fn parse(tokens: &[Token], names: &mut Names) -> Result<Expression, Mistake> {
    let mut parser = Parser {
        tokens,
        at: 0,
        depth: 0,
        names,
    };
    let expression = parser.expression(0)?;
    match parser.peek() {
        Kind::End => Ok(expression),
        _ => Err(parser.unexpected("an operator or the end of the line")),
    }
}

struct Parser<'a> {
    tokens: &'a [Token],
    at: usize,
    depth: usize,
    names: &'a mut Names,
}

impl Parser<'_> {
    fn peek(&self) -> &Kind {
        &self.tokens[self.at].kind
    }

    fn take(&mut self) -> Token {
        let token = self.tokens[self.at].clone();
        // The end stays.
        self.at = (self.at + 1).min(self.tokens.len() - 1);
        token
    }

    fn takes(&mut self, kind: &Kind) -> bool {
        let is_it = self.peek() == kind;
        if is_it {
            self.take();
        }
        is_it
    }

    fn takes_sign(&mut self, sign: &'static str) -> bool {
        self.takes(&Kind::Sign(sign))
    }

    fn takes_word(&mut self, word: &str) -> bool {
        let is_it = matches!(self.peek(), Kind::Word(found) if found == word);
        if is_it {
            self.take();
        }
        is_it
    }

    fn unexpected(&self, wanted: &str) -> Mistake {
        let span = self.tokens[self.at].span.clone();
        let found = match self.peek() {
            Kind::End => "the line ends here".to_owned(),
            Kind::Int(number) => format!("unexpected {number}"),
            Kind::PastInt => "bigint constant overflow".to_owned(),
            Kind::Double(number) => format!("unexpected {number}"),
            Kind::Variable(name) => format!("unexpected :{name}"),
            Kind::Word(word) => format!("unexpected {word:?}"),
            Kind::Sign(sign) => format!("unexpected {sign:?}"),
        };
        Mistake::new(span, format!("{found}: {wanted} is missing"))
    }

    fn expect_word(&mut self, word: &str) -> Result<(), Mistake> {
        match self.takes_word(word) {
            true => Ok(()),
            false => Err(self.unexpected(word)),
        }
    }

    /// An expression whose operators bind at least as strongly as `least`.
    fn expression(&mut self, least: u8) -> Result<Expression, Mistake> {
        self.depth += 1;
        if self.depth > DEPTH_MAX {
            let span = self.tokens[self.at].span.clone();
            let message = format!("more than {DEPTH_MAX} expressions within each other");
            return Err(Mistake::new(span, message));
        }
        let mut left = self.operand()?;
        let mut was_comparison = false;
        while let Some((binds, function)) = self.operator() {
            if binds < least {
                break;
            }
            if binds == IS {
                left = self.is_what(left)?;
                was_comparison = false;
                continue;
            }
            if binds == COMPARISON && was_comparison {
                return Err(self.unexpected("a pair of brackets around the first comparison"));
            }
            let sign = self.take().kind;
            let right = self.expression(binds + 1)?;
            let is_turned = matches!(sign, Kind::Sign(">" | ">="));
            let sides = if is_turned {
                vec![right, left]
            } else {
                vec![left, right]
            };
            left = Expression::Call(function, sides);
            was_comparison = binds == COMPARISON;
        }
        self.depth -= 1;
        Ok(left)
    }

    /// The operator that comes next, and how strongly it binds. Of `is` the function is found later.
    fn operator(&self) -> Option<(u8, Function)> {
        Some(match self.peek() {
            Kind::Word(word) => match word.as_str() {
                "or" => (OR, Function::Or),
                "and" => (AND, Function::And),
                "is" | "isnull" | "notnull" => (IS, Function::Is),
                _ => return None,
            },
            Kind::Sign(sign) => match *sign {
                "<" | ">" => (COMPARISON, Function::Below),
                "<=" | ">=" => (COMPARISON, Function::AtMost),
                "=" => (COMPARISON, Function::Equal),
                "<>" => (COMPARISON, Function::Unequal),
                "|" => (BITS, Function::BitOr),
                "&" => (BITS, Function::BitAnd),
                "#" => (BITS, Function::BitXor),
                "<<" => (BITS, Function::ShiftLeft),
                ">>" => (BITS, Function::ShiftRight),
                "+" => (SUM, Function::Add),
                "-" => (SUM, Function::Subtract),
                "*" => (PRODUCT, Function::Multiply),
                "/" => (PRODUCT, Function::Divide),
                "%" => (PRODUCT, Function::Modulo),
                _ => return None,
            },
            _ => return None,
        })
    }

    /// What stands behind an expression that is compared with null, true or false.
    fn is_what(&mut self, left: Expression) -> Result<Expression, Mistake> {
        let (is_not, constant) = if self.takes_word("isnull") {
            (false, Scalar::Null)
        } else if self.takes_word("notnull") {
            (true, Scalar::Null)
        } else {
            self.expect_word("is")?;
            let is_not = self.takes_word("not");
            let constant = self.constant_word();
            let constant = constant.ok_or_else(|| self.unexpected("null, true or false"))?;
            (is_not, constant)
        };
        let is = Expression::Call(Function::Is, vec![left, Expression::Constant(constant)]);
        Ok(match is_not {
            true => Expression::Call(Function::Not, vec![is]),
            false => is,
        })
    }

    fn constant_word(&mut self) -> Option<Scalar> {
        let Kind::Word(word) = self.peek() else {
            return None;
        };
        let constant = match word.as_str() {
            "null" => Scalar::Null,
            "true" => Scalar::Bool(true),
            "false" => Scalar::Bool(false),
            _ => return None,
        };
        self.take();
        Some(constant)
    }

    fn operand(&mut self) -> Result<Expression, Mistake> {
        let call = |function, left, right| {
            Ok(Expression::Call(
                function,
                vec![Expression::Constant(Scalar::Int(left)), right],
            ))
        };
        if self.takes_sign("+") {
            return self.expression(SIGN + 1);
        }
        if self.takes_sign("-") {
            if self.takes(&Kind::PastInt) {
                return Ok(Expression::Constant(Scalar::Int(i64::MIN)));
            }
            return call(Function::Subtract, 0, self.expression(SIGN + 1)?);
        }
        if self.takes_sign("~") {
            return call(Function::BitXor, -1, self.expression(BITS + 1)?);
        }
        if self.takes_word("not") {
            return Ok(Expression::Call(
                Function::Not,
                vec![self.expression(NOT + 1)?],
            ));
        }
        if self.takes_sign("(") {
            let inner = self.expression(0)?;
            return match self.takes_sign(")") {
                true => Ok(inner),
                false => Err(self.unexpected("\")\"")),
            };
        }
        if let Some(constant) = self.constant_word() {
            return Ok(Expression::Constant(constant));
        }
        if self.takes_word("case") {
            return self.case();
        }
        match self.peek() {
            Kind::Int(_) | Kind::Double(_) | Kind::Variable(_) => {}
            Kind::Word(word) if !is_keyword(word) => return self.call(),
            _ => return Err(self.unexpected("an expression")),
        }
        Ok(match self.take().kind {
            Kind::Int(number) => Expression::Constant(Scalar::Int(number)),
            Kind::Double(number) => Expression::Constant(Scalar::Double(number)),
            Kind::Variable(name) => Expression::Variable(self.names.number(&name)),
            _ => unreachable!("looked at just now"),
        })
    }

    /// `case when ... then ... else ... end`, whose arguments are condition and value by turns, and the last value.
    fn case(&mut self) -> Result<Expression, Mistake> {
        let mut arguments = Vec::new();
        self.expect_word("when")?;
        loop {
            arguments.push(self.expression(0)?);
            self.expect_word("then")?;
            arguments.push(self.expression(0)?);
            if !self.takes_word("when") {
                break;
            }
        }
        arguments.push(match self.takes_word("else") {
            true => self.expression(0)?,
            false => Expression::Constant(Scalar::Null),
        });
        self.expect_word("end")?;
        Ok(Expression::Call(Function::Case, arguments))
    }

    fn call(&mut self) -> Result<Expression, Mistake> {
        let token = self.take();
        let Kind::Word(name) = &token.kind else {
            unreachable!("looked at just now");
        };
        let Some((function, arity)) = named(name) else {
            let message = format!("there is no function {name:?}; there are {}", names());
            return Err(Mistake::new(token.span, message));
        };
        if !self.takes_sign("(") {
            return Err(self.unexpected("\"(\""));
        }
        let mut arguments = Vec::new();
        if !self.takes_sign(")") {
            loop {
                arguments.push(self.expression(0)?);
                if self.takes_sign(")") {
                    break;
                }
                if !self.takes_sign(",") {
                    return Err(self.unexpected("\",\" or \")\""));
                }
            }
        }
        let wanted = match arity {
            Arity::Of(count) if arguments.len() == count => None,
            Arity::Of(1) => Some("one argument".to_owned()),
            Arity::Of(count) => Some(format!("{count} arguments")),
            Arity::AtLeastOne if (1..=ARGUMENTS_MAX).contains(&arguments.len()) => None,
            Arity::AtLeastOne => Some(format!("1 to {ARGUMENTS_MAX} arguments")),
            Arity::Seeded(count) if arguments.len() == count => None,
            Arity::Seeded(count) if arguments.len() + 1 == count => {
                arguments.push(Expression::Variable(self.names.number("default_seed")));
                None
            }
            Arity::Seeded(count) => Some(format!("{} or {count} arguments", count - 1)),
        };
        match wanted {
            None => Ok(Expression::Call(function, arguments)),
            Some(wanted) => {
                let message = format!("{name} takes {wanted} and has {}", arguments.len());
                Err(Mistake::new(token.span, message))
            }
        }
    }
}

fn is_keyword(word: &str) -> bool {
    const KEYWORDS: [&str; 13] = [
        "and", "case", "else", "end", "false", "is", "isnull", "not", "notnull", "null", "or",
        "then", "true",
    ];
    KEYWORDS.contains(&word) || word == "when"
}

/// What an expression is evaluated with.
pub(super) struct Scope<'a> {
    pub variables: &'a [Variable],
    pub names: &'a Names,
    pub random: &'a mut Random,
}

impl Expression {
    /// Its value.
    ///
    /// # Errors
    /// What pgbench says of such arguments.
    pub fn evaluate(&self, scope: &mut Scope<'_>) -> Result<Scalar, NoValue> {
        match self {
            Expression::Constant(constant) => Ok(*constant),
            Expression::Variable(number) => {
                scope.variables[*number].value(scope.names.name(*number))
            }
            Expression::Call(Function::And, sides) => logical(sides, true, scope),
            Expression::Call(Function::Or, sides) => logical(sides, false, scope),
            Expression::Call(Function::Case, arguments) => case(arguments, scope),
            Expression::Call(function, arguments) => {
                let mut values = [Scalar::Null; ARGUMENTS_MAX];
                for (value, argument) in values.iter_mut().zip(arguments) {
                    *value = argument.evaluate(scope)?;
                }
                apply(*function, &values[..arguments.len()], scope.random)
            }
        }
    }
}

/// `and`, which looks at its second side when the first is `goes_on`; `or` likewise.
fn logical(sides: &[Expression], goes_on: bool, scope: &mut Scope<'_>) -> Result<Scalar, NoValue> {
    match sides[0].evaluate(scope)? {
        Scalar::Null => return Ok(Scalar::Null),
        first if first.to_bool()? != goes_on => return Ok(Scalar::Bool(!goes_on)),
        _ => {}
    }
    match sides[1].evaluate(scope)? {
        Scalar::Null => Ok(Scalar::Null),
        second => second.to_bool().map(Scalar::Bool),
    }
}

fn case(arguments: &[Expression], scope: &mut Scope<'_>) -> Result<Scalar, NoValue> {
    for pair in arguments.chunks(2) {
        match pair {
            [condition, value] => {
                if condition.evaluate(scope)?.is_true() {
                    return value.evaluate(scope);
                }
            }
            last => return last[0].evaluate(scope),
        }
    }
    Ok(Scalar::Null)
}
