//! Settings whose value is one word out of a few: each word is written once, here its enum.
//!
//! [`words!`] makes the enum, its text, its JSON form and the list that error messages show, so that none of them can
//! drift from the others. Used by the sections of the experiment file; read with `Reader::word`.

/// An enum whose variants are words of the experiment file.
pub(super) trait Word: Copy + 'static {
    /// Every word that works today, with what it means.
    const ALLOWED: &'static [(&'static str, Self)];
    /// Words of the design that a later version will understand: they deserve "not built yet", not "unknown".
    const LATER: &'static [&'static str];
}

/// Declares an enum of words, `Variant = "word"`, and after `later:` the words that are known but not built yet.
macro_rules! words {
    (
        $(#[$meta:meta])*
        pub enum $name:ident {
            $($(#[$variant_meta:meta])* $variant:ident = $word:literal,)+
        }
        later: [$($later:literal),*]
    ) => {
        $(#[$meta])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
        pub enum $name {
            $($(#[$variant_meta])* #[serde(rename = $word)] $variant,)+
        }

        impl $crate::word::Word for $name {
            const ALLOWED: &'static [(&'static str, Self)] = &[$(($word, $name::$variant),)+];
            const LATER: &'static [&'static str] = &[$($later),*];
        }

        impl $name {
            /// The word as the experiment file spells it.
            pub const fn as_str(self) -> &'static str {
                match self {
                    $($name::$variant => $word,)+
                }
            }
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.pad(self.as_str())
            }
        }
    };
}
pub(super) use words;
