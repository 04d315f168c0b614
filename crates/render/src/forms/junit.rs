//! JUnit's XML: a test case per metric or workload.

use super::{WHOLE, name, sentence, whole};
use crate::judged::Judged;
use holdpoint_model::Verdict;

/// Regressed is a failure; broken and undecided are errors, because undecided is not fine. A waived case passes and says so.
pub fn junit(judged: Judged<'_>) -> String {
    let rows = judged.rows();
    let whole = whole(judged);
    let verdicts: Vec<Verdict> =
        rows.iter().map(|row| row.verdict).chain(whole.as_ref().map(|(verdict, _)| *verdict)).collect();
    let count = |of: &[Verdict]| verdicts.iter().filter(|verdict| of.contains(verdict)).count();
    // Jenkins allows these on the whole; the number of skipped ones, only on a suite.
    let counts = format!(
        "tests=\"{}\" failures=\"{}\" errors=\"{}\"",
        verdicts.len(),
        count(&[Verdict::Regressed]),
        count(&[Verdict::Broken, Verdict::Inconclusive]),
    );
    let skipped = count(&[Verdict::Skipped]);
    let suite = attribute(&name(&judged.judgement.suite));
    let mut out =
        format!("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites name=\"holdpoint\" {counts}>\n");
    let timestamp = judged.began().and_then(time);
    let timestamp = timestamp.map(|began| format!(" timestamp=\"{began}\"")).unwrap_or_default();
    out += &format!("  <testsuite name=\"{suite}\" {counts} skipped=\"{skipped}\"{timestamp}>\n");
    rows.iter().for_each(|row| out += &case(row.verdict, row.name(), row.seconds(), &sentence(row), &suite));
    whole.iter().for_each(|(verdict, sentence)| out += &case(*verdict, WHOLE, None, sentence, &suite));
    let (verdict, message) =
        (judged.judgement.verdict.as_str(), attribute(&crate::text::clean(&judged.sentence())));
    out += &format!("    <system-out>{verdict}: {message}</system-out>\n  </testsuite>\n</testsuites>\n");
    out
}

fn case(verdict: Verdict, of: &str, seconds: Option<f64>, sentence: &str, suite: &str) -> String {
    let message = attribute(sentence);
    let element = match verdict {
        Verdict::Regressed => "failure",
        Verdict::Broken | Verdict::Inconclusive => "error",
        Verdict::Skipped => "skipped",
        Verdict::Improved | Verdict::Pass | Verdict::Waived => "",
    };
    let body = match element {
        "" => format!("<system-out>{message}</system-out>"),
        "skipped" => format!("<skipped message=\"{message}\"/>"),
        element => format!("<{element} type=\"{}\" message=\"{message}\"/>", verdict.as_str()),
    };
    let seconds = seconds.map(|seconds| format!(" time=\"{seconds:.3}\"")).unwrap_or_default();
    format!(
        "    <testcase classname=\"{suite}\" name=\"{}\"{seconds}>{body}</testcase>\n",
        attribute(&name(of))
    )
}

/// Text in an attribute or an element; what XML cannot hold at all is shown as its code point.
fn attribute(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&apos;"),
            '\u{fffe}' | '\u{ffff}' => out.extend(c.escape_unicode()),
            _ if c.is_control() => out.extend(c.escape_unicode()),
            // Keeps a runner that prints the file from finding a command in it.
            '#' => out.push_str("&#35;"),
            _ => out.push(c),
        }
    }
    out
}

/// A time as the strictest of the schemas has it: `2026-11-15T15:26:27`, in UTC, without a zone or a fraction.
fn time(text: &str) -> Option<&str> {
    let (time, rest) = text.split_at_checked("2026-11-15T15:26:27".len())?;
    let is_alike = |(c, like): (u8, u8)| if like == b'0' { c.is_ascii_digit() } else { c == like };
    let is_utc = rest.ends_with('Z') && rest.bytes().all(|b| b.is_ascii_digit() || b".Z".contains(&b));
    (is_utc && time.bytes().zip(*b"0000-00-00T00:00:00").all(is_alike)).then_some(time)
}
