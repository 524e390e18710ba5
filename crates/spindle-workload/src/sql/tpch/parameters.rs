//! The values that a query's parameters take, by the rules of clause 2.4 as the standard's QGEN carries them out, and
//! the values with which answers are validated.

use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::RngCore;
use tpchgen::distribution::{Distribution, Distributions};

/// The words of query 13 (clause 2.4.13.3).
const WORDS: [[&str; 4]; 2] = [
    ["special", "pending", "unusual", "express"],
    ["packages", "requests", "accounts", "deposits"],
];
const YEARS: (u64, u64) = (1993, 1997);
/// Clerks at scale 1, and the fewest there are.
const TPCD_CLERKS: f64 = 1000.0;

/// What the answers of the standard were made with (the "query validation" of clauses 2.4.1 to 2.4.22).
pub(super) fn validation(query: u8, scale: f64) -> Vec<String> {
    let values: &[&str] = match query {
        1 => &["90"],
        2 => &["15", "BRASS", "EUROPE"],
        3 => &["BUILDING", "1995-03-15"],
        4 => &["1993-07-01"],
        5 => &["ASIA", "1994-01-01"],
        6 => &["1994-01-01", "0.06", "24"],
        7 => &["FRANCE", "GERMANY"],
        8 => &["BRAZIL", "AMERICA", "ECONOMY ANODIZED STEEL"],
        9 => &["green"],
        10 => &["1993-10-01"],
        11 => return vec!["GERMANY".to_owned(), fraction(scale)],
        12 => &["MAIL", "SHIP", "1994-01-01"],
        13 => &["special", "requests"],
        14 => &["1995-09-01"],
        15 => &["1996-01-01"],
        16 => &[
            "Brand#45",
            "MEDIUM POLISHED",
            "49",
            "14",
            "23",
            "45",
            "19",
            "3",
            "36",
            "9",
        ],
        17 => &["Brand#23", "MED BOX"],
        18 => &["300"],
        19 => &["Brand#12", "Brand#23", "Brand#34", "1", "10", "20"],
        20 => &["forest", "1994-01-01", "CANADA"],
        21 => &["SAUDI ARABIA"],
        22 => &["13", "31", "23", "29", "30", "18", "17"],
        _ => &[],
    };
    values.iter().map(|&value| value.to_owned()).collect()
}

/// The parameter of query 13 of TPC-D that its answer was validated with.
pub(super) fn validation_of_clerk() -> Vec<String> {
    vec!["Clerk#000000088".to_owned()]
}

/// Query 11 looks at a share of the whole that keeps its answer as long at every scale (clause 2.4.11.3).
fn fraction(scale: f64) -> String {
    format!("{:.10}", 0.0001 / scale)
}

/// Draws values.
pub(super) struct Draw<'a>(pub &'a mut Xoshiro256PlusPlus);

impl Draw<'_> {
    /// The parameters of a query.
    pub fn parameters(&mut self, query: u8, scale: f64) -> Vec<String> {
        let words = Distributions::static_default();
        match query {
            1 => vec![self.within(60, 120)],
            2 => vec![
                self.within(1, 50),
                self.syllables(2..3),
                self.one_of(words.regions()),
            ],
            3 => {
                let day = self.number(1, 31);
                vec![
                    self.one_of(words.market_segments()),
                    format!("1995-03-{day:02}"),
                ]
            }
            4 => vec![self.month(1993, 58)],
            5 => vec![self.one_of(words.regions()), self.year()],
            6 => {
                let hundredths = self.number(2, 9);
                vec![self.year(), format!("0.0{hundredths}"), self.within(24, 25)]
            }
            7 => self.distinct(2, words.nations()),
            8 => {
                let [nation, region] = self.nation_in_its_region();
                vec![nation, region, self.syllables(0..3)]
            }
            9 => vec![self.one_of(words.part_colors())],
            // From February 1993 to January 1995.
            10 => {
                let months = self.number(1, 24);
                vec![first_of_month(1993, months)]
            }
            11 => vec![self.one_of(words.nations()), fraction(scale)],
            12 => {
                let mut values = self.distinct(2, words.ship_modes());
                values.push(self.year());
                values
            }
            13 => WORDS.map(|words| self.word(&words)).to_vec(),
            14 => vec![self.month(1993, 60)],
            15 => vec![self.month(1993, 58)],
            16 => {
                let mut values = vec![self.brand(), self.syllables(0..2)];
                values.extend(self.distinct_numbers(8, 1, 50));
                values
            }
            17 => vec![self.brand(), self.one_of(words.part_containers())],
            18 => vec![self.within(312, 315)],
            19 => vec![
                self.brand(),
                self.brand(),
                self.brand(),
                self.within(1, 10),
                self.within(10, 20),
                self.within(20, 30),
            ],
            20 => vec![
                self.one_of(words.part_colors()),
                self.year(),
                self.one_of(words.nations()),
            ],
            21 => vec![self.one_of(words.nations())],
            // The first two digits of telephone numbers are those of the nation, from 10 on.
            22 => self.distinct_numbers(7, 10, 34),
            _ => Vec::new(),
        }
    }

    fn nation_in_its_region(&mut self) -> [String; 2] {
        let words = Distributions::static_default();
        let nation = self.number(0, words.nations().size() as u64 - 1) as usize;
        let region = words.nations().get_weight(nation) as usize;
        let names = [
            words.nations().get_value(nation),
            words.regions().get_value(region),
        ];
        names.map(str::to_owned)
    }

    /// The clerk of query 13 of TPC-D.
    pub fn clerk(&mut self, scale: f64) -> Vec<String> {
        let clerks = (TPCD_CLERKS * scale).max(TPCD_CLERKS) as u64;
        let clerk = self.number(1, clerks);
        vec![format!("Clerk#{clerk:09}")]
    }

    fn number(&mut self, least: u64, most: u64) -> u64 {
        // The bias of a remainder of 64 bits is nothing to ranges as short as these.
        least + self.0.next_u64() % (most - least + 1)
    }

    fn within(&mut self, least: u64, most: u64) -> String {
        self.number(least, most).to_string()
    }

    fn one_of(&mut self, words: &Distribution) -> String {
        self.word(words.get_values())
    }

    fn word(&mut self, words: &[&str]) -> String {
        let place = self.number(0, words.len() as u64 - 1);
        words[place as usize].to_owned()
    }

    fn distinct(&mut self, count: usize, words: &Distribution) -> Vec<String> {
        distinct(count, || self.one_of(words))
    }

    fn distinct_numbers(&mut self, count: usize, least: u64, most: u64) -> Vec<String> {
        distinct(count, || self.within(least, most))
    }

    /// Some of the three words of a part's type.
    fn syllables(&mut self, which: std::ops::Range<usize>) -> String {
        let of_type = self.one_of(Distributions::static_default().part_types());
        let words: Vec<&str> = of_type.split(' ').collect();
        words[which].join(" ")
    }

    fn brand(&mut self) -> String {
        let (maker, number) = (self.number(1, 5), self.number(1, 5));
        format!("Brand#{maker}{number}")
    }

    fn year(&mut self) -> String {
        let year = self.number(YEARS.0, YEARS.1);
        format!("{year}-01-01")
    }

    /// The first of one of this many months from January of a year on.
    fn month(&mut self, year: u64, months: u64) -> String {
        let month = self.number(0, months - 1);
        first_of_month(year, month)
    }
}

fn first_of_month(year: u64, months: u64) -> String {
    format!("{}-{:02}-01", year + months / 12, months % 12 + 1)
}

fn distinct(count: usize, mut draw: impl FnMut() -> String) -> Vec<String> {
    let mut values: Vec<String> = Vec::with_capacity(count);
    while values.len() < count {
        let value = draw();
        if !values.contains(&value) {
            values.push(value);
        }
    }
    values
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use rand_xoshiro::rand_core::SeedableRng;

    use super::*;

    fn drawn(query: u8) -> Vec<Vec<String>> {
        let mut rng = Xoshiro256PlusPlus::seed_from_u64(7);
        let mut draw = Draw(&mut rng);
        (0..4000).map(|_| draw.parameters(query, 1.0)).collect()
    }

    /// The least and the most of a parameter, and how many different ones there are.
    fn range(query: u8, parameter: usize) -> (String, String, usize) {
        let values: BTreeSet<String> = drawn(query)
            .into_iter()
            .map(|values| values[parameter].clone())
            .collect();
        let (first, last) = (values.first().cloned(), values.last().cloned());
        (first.unwrap(), last.unwrap(), values.len())
    }

    fn is(query: u8, parameter: usize, first: &str, last: &str, count: usize) {
        let wanted = (first.to_owned(), last.to_owned(), count);
        assert_eq!(range(query, parameter), wanted, "query {query}");
    }

    #[test]
    fn parameters_lie_in_the_ranges_of_the_standard() {
        is(1, 0, "100", "99", 61);
        is(2, 1, "BRASS", "TIN", 5);
        is(3, 1, "1995-03-01", "1995-03-31", 31);
        is(4, 0, "1993-01-01", "1997-10-01", 58);
        is(5, 1, "1993-01-01", "1997-01-01", 5);
        is(6, 1, "0.02", "0.09", 8);
        is(6, 2, "24", "25", 2);
        is(7, 0, "ALGERIA", "VIETNAM", 25);
        is(8, 2, "ECONOMY ANODIZED BRASS", "STANDARD POLISHED TIN", 150);
        is(9, 0, "almond", "yellow", 92);
        is(10, 0, "1993-02-01", "1995-01-01", 24);
        is(12, 0, "AIR", "TRUCK", 7);
        is(13, 0, "express", "unusual", 4);
        is(14, 0, "1993-01-01", "1997-12-01", 60);
        is(15, 0, "1993-01-01", "1997-10-01", 58);
        is(16, 0, "Brand#11", "Brand#55", 25);
        is(16, 1, "ECONOMY ANODIZED", "STANDARD POLISHED", 30);
        is(17, 1, "JUMBO BAG", "WRAP PKG", 40);
        is(18, 0, "312", "315", 4);
        is(19, 5, "20", "30", 11);
        is(22, 6, "10", "34", 25);
    }

    #[test]
    fn values_that_must_differ_do_and_regions_are_those_of_their_nations() {
        for (query, values) in [(7, 0..2), (12, 0..2), (16, 2..10), (22, 0..7)] {
            for parameters in drawn(query) {
                let different: BTreeSet<&String> = parameters[values.clone()].iter().collect();
                assert_eq!(different.len(), values.len(), "query {query}");
            }
        }
        let regions: BTreeSet<(String, String)> = drawn(8)
            .into_iter()
            .map(|values| (values[0].clone(), values[1].clone()))
            .collect();
        assert_eq!(regions.len(), 25);
        for (nation, region) in [
            ("BRAZIL", "AMERICA"),
            ("FRANCE", "EUROPE"),
            ("JAPAN", "ASIA"),
        ] {
            assert!(regions.contains(&(nation.to_owned(), region.to_owned())));
        }
    }

    #[test]
    fn drawn_and_validation_parameters_are_as_many() {
        for query in 1..=22 {
            let values = validation(query, 1.0);
            assert_eq!(drawn(query)[0].len(), values.len(), "query {query}");
        }
        assert_eq!(validation(11, 1.0)[1], "0.0001000000");
        assert_eq!(validation(11, 0.01)[1], "0.0100000000");
    }
}
