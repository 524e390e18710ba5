//! Expressions of `\set` and `\if`: read with the operators' precedence in pgbench (exprparse.y of PostgreSQL 15), and
//! evaluated.

use std::collections::BTreeMap;

use super::function::{ARGUMENTS_MAX, Arity, Function, apply, named, names};
use super::lexer::{Token, TokenKind};
use super::mistake::{Mistake, NoValue, shown};
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

/// An expression: what is to be done on a stack of values, one after the other. However long a chain of operators is,
/// neither evaluating nor dropping it goes deeper.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Expression(Vec<Act>);

/// A part of an expression. Those that skip say how many of the next parts are left out.
#[derive(Debug, Clone, PartialEq)]
enum Act {
    /// Puts a value on the stack.
    Constant(Scalar),
    /// Puts a variable on the stack, by its number among [`Names`].
    Variable(usize),
    /// Replaces this number of arguments by the value of a function.
    Call(Function, usize),
    /// The first side of `and` if `goes_on`, else of `or`: skips the second if it need not be looked at.
    Logical {
        goes_on: bool,
        skip: usize,
    },
    /// Makes the second side of `and` or `or` the value.
    Truth,
    /// Takes a condition from the stack, and skips if it is not true.
    SkipUnless(usize),
    Skip(usize),
}

/// The names of variables, each with a number.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Names {
    names: Vec<String>,
    numbers: BTreeMap<String, usize>,
}

impl Names {
    /// The number of a name, which gets one if it has none.
    pub fn number(&mut self, name: &str) -> usize {
        self.known(name).unwrap_or_else(|| {
            self.names.push(name.to_owned());
            let number = self.names.len() - 1;
            self.numbers.insert(name.to_owned(), number);
            number
        })
    }

    /// The number of a name that has one.
    pub fn known(&self, name: &str) -> Option<usize> {
        self.numbers.get(name).copied()
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
        TokenKind::End => Ok(expression),
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
    fn peek(&self) -> &TokenKind {
        &self.tokens[self.at].kind
    }

    fn take(&mut self) -> Token {
        let token = self.tokens[self.at].clone();
        // The end stays.
        self.at = (self.at + 1).min(self.tokens.len() - 1);
        token
    }

    fn takes(&mut self, kind: &TokenKind) -> bool {
        let is_it = self.peek() == kind;
        if is_it {
            self.take();
        }
        is_it
    }

    fn takes_sign(&mut self, sign: &'static str) -> bool {
        self.takes(&TokenKind::Sign(sign))
    }

    fn takes_word(&mut self, word: &str) -> bool {
        let is_it = matches!(self.peek(), TokenKind::Word(found) if found == word);
        if is_it {
            self.take();
        }
        is_it
    }

    fn unexpected(&self, wanted: &str) -> Mistake {
        let span = self.tokens[self.at].span.clone();
        let found = match self.peek() {
            TokenKind::End => "the line ends here".to_owned(),
            TokenKind::Int(number) => format!("unexpected {number}"),
            TokenKind::PastInt => "bigint constant overflow".to_owned(),
            TokenKind::Double(number) => format!("unexpected {number}"),
            TokenKind::Variable(name) => format!("unexpected :{name}"),
            TokenKind::Word(word) => format!("unexpected {}", shown(word)),
            TokenKind::Sign(sign) => format!("unexpected {}", shown(sign)),
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
        while let Some((binds, operator)) = self.operator() {
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
            left = match sign {
                TokenKind::Sign(">" | ">=") => Expression::operation(operator, [right, left]),
                _ => Expression::operation(operator, [left, right]),
            };
            was_comparison = binds == COMPARISON;
        }
        self.depth -= 1;
        Ok(left)
    }

    /// The operator that comes next, and how strongly it binds. Of `is` the function is found later.
    fn operator(&self) -> Option<(u8, Operator)> {
        let (binds, function) = match self.peek() {
            TokenKind::Word(word) => match word.as_str() {
                "or" => return Some((OR, Operator::Or)),
                "and" => return Some((AND, Operator::And)),
                "is" | "isnull" | "notnull" => (IS, Function::Is),
                _ => return None,
            },
            TokenKind::Sign(sign) => match *sign {
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
        };
        Some((binds, Operator::Of(function)))
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
        let is = Expression::call(Function::Is, [left, Expression::constant(constant)]);
        Ok(match is_not {
            true => Expression::call(Function::Not, [is]),
            false => is,
        })
    }

    fn constant_word(&mut self) -> Option<Scalar> {
        let TokenKind::Word(word) = self.peek() else {
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
            let left = Expression::constant(Scalar::Int(left));
            Ok(Expression::call(function, [left, right]))
        };
        if self.takes_sign("+") {
            return self.expression(SIGN + 1);
        }
        if self.takes_sign("-") {
            if self.takes(&TokenKind::PastInt) {
                return Ok(Expression::constant(Scalar::Int(i64::MIN)));
            }
            return call(Function::Subtract, 0, self.expression(SIGN + 1)?);
        }
        if self.takes_sign("~") {
            return call(Function::BitXor, -1, self.expression(BITS + 1)?);
        }
        if self.takes_word("not") {
            let inner = self.expression(NOT + 1)?;
            return Ok(Expression::call(Function::Not, [inner]));
        }
        if self.takes_sign("(") {
            let inner = self.expression(0)?;
            return match self.takes_sign(")") {
                true => Ok(inner),
                false => Err(self.unexpected("\")\"")),
            };
        }
        if let Some(constant) = self.constant_word() {
            return Ok(Expression::constant(constant));
        }
        if self.takes_word("case") {
            return self.case();
        }
        let made = match self.peek().clone() {
            TokenKind::Int(number) => Expression::constant(Scalar::Int(number)),
            TokenKind::Double(number) => Expression::constant(Scalar::Double(number)),
            TokenKind::Variable(name) => Expression::variable(self.names.number(&name)),
            TokenKind::Word(word) if !is_keyword(&word) => return self.call(&word),
            _ => return Err(self.unexpected("an expression")),
        };
        self.take();
        Ok(made)
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
            false => Expression::constant(Scalar::Null),
        });
        self.expect_word("end")?;
        Ok(Expression::case(arguments))
    }

    /// A call of the function whose name is next.
    fn call(&mut self, name: &str) -> Result<Expression, Mistake> {
        let token = self.take();
        let Some((function, arity)) = named(name) else {
            let message = format!(
                "there is no function {}; there are {}",
                shown(name),
                names()
            );
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
                arguments.push(Expression::variable(self.names.number("default_seed")));
                None
            }
            Arity::Seeded(count) => Some(format!("{} or {count} arguments", count - 1)),
        };
        match wanted {
            None => Ok(Expression::call(function, arguments)),
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

/// What stands between two sides.
#[derive(Clone, Copy)]
pub(super) enum Operator {
    /// A function of both.
    Of(Function),
    /// The right side is evaluated only where the left leaves it open.
    And,
    /// The same.
    Or,
}

/// What an expression is evaluated with.
pub(super) struct Scope<'a> {
    pub variables: &'a [Variable],
    pub names: &'a Names,
    pub random: &'a mut Random,
    /// Where values are put; what is in it before stays.
    pub stack: &'a mut Vec<Scalar>,
}

impl Expression {
    /// One that is always the same.
    pub fn constant(constant: Scalar) -> Expression {
        Expression(vec![Act::Constant(constant)])
    }

    /// What a variable is, by its number among [`Names`].
    pub fn variable(number: usize) -> Expression {
        Expression(vec![Act::Variable(number)])
    }

    /// What an operator gives for its two sides.
    pub fn operation(operator: Operator, [left, right]: [Expression; 2]) -> Expression {
        let goes_on = match operator {
            Operator::Of(function) => return Expression::call(function, [left, right]),
            Operator::And => true,
            Operator::Or => false,
        };
        // The first is gone on with: a chain of operators has no end of it to copy.
        let Expression(mut acts) = left;
        acts.push(Act::Logical {
            goes_on,
            skip: right.0.len() + 1,
        });
        acts.extend(right.0);
        acts.push(Act::Truth);
        Expression(acts)
    }

    /// What a function gives for arguments.
    pub fn call(function: Function, arguments: impl IntoIterator<Item = Expression>) -> Expression {
        let mut arguments = arguments.into_iter();
        // The first is gone on with: a chain of operators has no end of it to copy.
        let Expression(mut acts) = arguments.next().unwrap_or(Expression(Vec::new()));
        let mut count = usize::from(!acts.is_empty());
        for argument in arguments {
            acts.extend(argument.0);
            count += 1;
        }
        acts.push(Act::Call(function, count));
        Expression(acts)
    }

    /// Of condition and value by turns, the value of the first condition that is true; else the last.
    fn case(mut arguments: Vec<Expression>) -> Expression {
        let Expression(mut last) = arguments.pop().unwrap_or(Expression(Vec::new()));
        // From the last to the first, in turned order: what follows a pair is known then.
        last.reverse();
        let mut turned = last;
        while let (Some(value), Some(condition)) = (arguments.pop(), arguments.pop()) {
            turned.push(Act::Skip(turned.len()));
            let skip = value.0.len() + 1;
            turned.extend(value.0.into_iter().rev());
            turned.push(Act::SkipUnless(skip));
            turned.extend(condition.0.into_iter().rev());
        }
        turned.reverse();
        Expression(turned)
    }

    /// Whether it has the same value each time: no chance is in it, and no variable that `may_change`.
    pub fn is_fixed(&self, may_change: &dyn Fn(usize) -> bool) -> bool {
        self.0.iter().all(|act| match act {
            Act::Variable(number) => !may_change(*number),
            Act::Call(function, _) => !function.draws(),
            _ => true,
        })
    }

    /// Its value.
    ///
    /// # Errors
    /// What pgbench says of such arguments.
    pub fn evaluate(&self, scope: &mut Scope<'_>) -> Result<Scalar, NoValue> {
        let below = scope.stack.len();
        let value = self.evaluate_on(scope);
        scope.stack.truncate(below);
        value
    }

    fn evaluate_on(&self, scope: &mut Scope<'_>) -> Result<Scalar, NoValue> {
        let mut next = 0;
        while let Some(act) = self.0.get(next) {
            next += 1;
            match act {
                Act::Constant(constant) => scope.stack.push(*constant),
                Act::Variable(number) => {
                    let name = scope.names.name(*number);
                    scope.stack.push(scope.variables[*number].value(name)?);
                }
                Act::Call(function, count) => {
                    let first = scope.stack.len() - count;
                    let value = apply(*function, &scope.stack[first..], scope.random)?;
                    scope.stack.truncate(first);
                    scope.stack.push(value);
                }
                Act::Logical { goes_on, skip } => {
                    let first = scope.stack.pop().unwrap_or(Scalar::Null);
                    let known = match first {
                        Scalar::Null => Some(Scalar::Null),
                        first => (first.to_bool()? != *goes_on).then_some(Scalar::Bool(!goes_on)),
                    };
                    if let Some(known) = known {
                        scope.stack.push(known);
                        next += skip;
                    }
                }
                Act::Truth => match scope.stack.last_mut() {
                    None | Some(Scalar::Null) => {}
                    Some(second) => *second = Scalar::Bool(second.to_bool()?),
                },
                Act::SkipUnless(skip) => {
                    if !scope.stack.pop().is_some_and(Scalar::is_true) {
                        next += skip;
                    }
                }
                Act::Skip(skip) => next += skip,
            }
        }
        Ok(scope.stack.pop().unwrap_or(Scalar::Null))
    }
}
