//! The macro that declares a section.

/// Declares a section: a struct whose fields name how they are read, `field: type = how("key", default, range)`, `how`
/// being a method of [`Keys`]. The comment beside a field is what the reference says of it.
#[macro_export]
macro_rules! settings {
    (
        $(#[$meta:meta])*
        $visible:vis struct $name:ident {
            $($(#[doc = $says:literal])+
            $(#[serde($($serde:tt)+)])?
            $field:ident: $type:ty = $how:ident($key:literal $(, $argument:expr)*),)+
        }
    ) => {
        $(#[$meta])*
        $visible struct $name {
            $($(#[doc = $says])+ $(#[serde($($serde)+)])? pub $field: $type,)+
        }

        impl $crate::section::Section for $name {
            fn read<K: $crate::section::Keys>(keys: &mut K) -> Self {
                $name {
                    $($field: keys.$how(
                        $crate::section::Key {
                            name: $key,
                            says: concat!($($says),+),
                        }
                        $(, $argument)*
                    ),)+
                }
            }

            fn outside(&self) -> Option<&'static str> {
                let settings = [
                    $(($key, $crate::section::allows::$how(&self.$field $(, $argument)*)),)+
                ];
                settings.into_iter().find(|(_, is_allowed)| !is_allowed).map(|(key, _)| key)
            }
        }
    };
}

#[cfg(test)]
mod tests {
    use crate::section::{Listing, Section, SettingRow};

    settings! {
        /// How a kettle boils.
        #[derive(Debug, PartialEq)]
        pub struct Kettle {
            /// DC is possible.
            watts: u32 = number("watts", 2000, 100..=3000),
            /// Water in it, at most
            /// what it holds.
            water_bytes: u64 = size("water", 1 << 20, 1..=1 << 30),
            /// `true` where it whistles.
            whistles: bool = flag("whistles", true),
            /// How long it may take.
            limit_ms: u64 = duration_ms("limit", 60_000, 1_000..=3_600_000),
        }
    }

    #[test]
    fn a_section_is_declared_read_and_listed_from_one_place() {
        let rows = Listing::of::<Kettle>();
        let cells =
            |row: &SettingRow| [row.key.to_owned(), row.default.clone(), row.allowed.clone()];
        assert_eq!(cells(&rows[0]), ["watts", "`2000`", "100 to 3000"]);
        assert_eq!(rows[1].says, "water in it, at most what it holds");
        assert_eq!(cells(&rows[1])[1], "`\"1MiB\"`");
        assert_eq!(
            (rows[0].says.as_str(), rows[2].says.as_str()),
            ("DC is possible", "`true` where it whistles")
        );
        assert_eq!(cells(&rows[3]), ["limit", "`\"1m\"`", "1s to 1h"]);
        let kettle = Kettle::read(&mut Listing::default());
        assert_eq!((kettle.watts, kettle.whistles), (2000, true));
    }
}
