//! Canonical JSON as Apex-X hashes it: keys sorted by code point, no spaces, ASCII only, floats spelt as Python spells them.
//!
//! A whole number and a float of the same value hash differently (`3`, `3.0`). Numbers that are not finite have no place in a document;
//! [`float`] spells them as Python does all the same.

use serde::Serialize;
use serde_json::Number;
use serde_json::ser::{Formatter, Serializer};
use std::io::{self, Write};

/// Decimal exponents from here on are written in scientific notation.
const EXPONENT_MAX: i32 = 16;
/// And those below this one.
const EXPONENT_MIN: i32 = -4;

/// The canonical text of a value.
///
/// # Errors
/// When the value has no JSON form, such as a map whose keys are not strings.
pub fn to_canonical<T: Serialize>(value: &T) -> Result<String, serde_json::Error> {
    let mut value = serde_json::to_value(value)?;
    // Strings compare by their UTF-8 bytes, which is the order of code points.
    value.sort_all_objects();
    let mut out = Vec::new();
    value.serialize(&mut Serializer::with_formatter(&mut out, Canonical))?;
    Ok(String::from_utf8_lossy(&out).into_owned())
}

/// Compact JSON but for floats and for characters outside of ASCII.
struct Canonical;

impl Formatter for Canonical {
    fn write_f64<W: ?Sized + Write>(&mut self, writer: &mut W, value: f64) -> io::Result<()> {
        writer.write_all(float(value).as_bytes())
    }

    fn write_string_fragment<W: ?Sized + Write>(&mut self, writer: &mut W, fragment: &str) -> io::Result<()> {
        for c in fragment.chars() {
            if (' '..='~').contains(&c) {
                write!(writer, "{c}")?;
                continue;
            }
            for unit in c.encode_utf16(&mut [0; 2]) {
                write!(writer, "\\u{unit:04x}")?;
            }
        }
        Ok(())
    }
}

/// A float as Python's `repr` has it.
pub fn float(value: f64) -> String {
    if value.is_nan() {
        return "NaN".to_owned();
    }
    if value.is_infinite() {
        return if value > 0.0 { "Infinity" } else { "-Infinity" }.to_owned();
    }
    // The shortest digits that read back the same; of two that are as near, Python takes the even one, as serde_json does and `{:e}` does
    // not.
    let text = Number::from_f64(value.abs()).map(|number| number.to_string()).unwrap_or_default();
    let (mantissa, exponent) = text.split_once('e').unwrap_or((&text, "0"));
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let padded = format!("{whole}{fraction}");
    let digits = padded.trim_start_matches('0').trim_end_matches('0');
    let digits = if digits.is_empty() { "0" } else { digits };
    let leading = padded.len() - padded.trim_start_matches('0').len();
    let exponent = match value {
        0.0 => 0,
        _ => exponent.parse::<i32>().unwrap_or(0) + whole.len() as i32 - 1 - leading as i32,
    };
    let sign = if value.is_sign_negative() { "-" } else { "" };
    match exponent {
        EXPONENT_MIN..0 => format!("{sign}0.{}{digits}", "0".repeat(-exponent as usize - 1)),
        0..EXPONENT_MAX => {
            let point = exponent as usize + 1;
            let (whole, fraction) = digits.split_at(point.min(digits.len()));
            let fraction = if fraction.is_empty() { "0" } else { fraction };
            format!("{sign}{whole:0<point$}.{fraction}")
        }
        _ => {
            let (first, rest) = digits.split_at(1);
            let point = if rest.is_empty() { "" } else { "." };
            let direction = if exponent < 0 { '-' } else { '+' };
            format!("{sign}{first}{point}{rest}e{direction}{:02}", exponent.abs())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hash;
    use proptest::prelude::*;
    use serde_json::{Value, json};

    #[test]
    fn the_seeds_vectors_hash_as_in_python() {
        let sample = json!({"t": true, "s": "é€😀\"\\\n\t/", "n": null, "i": -3, "f": [
            1.0, 0.1, 1e16, 1e-5, 123_456_789.123, 1e22, 5e-324, -0.0, 0.1 + 0.2, 1e15, 1e-4
        ]});
        let text = r#"{"f":[1.0,0.1,1e+16,1e-05,123456789.123,1e+22,5e-324,-0.0,0.30000000000000004,1000000000000000.0,0.0001],"i":-3,"n":null,"s":"\u00e9\u20ac\ud83d\ude00\"\\\n\t/","t":true}"#;
        assert_eq!(to_canonical(&sample).unwrap(), text);
        for (value, sha256) in [
            (sample, "2e4e327b2c5a026fa060b3bb92703d2955c63aff2aaa525060e17d1f4b7fe12a"),
            (
                json!({"b": [1, 2, 3], "a": {"y": 2, "x": 1}}),
                "e1ca855256d6ce15c2d389babfb8f209659a9cf625428bb2eeb07b06d5fa80ea",
            ),
            (json!({}), "44136fa355b3678a1146ad16f7e8649e94fb4fc21fe77e8310c060f61caaff8a"),
            (json!([]), "4f53cda18c2baa0c0354bb5f9a3ecbe5ed12ab4d8e11ba873c2f11161202b945"),
            (
                json!({"profile": "quality", "kmax": 32}),
                "335bb680f7cf41e4ba4950198e8a9fb7ed29ec7ee11aa7557065ce86d164d894",
            ),
            (
                json!({"budget": 3.0, "kmax": 3}),
                "796993bd6bec847035dc59483426f607d9f1f7b64eba4b1514003a8747d6a17e",
            ),
        ] {
            assert_eq!(hash::json(&value).unwrap(), sha256, "{value}");
        }
    }

    #[test]
    fn what_is_not_finite_is_spelt_as_in_python() {
        assert_eq!([f64::NAN, f64::INFINITY, -f64::INFINITY].map(float), ["NaN", "Infinity", "-Infinity"]);
    }

    #[test]
    fn of_two_spellings_as_near_the_even_one_is_pythons() {
        for (value, text) in [
            (1e15 + 0.25, "1000000000000000.2"),
            (1e15 + 0.75, "1000000000000000.8"),
            (-2_251_799_813_685_248.5, "-2251799813685248.5"),
            (9_007_199_254_740_993e7, "9.007199254740994e+22"),
        ] {
            assert_eq!(float(value), text);
        }
    }

    #[test]
    fn a_whole_number_is_not_a_float() {
        assert_ne!(to_canonical(&json!(3)).unwrap(), to_canonical(&json!(3.0)).unwrap());
        assert_eq!(to_canonical(&json!(u64::MAX)).unwrap(), "18446744073709551615");
    }

    #[test]
    fn keys_are_sorted_by_code_point() {
        // By UTF-16 units, as JavaScript sorts, the first two would change places.
        let value = json!({"\u{1f600}": 1, "\u{ffff}": 2, "B": 3, "a": 4});
        assert_eq!(to_canonical(&value).unwrap(), r#"{"B":3,"a":4,"\uffff":2,"\ud83d\ude00":1}"#);
    }

    fn values() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::from),
            any::<i64>().prop_map(Value::from),
            any::<u64>().prop_map(Value::from),
            (any::<f64>().prop_filter("finite", |x| x.is_finite())).prop_map(Value::from),
            any::<String>().prop_map(Value::from),
        ];
        leaf.prop_recursive(4, 40, 6, |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..6).prop_map(Value::from),
                prop::collection::btree_map(any::<String>(), inner, 0..6)
                    .prop_map(|map| Value::Object(map.into_iter().collect())),
            ]
        })
    }

    proptest! {
        #[test]
        fn canonical_text_is_ascii_reads_back_the_same_and_is_its_own_canonical_text(value in values()) {
            let text = to_canonical(&value).unwrap();
            prop_assert!(text.bytes().all(|byte| (b' '..=b'~').contains(&byte)));
            let back: Value = serde_json::from_str(&text).unwrap();
            prop_assert_eq!(&back, &value);
            prop_assert_eq!(to_canonical(&back).unwrap(), text);
        }

        #[test]
        fn a_float_reads_back_to_the_last_bit_and_never_looks_like_a_whole_number(bits in any::<u64>()) {
            let value = f64::from_bits(bits);
            prop_assume!(value.is_finite());
            let text = float(value);
            prop_assert_eq!(text.parse::<f64>().unwrap().to_bits(), bits);
            prop_assert!(text.contains(['.', 'e']));
        }
    }
}
