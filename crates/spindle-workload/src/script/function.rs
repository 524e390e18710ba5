//! The functions and operators of expressions: their names, how many arguments they take, and what they give. Each
//! does what pgbench 15 does (section "Built-In Operators" and "Built-In Functions" of its page), its errors included.

use super::mistake::{GAUSSIAN_MIN, NoValue, ZIPFIAN_MAX, ZIPFIAN_MIN};
use super::random::{self, hash_fnv1a, hash_murmur2, permute};
use super::value::Scalar;

/// Most arguments of a function.
pub(super) const ARGUMENTS_MAX: usize = 16;

/// How many arguments a function takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Arity {
    /// This many.
    Of(usize),
    /// One or more.
    AtLeastOne,
    /// This many, or one fewer: then `default_seed` is the last.
    Seeded(usize),
}

/// A function or an operator.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Function {
    Add,
    Subtract,
    Multiply,
    Divide,
    Modulo,
    Equal,
    Unequal,
    AtMost,
    Below,
    BitAnd,
    BitOr,
    BitXor,
    ShiftLeft,
    ShiftRight,
    Not,
    Is,
    Abs,
    Debug,
    Double,
    Exp,
    Greatest,
    HashFnv1a,
    HashMurmur2,
    Int,
    Least,
    Ln,
    Permute,
    Pi,
    Power,
    Random,
    RandomExponential,
    RandomGaussian,
    RandomZipfian,
    Sqrt,
}

use Arity::{AtLeastOne, Of, Seeded};
use Function::*;

impl Function {
    /// Whether chance decides what it gives.
    pub fn draws(self) -> bool {
        matches!(
            self,
            Random | RandomExponential | RandomGaussian | RandomZipfian
        )
    }
}

/// Functions that have a name.
const NAMED: [(&str, Function, Arity); 21] = [
    ("abs", Abs, Of(1)),
    ("debug", Debug, Of(1)),
    ("double", Double, Of(1)),
    ("exp", Exp, Of(1)),
    ("greatest", Greatest, AtLeastOne),
    ("hash", HashMurmur2, Seeded(2)),
    ("hash_fnv1a", HashFnv1a, Seeded(2)),
    ("hash_murmur2", HashMurmur2, Seeded(2)),
    ("int", Int, Of(1)),
    ("least", Least, AtLeastOne),
    ("ln", Ln, Of(1)),
    ("mod", Modulo, Of(2)),
    ("permute", Permute, Seeded(3)),
    ("pi", Pi, Of(0)),
    ("pow", Power, Of(2)),
    ("power", Power, Of(2)),
    ("random", Random, Of(2)),
    ("random_exponential", RandomExponential, Of(3)),
    ("random_gaussian", RandomGaussian, Of(3)),
    ("random_zipfian", RandomZipfian, Of(3)),
    ("sqrt", Sqrt, Of(1)),
];

/// A function by its name, in small letters, and how many arguments it takes.
pub(super) fn named(name: &str) -> Option<(Function, Arity)> {
    let found = NAMED.iter().find(|(of, _, _)| *of == name);
    found.map(|(_, function, arity)| (*function, *arity))
}

/// The names there are, in words.
pub(super) fn names() -> String {
    let names: Vec<&str> = NAMED.iter().map(|(name, _, _)| *name).collect();
    names.join(", ")
}

/// What a function gives for its arguments.
///
/// # Errors
/// What pgbench says.
pub(super) fn apply(
    function: Function,
    arguments: &[Scalar],
    chance: &mut random::Random,
) -> Result<Scalar, NoValue> {
    let has_null = arguments.contains(&Scalar::Null);
    if has_null && !matches!(function, Is | Debug) {
        return Ok(Scalar::Null);
    }
    let double = |place: usize| arguments[place].to_double();
    match function {
        Add | Subtract | Multiply | Divide | Modulo | Equal | Unequal | AtMost | Below => {
            operator(function, arguments[0], arguments[1])
        }
        BitAnd | BitOr | BitXor | ShiftLeft | ShiftRight => {
            bits(function, arguments[0].to_int()?, arguments[1].to_int()?)
        }
        Not => Ok(Scalar::Bool(!arguments[0].to_bool()?)),
        Is => Ok(Scalar::Bool(arguments[0] == arguments[1])),
        Abs => match arguments[0] {
            Scalar::Int(number) => Ok(Scalar::Int(number.wrapping_abs())),
            other => Ok(Scalar::Double(other.to_double()?.abs())),
        },
        // What it prints in pgbench would be lost among the lines of a run.
        Debug => Ok(arguments[0]),
        Pi => Ok(Scalar::Double(std::f64::consts::PI)),
        Double => double(0).map(Scalar::Double),
        Exp => Ok(Scalar::Double(double(0)?.exp())),
        Ln => Ok(Scalar::Double(double(0)?.ln())),
        Sqrt => Ok(Scalar::Double(double(0)?.sqrt())),
        Power => Ok(Scalar::Double(double(0)?.powf(double(1)?))),
        Int => arguments[0].to_int().map(Scalar::Int),
        Least | Greatest => extreme(function, arguments),
        HashFnv1a | HashMurmur2 => {
            let (value, seed) = (arguments[0].to_int()?, arguments[1].to_int()?);
            let hash = if function == HashFnv1a {
                hash_fnv1a
            } else {
                hash_murmur2
            };
            Ok(Scalar::Int(hash(value, seed)))
        }
        Permute => {
            let (value, size) = (arguments[0].to_int()?, arguments[1].to_int()?);
            let seed = arguments[2].to_int()?;
            match size > 0 {
                true => Ok(Scalar::Int(permute(value, size, seed))),
                false => Err(NoValue::PermuteSize),
            }
        }
        Random | RandomExponential | RandomGaussian | RandomZipfian => {
            draw(function, arguments, chance).map(Scalar::Int)
        }
    }
}

/// An operator on two numbers: of doubles if one is, of whole numbers else.
fn operator(function: Function, left: Scalar, right: Scalar) -> Result<Scalar, NoValue> {
    let is_double = [left, right]
        .iter()
        .any(|side| matches!(side, Scalar::Double(_)));
    if is_double && function != Modulo {
        let (left, right) = (left.to_double()?, right.to_double()?);
        return Ok(match function {
            Add => Scalar::Double(left + right),
            Subtract => Scalar::Double(left - right),
            Multiply => Scalar::Double(left * right),
            Divide => Scalar::Double(left / right),
            Equal => Scalar::Bool(left == right),
            Unequal => Scalar::Bool(left != right),
            AtMost => Scalar::Bool(left <= right),
            _ => Scalar::Bool(left < right),
        });
    }
    let (left, right) = (left.to_int()?, right.to_int()?);
    let (result, name) = match function {
        Add => (left.checked_add(right), "add"),
        Subtract => (left.checked_sub(right), "sub"),
        Multiply => (left.checked_mul(right), "mul"),
        Divide | Modulo if right == 0 => return Err(NoValue::DivisionByZero),
        Divide => (left.checked_div(right), "div"),
        Modulo => (Some(left.wrapping_rem(right)), "mod"),
        Equal => return Ok(Scalar::Bool(left == right)),
        Unequal => return Ok(Scalar::Bool(left != right)),
        AtMost => return Ok(Scalar::Bool(left <= right)),
        _ => return Ok(Scalar::Bool(left < right)),
    };
    let result = result.map(Scalar::Int);
    result.ok_or(NoValue::OutOfRange(name))
}

fn bits(function: Function, left: i64, right: i64) -> Result<Scalar, NoValue> {
    Ok(Scalar::Int(match function {
        BitAnd => left & right,
        BitOr => left | right,
        BitXor => left ^ right,
        // As the processor does it: modulo 64.
        ShiftLeft => left.wrapping_shl(right as u32),
        _ => left.wrapping_shr(right as u32),
    }))
}

fn extreme(function: Function, arguments: &[Scalar]) -> Result<Scalar, NoValue> {
    let is_double = arguments.iter().any(|of| matches!(of, Scalar::Double(_)));
    let is_least = function == Least;
    if !is_double {
        let mut numbers = Vec::with_capacity(arguments.len());
        for argument in arguments {
            numbers.push(argument.to_int()?);
        }
        let found = if is_least {
            numbers.iter().min()
        } else {
            numbers.iter().max()
        };
        return Ok(found.map_or(Scalar::Null, |number| Scalar::Int(*number)));
    }
    let mut found = arguments[0].to_double()?;
    for argument in &arguments[1..] {
        let number = argument.to_double()?;
        let is_further = if is_least {
            found < number
        } else {
            found > number
        };
        found = if is_further { found } else { number };
    }
    Ok(Scalar::Double(found))
}

fn draw(
    function: Function,
    arguments: &[Scalar],
    chance: &mut random::Random,
) -> Result<i64, NoValue> {
    let (least, most) = (arguments[0].to_int()?, arguments[1].to_int()?);
    if least > most {
        return Err(NoValue::EmptyRange);
    }
    if most
        .checked_sub(least)
        .and_then(|span| span.checked_add(1))
        .is_none()
    {
        return Err(NoValue::LargeRange);
    }
    if function == Random {
        return Ok(chance.uniform(least, most));
    }
    let parameter = arguments[2].to_double()?;
    match function {
        // What is no number is below nothing, and an endless range has no middle.
        RandomGaussian if !(GAUSSIAN_MIN..f64::INFINITY).contains(&parameter) => {
            Err(NoValue::Gaussian(parameter))
        }
        RandomGaussian => Ok(chance.gaussian(least, most, parameter)),
        RandomZipfian if !(ZIPFIAN_MIN..=ZIPFIAN_MAX).contains(&parameter) => {
            Err(NoValue::Zipfian(parameter))
        }
        RandomZipfian => Ok(chance.zipfian(least, most, parameter)),
        _ if parameter <= 0.0 || parameter.is_nan() => Err(NoValue::Exponential(parameter)),
        _ => Ok(chance.exponential(least, most, parameter)),
    }
}
