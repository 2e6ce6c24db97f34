//! Durations as people write them, and back.
//!
//! Never rounds silently: what is written is what is kept, to the millisecond.

/// From the largest to the smallest, which is also the order in which they must be written.
const UNITS: [(&str, u64); 5] = [("d", 86_400_000), ("h", 3_600_000), ("m", 60_000), ("s", 1_000), ("ms", 1)];

/// `1h30m`, `20m`, `500ms` as milliseconds: whole numbers, each unit at most once, larger units first.
pub fn parse_duration(text: &str) -> Option<u64> {
    let mut rest = text;
    let mut units = UNITS.iter();
    let mut total: u64 = 0;
    while !rest.is_empty() {
        let (digits, after) = rest.split_at(rest.find(|c: char| !c.is_ascii_digit())?);
        let (unit, next) = after.split_at(after.find(|c: char| c.is_ascii_digit()).unwrap_or(after.len()));
        // Taking from the same iterator each time refuses `30m1h` and `1h1h`.
        let (_, millis) = units.find(|(name, _)| *name == unit)?;
        total = total.checked_add(digits.parse::<u64>().ok()?.checked_mul(*millis)?)?;
        rest = next;
    }
    (!text.is_empty()).then_some(total)
}

/// The shortest text that `parse_duration` reads as the same number of milliseconds.
pub(super) fn format_duration(millis: u64) -> String {
    let mut left = millis;
    let mut text = String::new();
    for (unit, size) in UNITS {
        if left >= size {
            text.push_str(&(left / size).to_string());
            text.push_str(unit);
            left %= size;
        }
    }
    if text.is_empty() { "0s".to_owned() } else { text }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn durations() {
        for (text, millis) in [
            ("30s", 30_000),
            ("20m", 1_200_000),
            ("2h", 7_200_000),
            ("1d", 86_400_000),
            ("500ms", 500),
            ("1h30m", 5_400_000),
            ("1d2h3m4s5ms", 93_784_005),
            ("0s", 0),
            ("90m", 5_400_000),
        ] {
            assert_eq!(parse_duration(text), Some(millis), "{text}");
        }
        for text in [
            "",
            "30",
            "s",
            "30 s",
            " 30s",
            "30s ",
            "-1s",
            "+1s",
            "1.5h",
            "1h1h",
            "30m1h",
            "1w",
            "1S",
            "1h30",
            "٣s",
            "1é",
            "99999999999999999999d",
            "999999999999999d",
        ] {
            assert_eq!(parse_duration(text), None, "{text:?}");
        }
    }

    proptest! {
        #[test]
        fn a_duration_survives_being_written(millis in any::<u64>()) {
            prop_assert_eq!(parse_duration(&format_duration(millis)), Some(millis));
        }

        #[test]
        fn no_text_makes_the_duration_parser_panic(text in any::<String>()) {
            parse_duration(&text);
        }
    }
}
