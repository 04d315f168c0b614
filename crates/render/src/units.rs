//! Numbers for people: four significant digits, the unit that fits, and a dash for what is no number.

/// Stands where a number is missing.
pub(crate) const MISSING: &str = "–";

/// The number if there is one, else a dash.
pub fn number(value: Option<f64>, format: fn(f64) -> String) -> String {
    value.map_or_else(|| MISSING.to_owned(), format)
}

/// Smaller or larger than this is written with an exponent.
const PLAIN_MIN: f64 = 0.001;
const PLAIN_MAX: f64 = 1e6;

const TIME_UNITS: &[(f64, &str)] = &[(1e6, "ns"), (1e3, "µs"), (1.0, "ms"), (1e-3, "s")];
const PREFIXES: &[(f64, &str)] = &[(1.0, ""), (1e-3, "k"), (1e-6, "M"), (1e-9, "G"), (1e-12, "T")];

/// A time in the unit that fits: `999.9 ns`, `12.34 µs`, `1.200 ms`, `3.400 s`.
pub fn time(ms: f64) -> String {
    scaled(ms, TIME_UNITS, "")
}

/// The two ends of an interval of times, in the unit of the upper one: `1.230 – 1.240 ms`.
pub(crate) fn time_interval(low_ms: f64, high_ms: f64) -> String {
    if !low_ms.is_finite() || !high_ms.is_finite() {
        return MISSING.to_owned();
    }
    let (per_ms, unit) = fitting_unit(high_ms, TIME_UNITS);
    format!("{} – {} {unit}", digits(low_ms * per_ms), digits(high_ms * per_ms))
}

/// The unit for an axis of times up to this one: how many of it are a millisecond, and its name.
pub(crate) fn axis_unit(high_ms: f64) -> (f64, &'static str) {
    fitting_unit(high_ms, TIME_UNITS)
}

/// The same for any metric of two sides, whose name ends with its unit.
pub(crate) fn metric_axis(name: &str, high: f64) -> (f64, String) {
    let prefixed = |factor: f64, unit: &str| {
        let (per, prefix) = fitting_unit(high * factor, PREFIXES);
        (per * factor, format!("{prefix}{unit}"))
    };
    match () {
        () if name.ends_with("_ms") => {
            let (per, unit) = axis_unit(high);
            (per, unit.to_owned())
        }
        () if name.ends_with("_mb") => prefixed(1e6, "B"),
        () if name.ends_with("_mj") => (1.0, "mJ".to_owned()),
        () if name.ends_with("_per_s") => prefixed(1.0, "/s"),
        () => prefixed(1.0, ""),
    }
}

/// A change as a signed percentage: `+1.3 %`, `-20.0 %`, `0.0 %`, `+134 %`.
pub fn percent(ratio: f64) -> String {
    signed(ratio, "+")
}

/// A share as a percentage without a plus sign: `1.3 %`.
pub fn share(ratio: f64) -> String {
    signed(ratio, "")
}

/// The two ends of an interval of changes: `-0.3 … +0.5 %`.
pub fn percent_interval(low: f64, high: f64) -> String {
    match (percent(low), percent(high)) {
        (low, high) if low == MISSING || high == MISSING => MISSING.to_owned(),
        (low, high) => format!("{} … {high}", low.trim_end_matches(" %")),
    }
}

/// A share that is expected to be small: `0.43 %`, `1.5 %`, `0.003 %`.
pub(crate) fn small_share(ratio: f64) -> String {
    let percent = ratio * 100.0;
    match percent.abs() {
        0.00995..0.995 => format!("{percent:.2} %"),
        0.001..0.00995 => format!("{percent:.3} %"),
        tiny if tiny > 0.0 && tiny < 0.001 => format!("{percent:.1e} %"),
        _ => share(ratio),
    }
}

/// A share that somebody chose, with every digit it was given: `1.0 %`, `0.25 %`, `0.001 %`.
pub fn setting(ratio: f64) -> String {
    let percent = ratio * 100.0;
    if percent != 0.0 && !(0.0001..PLAIN_MAX).contains(&percent.abs()) {
        return if percent.is_finite() { format!("{percent:.1e} %") } else { MISSING.to_owned() };
    }
    let digits = format!("{percent:.4}");
    let kept = digits.trim_end_matches('0');
    let zero = if kept.ends_with('.') { "0" } else { "" };
    format!("{kept}{zero} %")
}

/// Seconds without their unit, for a column of that name: `2.1`.
pub fn seconds(s: f64) -> String {
    if s.is_finite() { format!("{s:.1}") } else { MISSING.to_owned() }
}

/// How long ago something was, in its largest unit: `12 s`, `5 min`, `3 h`, `9 d`.
pub fn age(s: f64) -> String {
    match s {
        ..60.0 => format!("{s:.0} s"),
        ..3_600.0 => format!("{:.0} min", (s / 60.0).floor()),
        ..86_400.0 => format!("{:.0} h", (s / 3_600.0).floor()),
        _ if s.is_finite() => format!("{:.0} d", (s / 86_400.0).floor()),
        _ => MISSING.to_owned(),
    }
}

/// Evidence, where 1 is none: `0.02`, `8.3`, `21 500`, `1.3e6`.
pub fn evidence(e: f64) -> String {
    match e {
        _ if !e.is_finite() => MISSING.to_owned(),
        ..0.005 => "0".to_owned(),
        0.005..0.995 => format!("{e:.2}"),
        0.995..99.95 => format!("{e:.1}"),
        99.95..99_999.5 => count(e.round() as u64),
        _ => format!("{e:.1e}"),
    }
}

/// A number between -10 and 10 or so, with its sign: `+0.33`.
pub fn effect(v: f64) -> String {
    match format!("{v:+.2}").as_str() {
        _ if !v.is_finite() => MISSING.to_owned(),
        "+0.00" | "-0.00" => "0.00".to_owned(),
        text => text.to_owned(),
    }
}

/// A probability: `0.043`, `2.1e-5`.
pub(crate) fn probability(p: f64) -> String {
    match p {
        _ if !p.is_finite() => MISSING.to_owned(),
        PLAIN_MIN.. => format!("{p:.3}"),
        0.0 => "0".to_owned(),
        _ => format!("{p:.1e}"),
    }
}

/// A factor: `1.34×`.
pub fn factor(v: f64) -> String {
    match v.abs() {
        _ if !v.is_finite() => MISSING.to_owned(),
        0.0 => "0×".to_owned(),
        0.01..1000.0 => format!("{v:.2}×"),
        _ => format!("{v:.2e}×"),
    }
}

/// Operations per byte: `0.52`, `12.8`, `256`.
pub(crate) fn intensity(v: f64) -> String {
    match v.abs() {
        _ if !v.is_finite() => MISSING.to_owned(),
        99.95.. => count(v.round() as u64),
        9.995..99.95 => format!("{v:.1}"),
        0.00995..9.995 => format!("{v:.2}"),
        _ => format!("{v:.1e}"),
    }
}

/// A quantity per second with its prefix: `12.34 M`, `980.0`.
pub fn rate(v: f64) -> String {
    scaled(v, PREFIXES, "").trim_end().to_owned()
}

/// Memory in megabytes, with the unit that fits: `12.34 MB`.
pub fn memory(mb: f64) -> String {
    scaled(mb * 1e6, PREFIXES, "B")
}

/// A metric of two sides; the end of its name is its unit.
pub fn metric(name: &str, v: f64) -> String {
    let ends = |unit: &str| name.ends_with(unit);
    match () {
        () if ends("_ms") => time(v),
        () if ends("_mb") => memory(v),
        () if ends("_mj") => format!("{} mJ", digits(v)),
        () if ends("_bytes") => memory(v / 1e6),
        () if ends("_per_s") => scaled(v, PREFIXES, "/s"),
        () if v.fract() == 0.0 && v.abs() < 1e15 => count(v as u64),
        () => rate(v),
    }
}

/// A throughput by its key in the report: `gb_per_s`, `gflops`, or items such as `tiles_per_s`.
pub fn throughput(key: &str, v: f64) -> String {
    let (v, unit) = match key {
        "gb_per_s" => (v * 1e9, "B/s".to_owned()),
        "gflops" => (v * 1e9, "FLOP/s".to_owned()),
        _ => match key.strip_suffix("_per_s") {
            Some(item) => (v, format!("{item}/s")),
            None => (v, key.to_owned()),
        },
    };
    scaled(v, PREFIXES, &unit)
}

/// A count with its thousands apart: `9 950`.
pub fn count(n: u64) -> String {
    let digits = n.to_string();
    let mut out = String::with_capacity(digits.len() + digits.len() / 3);
    for (i, digit) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i).is_multiple_of(3) {
            out.push(' ');
        }
        out.push(digit);
    }
    out
}

/// The value with its unit, which may follow a prefix.
fn scaled(value: f64, units: &[(f64, &'static str)], unit: &str) -> String {
    if !value.is_finite() {
        return MISSING.to_owned();
    }
    let (per, prefix) = fitting_unit(value, units);
    format!("{} {prefix}{unit}", digits(value * per))
}

/// The first unit in which the value stays below 1000 once rounded, else the last.
fn fitting_unit(value: f64, units: &[(f64, &'static str)]) -> (f64, &'static str) {
    // Zero has no size of its own: it is shown in the unit that the caller's number has.
    let own = units.iter().find(|(per, _)| *per == 1.0);
    let fits = units.iter().find(|(per, _)| (value * per).abs() < 999.95);
    let chosen = if value == 0.0 { own } else { fits.or(units.last()) };
    chosen.copied().unwrap_or((1.0, ""))
}

/// Four significant digits.
fn digits(v: f64) -> String {
    match v.abs() {
        0.0 => "0".to_owned(),
        PLAIN_MIN..9.9995 => format!("{v:.3}"),
        9.9995..99.995 => format!("{v:.2}"),
        99.995..999.95 => format!("{v:.1}"),
        999.95..PLAIN_MAX => format!("{v:.0}"),
        _ => format!("{v:.3e}"),
    }
}

fn signed(ratio: f64, plus: &str) -> String {
    let percent = ratio * 100.0;
    let sign = if percent > 0.0 { plus } else { "" };
    match percent.abs() {
        _ if !percent.is_finite() => MISSING.to_owned(),
        // Whatever rounds to zero has no sign.
        0.0..0.05 => "0.0 %".to_owned(),
        0.05..99.95 => format!("{sign}{percent:.1} %"),
        99.95..PLAIN_MAX => format!("{sign}{percent:.0} %"),
        _ => format!("{sign}{percent:.1e} %"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_takes_the_unit_that_fits() {
        let cases = [
            (0.0, "0 ms"),
            (1e-7, "0.100 ns"),
            (1e-12, "1.000e-6 ns"),
            (0.0009999, "999.9 ns"),
            (0.000_999_96, "1.000 µs"),
            (0.001, "1.000 µs"),
            (0.12345, "123.5 µs"),
            (1.0, "1.000 ms"),
            (12.345, "12.35 ms"),
            (999.94, "999.9 ms"),
            (999.95, "1.000 s"),
            (1234.5, "1.234 s"),
            (3_600_000.0, "3600 s"),
            (1e15, "1.000e12 s"),
            (-1.5, "-1.500 ms"),
        ];
        for (ms, want) in cases {
            assert_eq!(time(ms), want, "{ms}");
        }
    }

    #[test]
    fn what_is_no_number_is_a_dash() {
        for v in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY] {
            for text in [time(v), percent(v), share(v), factor(v), rate(v), throughput("gflops", v)] {
                assert_eq!(text, MISSING);
            }
            assert_eq!(time_interval(v, 1.0), MISSING);
            assert_eq!(time_interval(1.0, v), MISSING);
        }
    }

    #[test]
    fn percent_never_shows_a_signed_zero() {
        let cases = [
            (0.0, "0.0 %"),
            (-0.0, "0.0 %"),
            (-0.0004, "0.0 %"),
            (0.0004, "0.0 %"),
            (-0.0005, "-0.1 %"),
            (0.013, "+1.3 %"),
            (0.341, "+34.1 %"),
            (-0.2, "-20.0 %"),
            (0.9995, "+100 %"),
            (1.34, "+134 %"),
            (1e9, "+1.0e11 %"),
        ];
        for (ratio, want) in cases {
            assert_eq!(percent(ratio), want, "{ratio}");
        }
        assert_eq!(share(0.013), "1.3 %");
    }

    #[test]
    fn rates_carry_a_prefix() {
        assert_eq!(rate(980.0), "980.0");
        assert_eq!(rate(12_340_000.0), "12.34 M");
        assert_eq!(rate(0.0), "0");
        assert_eq!(throughput("tiles_per_s", 999_960.0), "1.000 Mtiles/s");
        assert_eq!(throughput("gb_per_s", 0.5), "500.0 MB/s");
        assert_eq!(throughput("gflops", 1234.0), "1.234 TFLOP/s");
        assert_eq!(throughput("odd", 3.0), "3.000 odd");
    }

    #[test]
    fn an_interval_has_one_unit() {
        assert_eq!(time_interval(0.998, 1.002), "0.998 – 1.002 ms");
        assert_eq!(time_interval(0.1204, 0.1239), "120.4 – 123.9 µs");
    }

    #[test]
    fn an_interval_of_changes_has_one_unit_and_two_signs() {
        assert_eq!(percent_interval(-0.003, 0.005), "-0.3 … +0.5 %");
        assert_eq!(percent_interval(-0.052, -0.041), "-5.2 … -4.1 %");
        assert_eq!(percent_interval(0.0, 1.5), "0.0 … +150 %");
        assert_eq!(percent_interval(f64::NAN, 1.5), MISSING);
    }

    #[test]
    fn a_setting_keeps_its_digits_and_a_small_share_is_not_zero() {
        let cases = [(0.01, "1.0 %"), (0.0025, "0.25 %"), (0.001, "0.1 %"), (0.07, "7.0 %"), (0.0, "0.0 %")];
        for (ratio, want) in cases {
            assert_eq!(setting(ratio), want);
        }
        assert_eq!(setting(1e-9), "1.0e-7 %");
        assert_eq!(setting(f64::NAN), MISSING);
        let cases = [
            (0.0149, "1.5 %"),
            (0.0043, "0.43 %"),
            (0.000_9, "0.09 %"),
            (0.000_031, "0.003 %"),
            (1e-7, "1.0e-5 %"),
        ];
        for (ratio, want) in cases {
            assert_eq!(small_share(ratio), want);
        }
        assert_eq!(small_share(0.001), "0.10 %");
        assert_eq!(small_share(0.0), "0.0 %");
    }

    #[test]
    fn numbers_of_statistics_are_short() {
        assert_eq!(
            [0.001, 0.02, 8.31, 412.4, 2e4, 1.3e6].map(evidence),
            ["0", "0.02", "8.3", "412", "20 000", "1.3e6"]
        );
        assert_eq!([0.333, -0.001, -1.5].map(effect), ["+0.33", "0.00", "-1.50"]);
        assert_eq!([0.0431, 2.1e-5, 0.0, 1.0].map(probability), ["0.043", "2.1e-5", "0", "1.000"]);
        assert_eq!([seconds(2.14), seconds(f64::INFINITY)], ["2.1", MISSING]);
    }

    #[test]
    fn counts_are_grouped_and_factors_are_marked() {
        assert_eq!(count(0), "0");
        assert_eq!(count(950), "950");
        assert_eq!(count(9_950), "9 950");
        assert_eq!(count(1_234_567), "1 234 567");
        assert_eq!(factor(1.344), "1.34×");
        assert_eq!(factor(1e-9), "1.00e-9×");
    }
}
