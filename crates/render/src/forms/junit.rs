//! JUnit's XML: a test case per metric or workload.

use super::{name, sentence};
use crate::judged::{Judged, Row};
use holdpoint_model::Verdict;

/// A failure for what regressed, an error for what is broken or undecided, skipped for what was; what is waived passes and
/// says so. Undecided is an error because it is not fine.
#[must_use]
pub fn junit(judged: Judged<'_>) -> String {
    let rows = judged.rows();
    let count = |of: &[Verdict]| rows.iter().filter(|row| of.contains(&row.verdict)).count();
    let counts = format!(
        "tests=\"{}\" failures=\"{}\" errors=\"{}\" skipped=\"{}\"",
        rows.len(),
        count(&[Verdict::Regressed]),
        count(&[Verdict::Broken, Verdict::Inconclusive]),
        count(&[Verdict::Skipped]),
    );
    let suite = attribute(&name(judged.suite()));
    let mut out =
        format!("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites name=\"holdpoint\" {counts}>\n");
    let began = judged.began().filter(|began| is_time(began));
    let timestamp = began.map(|began| format!(" timestamp=\"{began}\"")).unwrap_or_default();
    out += &format!("  <testsuite name=\"{suite}\" {counts}{timestamp}>\n");
    rows.iter().for_each(|row| out += &case(row, &suite));
    let (verdict, said) = (judged.verdict().as_str(), attribute(&crate::text::clean(&judged.sentence())));
    out += &format!("    <system-out>{verdict}: {said}</system-out>\n  </testsuite>\n</testsuites>\n");
    out
}

fn case(row: &Row<'_>, suite: &str) -> String {
    let said = attribute(&sentence(row));
    let element = match row.verdict {
        Verdict::Regressed => "failure",
        Verdict::Broken | Verdict::Inconclusive => "error",
        Verdict::Skipped => "skipped",
        Verdict::Improved | Verdict::Pass | Verdict::Waived => "",
    };
    let body = match element {
        "" => format!("<system-out>{said}</system-out>"),
        "skipped" => format!("<skipped message=\"{said}\"/>"),
        element => format!("<{element} type=\"{}\" message=\"{said}\"/>", row.verdict.as_str()),
    };
    let seconds = row.seconds.map(|seconds| format!(" time=\"{seconds:.3}\"")).unwrap_or_default();
    format!(
        "    <testcase classname=\"{suite}\" name=\"{}\"{seconds}>{body}</testcase>\n",
        attribute(&name(row.name))
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

fn is_time(text: &str) -> bool {
    !text.is_empty()
        && text.len() <= 40
        && text.chars().all(|c| c.is_ascii_alphanumeric() || "-:.+".contains(c))
}
