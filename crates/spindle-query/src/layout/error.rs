//! What is wrong with the columns of a table, a key of them, or values for them.

use super::data_type::{COLUMNS_MAX, DataType, Form, NAME_BYTES_MAX};

/// Columns, a key or values that cannot be.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RowLayoutError {
    /// No column, or too many.
    #[error("a table has 1 to {COLUMNS_MAX} columns, not {columns}")]
    Count {
        /// How many.
        columns: usize,
    },
    /// A name of no or too many bytes.
    #[error("`{name}` cannot name a column: a name has 1 to {NAME_BYTES_MAX} bytes")]
    NameLength {
        /// The name.
        name: String,
    },
    /// Two columns have the same name.
    #[error("two columns are called `{name}`: each needs a name of its own")]
    SameName {
        /// The name.
        name: String,
    },
    /// A type that rows do not keep in this form, or whose length or places are not allowed.
    #[error(
        "column `{column}` cannot be {of} in the form {form:?}: texts have 1 byte at least, decimals 18 places at most"
    )]
    Form {
        /// The column.
        column: String,
        /// Its type.
        of: DataType,
        /// Its form.
        form: Form,
    },
    /// Rows longer than their texts' ends can say.
    #[error("rows of these columns may have {row_bytes_max} bytes: 65535 is the most")]
    RowLength {
        /// Length of the longest.
        row_bytes_max: usize,
    },
    /// Something follows the text that a row ends with.
    #[error(
        "column `{column}` is the text that a row ends with: it must be last, and the only one of varying length"
    )]
    CountedNotLast {
        /// The column.
        column: String,
    },
    /// No column has that name.
    #[error("there is no column `{name}`; there are {known}")]
    NoSuchColumn {
        /// The name.
        name: String,
        /// The names there are.
        known: String,
    },
    /// A key of no column.
    #[error("a key needs at least one column")]
    EmptyKey,
    /// A column is in a key twice.
    #[error("column `{column}` is in the key twice: name it once")]
    TwiceInKey {
        /// The column.
        column: String,
    },
    /// The bytes of a column are not in the order of its values.
    #[error("column `{column}` cannot be in a key: its negative numbers are not in order as bytes")]
    Unordered {
        /// The column.
        column: String,
    },
    /// A text of varying length where a key cannot have one.
    #[error(
        "column `{column}` has a varying length: a key can end with such a column if the table has only one of them"
    )]
    VaryingInKey {
        /// The column.
        column: String,
    },
    /// A part of a key that is not made of columns.
    #[error("bytes {begin} to {end} of a row are not whole columns of its table")]
    NoColumnAt {
        /// Where the part begins.
        begin: u16,
        /// Where it ends.
        end: u16,
    },
    /// As many values as columns are wanted; fewer where a key may be given in part.
    #[error("{values} values were given: {columns} are wanted, one for each column")]
    ValueCount {
        /// How many were given.
        values: usize,
        /// How many columns there are.
        columns: usize,
    },
    /// A value is missing.
    #[error("column `{column}` needs a value: NULL is not supported")]
    Null {
        /// The column.
        column: String,
    },
    /// A value of another type.
    #[error("column `{column}` is {of}: {value} does not fit it")]
    WrongType {
        /// The column.
        column: String,
        /// Its type.
        of: DataType,
        /// What was given.
        value: &'static str,
    },
    /// A number with more decimal places than the column has.
    #[error("column `{column}` is {of}: {digits} divided by 10^{scale} has more decimal places")]
    Scale {
        /// The column.
        column: String,
        /// Its type.
        of: DataType,
        /// Digits of the number.
        digits: i128,
        /// Its decimal places.
        scale: u8,
    },
    /// A number beyond those that the column can hold.
    #[error("column `{column}`: {digits} is out of range; {least} to {greatest} is allowed")]
    Range {
        /// The column.
        column: String,
        /// The number without its point, as the column would hold it.
        digits: i128,
        /// The least.
        least: i128,
        /// The greatest.
        greatest: i128,
    },
    /// A text longer than the column.
    #[error("column `{column}` is {of}: a text of {bytes} bytes is too long")]
    TextLength {
        /// The column.
        column: String,
        /// Its type.
        of: DataType,
        /// Length of the text.
        bytes: usize,
    },
    /// A text that ends with a zero where zeros fill it up.
    #[error("column `{column}` is filled up with zeros: its text cannot end with one")]
    EndsWithZero {
        /// The column.
        column: String,
    },
    /// Bytes that are no row of these columns.
    #[error("a row of {row_bytes} bytes does not fit the columns of its table")]
    NoRow {
        /// Its length.
        row_bytes: usize,
    },
}

/// What may be wrong with columns and values.
pub type Result<T> = std::result::Result<T, RowLayoutError>;
