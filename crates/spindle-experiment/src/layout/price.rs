//! What a layout costs, as its seller states it: `551 USD/month`.

use super::super::reader::Reader;
pub use spindle_text::price::Price;

/// Hours of a month, as clouds count them.
const HOURS: f64 = 730.0;
const MONTHS: f64 = 12.0;
const ALLOWED: &str = "an amount, a currency of three letters and a time, such as \"551 USD/month\"; per hour, month or year";
/// More than that is a slip of the pen, in any currency.
const HUNDREDTHS_MAX: f64 = 1e15;

/// Reads the price of a layout, if it has one.
pub(super) fn read(reader: &mut Reader<'_>) -> Option<Price> {
    let text = reader.text("price", ALLOWED)?;
    let price = parse(text);
    if price.is_none() {
        let title = format!("price = {text:?} is not a price");
        reader.refuse(
            &["price"],
            title,
            "this is not one",
            format!("allowed: {ALLOWED}"),
        );
    }
    price
}

fn parse(text: &str) -> Option<Price> {
    let (amount, rest) = text.split_once(' ')?;
    let (currency, time) = rest.split_once('/')?;
    let months = match time {
        "hour" => 1.0 / HOURS,
        "month" => 1.0,
        "year" => MONTHS,
        _ => return None,
    };
    let is_plain = |byte: u8| byte.is_ascii_digit() || byte == b'.';
    let amount: f64 = amount
        .parse()
        .ok()
        .filter(|_| amount.bytes().all(is_plain))?;
    let hundredths = (100.0 * amount / months).round();
    let is_currency = currency.len() == 3 && currency.bytes().all(|it| it.is_ascii_uppercase());
    (is_currency && (1.0..=HUNDREDTHS_MAX).contains(&hundredths)).then(|| Price {
        hundredths_per_month: hundredths as u64,
        currency: currency.to_owned(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prices_are_read_as_they_are_told() {
        let hundredths = |text: &str| parse(text).map(|price| price.hundredths_per_month);
        assert_eq!(hundredths("551 USD/month"), Some(55_100));
        assert_eq!(hundredths("0.5 EUR/hour"), Some(36_500));
        assert_eq!(hundredths("6600 CHF/year"), Some(55_000));
        for wrong in [
            "551",
            "551 USD",
            "551 usd/month",
            "USD 551/month",
            "-5 USD/month",
            "0 USD/month",
            "1e3 USD/month",
            "551 USD/week",
            "NaN USD/month",
            "inf USD/month",
            "99999999999999999999 USD/month",
        ] {
            assert_eq!(hundredths(wrong), None, "{wrong}");
        }
    }
}
