//! Units of other tools, as far as they are times, or rates that are times per item when turned over.

#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Unit {
    /// A time, by the milliseconds in one.
    Time(f64),
    /// So many of these per second; more is better.
    Rate(String),
}

impl Unit {
    /// The unit that a text names: `ns`, `us/iter`, `seconds`, `tokens/s`, `GB/s`, `TFLOPS`.
    pub fn parse(text: &str) -> Option<Self> {
        let text = text.trim();
        let per_call = ["/iter", "/op", "/call", "/iteration"].iter().find_map(|end| text.strip_suffix(end));
        if let Some(ms) = time_ms(per_call.unwrap_or(text)) {
            return Some(Self::Time(ms));
        }
        let per_second =
            ["/s", "/sec", "/second", " per second"].iter().find_map(|end| text.strip_suffix(end));
        let item = match per_second {
            Some(item) => item,
            None => ["GFLOPS", "TFLOPS", "GFLOP", "TFLOP"]
                .iter()
                .find(|flops| text.eq_ignore_ascii_case(flops))?,
        };
        let item: String = item.trim().chars().filter(char::is_ascii_alphanumeric).collect();
        let singular = item.strip_suffix(['s', 'S']).filter(|rest| rest.len() > 1).unwrap_or(&item);
        (!singular.is_empty()).then(|| Self::Rate(singular.to_lowercase()))
    }

    /// A value in milliseconds; of a rate, of one item. Nothing of a rate of 0.
    pub(crate) fn to_ms(&self, value: f64) -> Option<f64> {
        match self {
            // Dividing by a whole number keeps more digits than multiplying by its rounded inverse.
            Self::Time(ms) if *ms < 1.0 => Some(value / (1.0 / ms).round()),
            Self::Time(ms) => Some(value * ms),
            Self::Rate(_) => Some(1e3 / value).filter(|ms| ms.is_finite() && value > 0.0),
        }
    }

    /// The end of a metric's name: `p50_ms` stays, a rate becomes `time_per_token_p50_ms`.
    pub fn metric(&self, statistic: &str) -> String {
        let statistic = if statistic.is_empty() { "ms".to_owned() } else { format!("{statistic}_ms") };
        match self {
            Self::Time(_) => statistic,
            Self::Rate(item) => format!("time_per_{item}_{statistic}"),
        }
    }
}

/// Milliseconds in a unit of time.
pub(crate) fn time_ms(text: &str) -> Option<f64> {
    Some(match text {
        "ns" | "nsec" | "nanosecond" | "nanoseconds" => 1e-6,
        "us" | "µs" | "μs" | "usec" | "microsecond" | "microseconds" => 1e-3,
        "ms" | "msec" | "millisecond" | "milliseconds" => 1.0,
        "s" | "sec" | "secs" | "second" | "seconds" => 1e3,
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_and_rates_are_known_and_nothing_else() {
        for (text, metric, ms) in [
            ("ns", "p50_ms", 2e-6),
            ("us/iter", "p50_ms", 2e-3),
            (" msec ", "p50_ms", 2.0),
            ("seconds", "p50_ms", 2e3),
            ("iter/sec", "time_per_iter_p50_ms", 500.0),
            ("tokens/s", "time_per_token_p50_ms", 500.0),
            ("GB/s", "time_per_gb_p50_ms", 500.0),
            ("TFLOPS", "time_per_tflop_p50_ms", 500.0),
        ] {
            let unit = Unit::parse(text).unwrap();
            assert_eq!((unit.metric("p50").as_str(), unit.to_ms(2.0)), (metric, Some(ms)), "{text}");
        }
        for text in ["", "bytes", "MB", "%", "x", "/s", "per"] {
            assert_eq!(Unit::parse(text), None, "{text}");
        }
        assert_eq!(Unit::Rate("x".to_owned()).to_ms(0.0), None);
    }
}
