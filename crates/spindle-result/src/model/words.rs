//! Enums that are written as words and may meet a word that this version does not know: names that come from databases
//! and from the system, where newer versions and other servers have more. What is decided by such a name is decided by
//! a variant.

/// An enum of known words, each written as it stands here, and `Other` for the rest.
macro_rules! open_words {
    ($(#[$about:meta])* $name:ident: $($(#[$doc:meta])* $variant:ident => $word:literal,)*) => {
        $(#[$about])*
        #[derive(Debug, Clone, PartialEq, Eq, Hash, serde::Serialize, serde::Deserialize)]
        #[serde(from = "String", into = "String")]
        pub enum $name {
            $($(#[$doc])* $variant,)*
            /// A name that nothing is decided by.
            Other(String),
        }

        impl $name {
            /// The name as it is written.
            pub fn name(&self) -> &str {
                match self {
                    $($name::$variant => $word,)*
                    $name::Other(name) => name,
                }
            }
        }

        impl From<&str> for $name {
            fn from(name: &str) -> $name {
                match name {
                    $($word => $name::$variant,)*
                    other => $name::Other(other.to_owned()),
                }
            }
        }

        impl From<String> for $name {
            fn from(name: String) -> $name {
                $name::from(name.as_str())
            }
        }

        impl From<$name> for String {
            fn from(name: $name) -> String {
                name.name().to_owned()
            }
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                formatter.pad(self.name())
            }
        }
    };
}

pub(super) use open_words;
