//! What is wrong with a plan: found before it reads a row.

/// A plan cannot be carried out.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum QueryError {
    /// A name that no column has there.
    #[error("no column is called {name}; there are {known}")]
    NoSuchColumn {
        /// The name.
        name: String,
        /// The names there are.
        known: String,
    },
    /// Two columns have the same name.
    #[error("two columns are called {name}: select one of them under another name")]
    SameName {
        /// The name.
        name: String,
    },
    /// An expression of another type is wanted.
    #[error("{what} is wanted, and {found} is not")]
    WrongType {
        /// What is wanted.
        what: &'static str,
        /// What was found.
        found: String,
    },
    /// Columns that are to be equal are not of the same type, or their lengths vary.
    #[error(
        "{left} and {right} cannot be compared as keys: both must have the same type, and a fixed length"
    )]
    UnequalKeys {
        /// Of one side.
        left: String,
        /// Of the other.
        right: String,
    },
    /// More joins than a row has room for.
    #[error("a row is put together from more than {most} others: select its columns in between")]
    TooManyJoins {
        /// How many are allowed.
        most: usize,
    },
}

/// What may be wrong with a plan.
pub type Result<T> = std::result::Result<T, QueryError>;
