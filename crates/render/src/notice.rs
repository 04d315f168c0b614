//! Notifications: a subject, a text, and the same for Slack.

use crate::judged::{CheckRow, Judged};
use crate::text::{clean, clip, escape_html};
use crate::{remedy, units};
use holdpoint_model::Verdict;
use holdpoint_model::notice::{Notice, NoticeRow};

/// Rows in a notification; the others are counted.
const ROWS_MAX: usize = 20;
/// Characters of a name or a sentence.
const CHARS_MAX: usize = 400;
/// Characters of a subject.
const SUBJECT_CHARS: usize = 150;

/// The notice of a judgement, which is sent to programs and which the texts are made of.
pub fn notice(judged: Judged<'_>, run_url: Option<&str>) -> Notice {
    let rows: Vec<CheckRow<'_>> =
        judged.rows().into_iter().filter(|row| row.verdict != Verdict::Pass).collect();
    let cleaned = |text: &str| clip(&clean(text), CHARS_MAX);
    Notice {
        schema_version: holdpoint_model::SCHEMA_VERSION,
        suite: cleaned(&judged.judgement.suite),
        verdict: judged.judgement.verdict,
        summary: cleaned(&judged.sentence()),
        commit: judged.revision().map(|revision| cleaned(&revision.commit)),
        machine: judged.machine().map(|machine| cleaned(&machine.describe())),
        run_url: run_url.map(str::to_owned),
        rows_left_out: rows.len().saturating_sub(ROWS_MAX),
        rows: rows.iter().take(ROWS_MAX).map(row).collect(),
    }
}

/// The notice of a gate that left no comparison.
pub fn without_judgement(verdict: Verdict, summary: String, run_url: Option<&str>) -> Notice {
    Notice {
        schema_version: holdpoint_model::SCHEMA_VERSION,
        suite: "gate".to_owned(),
        verdict,
        summary,
        commit: None,
        machine: None,
        run_url: run_url.map(str::to_owned),
        rows: Vec::new(),
        rows_left_out: 0,
    }
}

/// Puts problems with the files first; `verdict` takes them into account.
pub fn with_problems(mut notice: Notice, problems: &[String], verdict: Verdict) -> Notice {
    notice.verdict = verdict;
    if !problems.is_empty() {
        let shown: Vec<String> = problems.iter().map(|problem| clip(&clean(problem), CHARS_MAX)).collect();
        notice.summary = clip(&format!("{}; {}", shown.join("; "), notice.summary), 2 * CHARS_MAX);
    }
    notice
}

fn row(row: &CheckRow<'_>) -> NoticeRow {
    NoticeRow {
        name: clip(&clean(row.name()), CHARS_MAX),
        verdict: row.verdict,
        change: row.change,
        interval: row.interval,
        allowed: row.allowed,
        reason: clip(&clean(&remedy::with(&row.check.reason)), CHARS_MAX),
        waiver: row.check.waiver.clone(),
    }
}

/// One line.
pub fn subject(notice: &Notice) -> String {
    let Notice { suite, verdict, summary, .. } = notice;
    clip(&format!("[holdpoint] {} {suite}: {summary}", verdict.as_str()), SUBJECT_CHARS)
}

/// The text of a mail.
pub fn plain(notice: &Notice) -> String {
    lines(notice, |text| text.to_owned(), "").join("\n") + "\n"
}

/// The text of a message in Slack: what would be a link, a mention or a channel there is text.
pub fn slack(notice: &Notice) -> String {
    lines(notice, escape_html, "*").join("\n")
}

fn lines(notice: &Notice, escape: impl Fn(&str) -> String, strong: &str) -> Vec<String> {
    let verdict = notice.verdict.as_str();
    let mut lines =
        vec![format!("{strong}{verdict}{strong} {}: {}", escape(&notice.suite), escape(&notice.summary))];
    for row in &notice.rows {
        let change = row.change.map(|change| format!(" {}", units::percent(change))).unwrap_or_default();
        let (word, name, reason) = (row.verdict.as_str(), escape(&row.name), escape(&row.reason));
        lines.push(format!("- {word} {name}{change}: {reason}"));
    }
    if notice.rows_left_out > 0 {
        lines.push(format!("- and {} more", units::count(notice.rows_left_out as u64)));
    }
    lines.extend(notice.commit.as_ref().map(|commit| format!("commit {}", escape(commit))));
    lines.extend(notice.machine.as_ref().map(|machine| format!("machine {}", escape(machine))));
    lines.extend(notice.run_url.as_ref().map(|url| escape(url)));
    lines
}
