//! Types of columns, the forms in which rows keep them, and which type can have which form.

use std::fmt;

/// Columns of a table, at most; Oracle allows as many without a second row piece.
pub const COLUMNS_MAX: usize = 254;
/// Length of a column's name, at most, bytes.
pub const NAME_BYTES_MAX: usize = 30;
/// Decimal places of an exact number, at most.
pub const SCALE_MAX: u8 = 18;
/// Places of the seconds in a moment.
const MOMENT_SCALE: u8 = 6;

/// What a column of a table holds. No value may be missing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DataType {
    /// A whole number.
    Integer,
    /// An exact number with this many decimal places, up to [`SCALE_MAX`].
    Decimal(u8),
    /// A day, counted from 1970-01-01.
    Date,
    /// A moment: seconds since 1970-01-01, with six decimal places.
    Timestamp,
    /// A text of up to this many bytes, to whose value blanks at its end do not belong.
    Char(u16),
    /// A text of up to this many bytes.
    Varchar(u16),
}

impl DataType {
    /// The form that columns of a plan have.
    pub(super) fn usual_form(self) -> Form {
        match self {
            DataType::Integer | DataType::Decimal(_) | DataType::Timestamp => Form::Ordered(8),
            DataType::Date => Form::Ordered(4),
            DataType::Char(_) => Form::Blanks,
            DataType::Varchar(_) => Form::Ended,
        }
    }

    /// Decimal places of a number; `None` of days and texts.
    pub(super) fn scale(self) -> Option<u8> {
        match self {
            DataType::Integer => Some(0),
            DataType::Decimal(scale) => Some(scale),
            DataType::Timestamp => Some(MOMENT_SCALE),
            DataType::Date | DataType::Char(_) | DataType::Varchar(_) => None,
        }
    }

    /// Length of the longest text; 0 of numbers.
    pub(super) fn text_bytes(self) -> u16 {
        match self {
            DataType::Char(bytes) | DataType::Varchar(bytes) => bytes,
            _ => 0,
        }
    }

    pub(super) fn can_be(self, form: Form) -> bool {
        match (self, form) {
            (DataType::Integer, Form::Ordered(bytes)) => matches!(bytes, 4 | 8 | 16),
            (DataType::Decimal(scale), Form::Ordered(bytes)) => {
                scale <= SCALE_MAX && matches!(bytes, 4 | 8 | 16)
            }
            (DataType::Integer, Form::Unsigned(bytes) | Form::Signed(bytes)) => {
                matches!(bytes, 4 | 8)
            }
            (DataType::Decimal(scale), Form::Unsigned(bytes) | Form::Signed(bytes)) => {
                scale <= SCALE_MAX && matches!(bytes, 4 | 8)
            }
            (DataType::Date, form) => matches!(form, Form::Ordered(4) | Form::Signed(4)),
            (DataType::Timestamp, form) => form.number_bytes() == Some(8),
            (DataType::Char(bytes), Form::Blanks | Form::Zeros) => bytes > 0,
            (DataType::Varchar(bytes), Form::Zeros | Form::Ended | Form::Counted) => bytes > 0,
            _ => false,
        }
    }
}

impl fmt::Display for DataType {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            DataType::Integer => write!(formatter, "integer"),
            DataType::Decimal(scale) => write!(formatter, "decimal({scale})"),
            DataType::Date => write!(formatter, "date"),
            DataType::Timestamp => write!(formatter, "timestamp"),
            DataType::Char(bytes) => write!(formatter, "char({bytes})"),
            DataType::Varchar(bytes) => write!(formatter, "varchar({bytes})"),
        }
    }
}

/// How a row keeps the value of a column. Numbers have their highest byte first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Form {
    /// A number of 4, 8 or 16 bytes with its sign turned over, so that bytes are in the order of values.
    Ordered(u8),
    /// A number of 4 or 8 bytes that is never negative.
    Unsigned(u8),
    /// A number of 4 or 8 bytes, as its complement of two. Negative ones come last as bytes: it can be in no key.
    Signed(u8),
    /// A text in its full length, filled up with blanks.
    Blanks,
    /// A text in its full length, filled up with zeros, and so not ending with one.
    Zeros,
    /// A text behind all columns of a fixed length, among which its end has 2 bytes, the lowest first.
    Ended,
    /// The text that the row ends with; its length, 2 bytes, is the last column of a fixed length.
    Counted,
}

impl Form {
    pub(super) fn number_bytes(self) -> Option<u8> {
        match self {
            Form::Ordered(bytes) | Form::Unsigned(bytes) | Form::Signed(bytes) => Some(bytes),
            Form::Blanks | Form::Zeros | Form::Ended | Form::Counted => None,
        }
    }

    pub(super) fn is_varying(self) -> bool {
        matches!(self, Form::Ended | Form::Counted)
    }
}
