//! Settings whose value is one word out of a few. The crate that obeys such a setting declares its words with
//! [`words!`](crate::words!): the enum, its text, its JSON form, the list that error messages show and what each word
//! means in the reference come from one place and cannot drift apart.

use std::fmt;
use std::marker::PhantomData;

use serde::de::{Deserializer, Error, Visitor};

/// An enum whose variants are words of the experiment file.
pub trait Word: Copy + PartialEq + 'static {
    /// Every word that works, with its value.
    const ALLOWED: &'static [(&'static str, Self)];
    /// What each of them means, in the same order.
    const SAYS: &'static [&'static str];
    /// Words that a later version will understand: they deserve "not built yet", not "unknown".
    const LATER: &'static [&'static str];

    /// The value of another word that people have for one of them.
    fn of_other_word(_: &str) -> Option<Self> {
        None
    }

    /// The word as people spell it.
    fn as_word(self) -> &'static str {
        let mut words = Self::ALLOWED.iter();
        let found = words.find(|(_, value)| *value == self);
        found.map_or("", |(word, _)| word)
    }

    /// The value of a word.
    fn of_word(word: &str) -> Option<Self> {
        let mut words = Self::ALLOWED.iter();
        let found = words.find(|(allowed, _)| *allowed == word);
        found.map(|(_, value)| *value)
    }
}

/// Reads a word.
///
/// # Errors
/// Those of the format, and another word.
pub fn deserialize<'de, W: Word, D: Deserializer<'de>>(from: D) -> Result<W, D::Error> {
    struct OneOf<W>(PhantomData<W>);
    impl<W: Word> Visitor<'_> for OneOf<W> {
        type Value = W;

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            let words: Vec<String> = W::ALLOWED
                .iter()
                .map(|(word, _)| format!("`{word}`"))
                .collect();
            write!(f, "one of {}", words.join(", "))
        }

        fn visit_str<E: Error>(self, text: &str) -> Result<W, E> {
            W::of_word(text)
                .ok_or_else(|| E::invalid_value(serde::de::Unexpected::Str(text), &self))
        }
    }
    from.deserialize_str(OneOf(PhantomData))
}

/// Declares an enum of words, `Variant = "word"`, each with its meaning in a doc comment; after `later:` the words that
/// are known but not built yet.
#[macro_export]
macro_rules! words {
    (
        $(#[$meta:meta])*
        pub enum $name:ident {
            $($(#[doc = $says:literal])+ $variant:ident = $word:literal,)+
        }
        $(later: [$($later:literal),*])?
    ) => {
        $(#[$meta])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum $name {
            $($(#[doc = $says])+ $variant,)+
        }

        impl $crate::word::Word for $name {
            const ALLOWED: &'static [(&'static str, Self)] = &[$(($word, $name::$variant),)+];
            const SAYS: &'static [&'static str] = &[$(concat!($($says),+),)+];
            const LATER: &'static [&'static str] = &[$($($later),*)?];
        }

        impl $name {
            /// The word as people spell it.
            pub const fn as_str(self) -> &'static str {
                match self {
                    $($name::$variant => $word,)+
                }
            }
        }

        impl ::std::fmt::Display for $name {
            fn fmt(&self, f: &mut ::std::fmt::Formatter<'_>) -> ::std::fmt::Result {
                f.pad(self.as_str())
            }
        }

        impl $crate::serde::Serialize for $name {
            fn serialize<S: $crate::serde::Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
                to.serialize_str(self.as_str())
            }
        }

        impl<'de> $crate::serde::Deserialize<'de> for $name {
            fn deserialize<D: $crate::serde::Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
                $crate::word::deserialize(from)
            }
        }
    };
}

#[cfg(test)]
mod tests {
    use super::*;

    words! {
        /// How loud.
        pub enum Loudness {
            /// Nobody hears it.
            Silent = "silent",
            /// All do.
            VeryLoud = "very_loud",
        }
        later: ["deafening"]
    }

    #[test]
    fn a_word_is_its_text_its_json_and_its_meaning() {
        for (word, value) in Loudness::ALLOWED {
            assert_eq!(Loudness::of_word(word), Some(*value));
            assert_eq!(value.as_word(), *word);
            assert_eq!(value.to_string(), *word);
            let json = serde_json::to_string(value).unwrap();
            assert_eq!(json, format!("{word:?}"));
            assert_eq!(serde_json::from_str::<Loudness>(&json).unwrap(), *value);
        }
        assert_eq!(Loudness::SAYS, [" Nobody hears it.", " All do."]);
        assert_eq!(Loudness::LATER, ["deafening"]);
        let told = serde_json::from_str::<Loudness>("\"loud\"").unwrap_err();
        assert!(
            told.to_string().contains("one of `silent`, `very_loud`"),
            "{told}"
        );
    }
}
