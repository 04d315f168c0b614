//! The sections of the comment.

use super::super::tables::verdict_line;
use super::super::{details, escape, joined};
use super::{Budget, Comment, Trust, picture};
use crate::judged::{CheckRow, Judged, shown_name};
use crate::remedy;
use crate::summary::judgement;
use crate::table::{Cell, EmptyColumns, Grid, names, numbers, words};
use crate::text::{clip, plural};
use crate::units;
use holdpoint_model::judgement::STATUS_METRIC;
use holdpoint_model::{AbPlan, Calibration, Revision, Side, Stated, Verdict};
use holdpoint_stats::sequential::{ALARM_RATE, MISS_RATE};

const STDERR_LINES: usize = 5;

/// One comparison, and how many of its rows were left out.
pub(super) fn judged(judged: Judged<'_>, budget: Budget) -> (String, usize) {
    let rows = judged.rows();
    let shown = rows.len().min(budget.rows);
    let of =
        |is: fn(&CheckRow<'_>) -> bool| rows[..shown].iter().filter(move |row| is(row)).collect::<Vec<_>>();
    let moved = of(|row| matches!(row.verdict, Verdict::Regressed | Verdict::Waived | Verdict::Improved));
    let missing = of(|row| is_missing(row) && row.name() != STATUS_METRIC);
    let status = of(|row| is_missing(row) && row.name() == STATUS_METRIC);
    let broken = of(|row| row.verdict == Verdict::Broken);
    let undecided = of(|row| matches!(row.verdict, Verdict::Inconclusive | Verdict::Skipped));
    let passed = of(|row| row.verdict == Verdict::Pass);
    let passed_count = rows.iter().filter(|row| row.verdict == Verdict::Pass).count();
    let qualified = |rows: &[&CheckRow<'_>]| -> String {
        let rows = rows.iter().filter(|row| judgement::is_qualified(judged, row.check));
        rows.map(|row| reason(row, budget)).collect()
    };
    let drawn: Vec<&CheckRow<'_>> = moved.iter().chain(&undecided).copied().collect();
    let text = joined(&[
        head(judged, budget),
        table(judged, &moved, budget),
        picture::picture(&drawn),
        titled("Missing", missing.iter().map(|row| reason(row, budget)).collect()),
        titled("Status of the run", status.iter().map(|row| reason(row, budget)).collect()),
        titled("Waived", waived(&moved, budget)),
        titled("Waiver refused", refused(&moved, budget)),
        titled("Broken", broken.iter().map(|row| failed(row, budget)).collect()),
        titled("Not decided", undecided.iter().map(|row| reason(row, budget)).collect()),
        titled("To be checked", qualified(&moved)),
        details(
            &counted(passed_count, passed.len()),
            joined(&[table(judged, &passed, budget), qualified(&passed)]),
        ),
        notes(judged, budget),
    ]);
    (text, rows.len() - shown)
}

fn is_missing(row: &CheckRow<'_>) -> bool {
    row.verdict == Verdict::Regressed && row.change.is_none()
}

/// `4 970 passed, 220 shown`.
fn counted(count: usize, shown: usize) -> String {
    let all = format!("{} passed", units::count(count as u64));
    if shown == count { all } else { format!("{all}, {} shown", units::count(shown as u64)) }
}

fn titled(title: &str, body: String) -> String {
    if body.is_empty() { body } else { format!("**{title}**\n\n{body}") }
}

fn head(judged: Judged<'_>, budget: Budget) -> String {
    let prose = |text: &str| escape::prose(&clip(text, budget.chars));
    let sentence = escape::prose(&clip(&judged.sentence(), 2 * budget.chars));
    let mut facts =
        vec![format!("suite {}", escape::name(&clip(&judged.judgement.suite, budget.chars.min(120))))];
    facts.extend(judged.facts().iter().map(|fact| prose(fact)));
    format!("{}\n\n{}\n", verdict_line(judged, &sentence), facts.join(" · "))
}

fn clip_name(row: &CheckRow<'_>, budget: Budget) -> String {
    clip(shown_name(row.name()), budget.chars.min(120))
}

fn name(row: &CheckRow<'_>, budget: Budget) -> String {
    escape::name(&clip_name(row, budget))
}

fn table(judged: Judged<'_>, rows: &[&CheckRow<'_>], budget: Budget) -> String {
    let [was, is] = judged.value_titles();
    let mut grid = Grid::new(&[
        words("verdict"),
        names(judged.noun()),
        numbers(was),
        numbers(is),
        numbers("change"),
        numbers("interval"),
        numbers("allowed"),
    ]);
    for row in rows {
        let [was, is] = row.value_cells();
        grid.push([
            Cell::verdict(row.verdict),
            Cell::name(&clip_name(row, budget)),
            was,
            is,
            Cell::number(row.change, units::percent),
            row.interval_cell(),
            Cell::number(row.allowed, units::percent),
        ]);
    }
    grid.markdown(EmptyColumns::Drop)
}

fn waived(rows: &[&CheckRow<'_>], budget: Budget) -> String {
    let prose = |text: &str| escape::prose(&clip(text, budget.chars));
    let line = |row: &&CheckRow<'_>| {
        let waiver = row.check.waiver.as_ref().filter(|_| row.verdict == Verdict::Waived)?;
        let (owner, reason, expires) = (prose(&waiver.owner), prose(&waiver.reason), waiver.expires);
        let limit = units::percent(waiver.limit);
        Some(format!("- {}: up to {limit} by {owner} until {expires}: {reason}\n", name(row, budget)))
    };
    rows.iter().filter_map(line).collect()
}

/// Waivers that did not help.
fn refused(rows: &[&CheckRow<'_>], budget: Budget) -> String {
    let refused = rows.iter().filter(|row| row.verdict == Verdict::Regressed && row.check.waiver.is_some());
    refused.map(|row| reason(row, budget)).collect()
}

fn reason(row: &CheckRow<'_>, budget: Budget) -> String {
    let reason = escape::prose(&clip(&remedy::with(&row.check.reason), budget.chars));
    format!("- {} **{}**: {reason}\n", name(row, budget), row.verdict.as_str())
}

fn failed(row: &CheckRow<'_>, budget: Budget) -> String {
    let mut out = reason(row, budget);
    let tail = row.failure.map(|failed| failed.failure.stderr_tail.as_slice()).unwrap_or_default();
    let last = &tail[tail.len().saturating_sub(STDERR_LINES)..];
    if !last.is_empty() && budget.notes > 0 {
        // The bar keeps a line from being taken for a command by a runner that prints it.
        let line =
            |line: &String| format!("│ {}", escape::html(&clip(line, budget.chars)).replace('#', "&#35;"));
        let lines: Vec<String> = last.iter().map(line).collect();
        out.push_str(&format!("\n<pre>\n{}\n</pre>\n", lines.join("\n")));
    }
    out
}

fn notes(judged: Judged<'_>, budget: Budget) -> String {
    let notes = judgement::notes(judged);
    let shown = notes.iter().take(budget.notes);
    let mut out: String =
        shown.map(|(_, note)| format!("- {}\n", escape::prose(&clip(note, budget.chars)))).collect();
    match notes.len().saturating_sub(budget.notes) {
        0 => {}
        n => out.push_str(&format!("- and {} more\n", plural(n, "note"))),
    }
    titled("Notes", out)
}

/// The machine, its false alarms on unchanged code, and the cost.
pub(super) fn machine(c: &Comment<'_>, budget: Budget) -> String {
    let prose = |text: &str| escape::prose(&clip(text, budget.chars));
    let mut lines = Vec::new();
    let machine = c.judged.and_then(|judged| judged.machine());
    if let Some(machine) = machine.or(c.report.and_then(|report| report.machine.as_ref())) {
        let fingerprint = prose(&clip(&machine.fingerprint, 12));
        lines.push(format!("- **Machine**: {} (fingerprint {fingerprint})\n", prose(&machine.describe())));
    }
    lines.extend(calibration(c).map(|line| format!("- **A/A**: {line}\n")));
    let versions = c.judged.and_then(|judged| Some((judged.toolchain()?, judged.began()?)));
    if let Some((tools, began)) = versions {
        let (version, profile) = (prose(&tools.holdpoint), prose(&tools.profile));
        lines.push(format!("- **Made by** holdpoint {version} ({profile}), {}\n", prose(began)));
    }
    lines.push(cost(c));
    titled("Machine and cost", lines.concat())
}

fn calibration(c: &Comment<'_>) -> Option<String> {
    let judged = c.judged?;
    // It holds for its own suite on its own machine only.
    let fingerprint = judged.machine().map(|machine| &machine.fingerprint);
    let fits = |seen: &&Calibration| {
        let is_of_suite = judged.judgement.suite == seen.suite;
        let is_evidence = seen.is_evidence() && seen.decided != Some(0);
        seen.inject <= 0.0 && is_evidence && is_of_suite && fingerprint == Some(&seen.machine.fingerprint)
    };
    if let Some(seen) = c.calibration.filter(fits) {
        let upper = seen
            .false_alarm_rate_upper
            .map(|rate| format!("; with 95 % confidence at most {} of them are", units::small_share(rate)));
        return Some(format!(
            "{} of {} unchanged suites were called slower at a tolerance of {}{}",
            units::count(seen.false_alarms.into()),
            units::count(seen.decided.unwrap_or(seen.trials).into()),
            units::setting(seen.tolerance),
            upper.unwrap_or_default()
        ));
    }
    let paired = judged.judgement.checks.iter().filter_map(|check| check.paired.as_ref());
    let seen = paired.filter_map(|paired| paired.calibrated.as_ref());
    let seen: Vec<_> = seen.filter(|seen| seen.inject <= 0.0 && seen.is_evidence()).collect();
    let sum = |of: fn(&holdpoint_model::Calibrated) -> u32| {
        seen.iter().map(|seen| u64::from(of(seen))).sum::<u64>()
    };
    Some(match (seen.len(), !judged.is_sides() || judged.is_disjoint_ci()) {
        (_, true) => return None,
        (0, _) => "this machine is not calibrated for this suite (`holdpoint calibrate`)".to_owned(),
        (n, _) => format!(
            "unchanged code was called slower in {} of {} comparisons of {} on this machine",
            units::count(sum(|seen| seen.false_alarms)),
            units::count(sum(holdpoint_model::Calibrated::decided)),
            plural(n, "workload"),
        ),
    })
}

/// Machine time, and money where it is known what an hour costs.
fn cost(c: &Comment<'_>) -> String {
    let Some(seconds) = c.machine_s.filter(|seconds| seconds.is_finite() && *seconds > 0.0) else {
        return String::new();
    };
    let money = c.rate.map(|rate| format!(", {}", escape::prose(&rate.describe_cost(seconds))));
    format!("- **Cost**: {} s of machine time{}\n", units::seconds(seconds), money.unwrap_or_default())
}

/// The command to run it again, made only of words that are safe in a shell.
pub(super) fn reproduce(c: &Comment<'_>) -> String {
    let Some(line) = c.judged.and_then(|judged| command(judged, c.trust)) else { return String::new() };
    let hint = "# where the suite is a file, --suite takes its path";
    format!("**Reproduce**\n\n```sh\n{hint}\n{line}\n```\n")
}

fn command(judged: Judged<'_>, trust: Trust) -> Option<String> {
    let j = judged.judgement;
    let suite = Some(&j.suite).filter(|suite| escape::is_command_word(suite) && suite.len() <= 80);
    // Uncommitted changes are in no commit.
    let commit =
        |at: Option<&Revision>| at.filter(|at| !at.dirty && is_hash(&at.commit)).map(|at| at.commit.clone());
    let Some(sides) = &j.sides else {
        let checkout = commit(j.revision.as_ref());
        let checkout = checkout.map(|commit| format!("git checkout {commit} && ")).unwrap_or_default();
        // Other tools' measurements have no suite here.
        judged.machine()?;
        return Some(format!("{checkout}holdpoint gate --suite {}{}", suite?, flags_of_run(j)?));
    };
    let plan = judged.plan()?;
    let flags = format!("{} --seed {}", flags_of_sides(judged, plan), plan.seed);
    let commits = (commit(sides.base.revision.as_ref()), commit(sides.head.revision.as_ref()));
    if let (Some(base), Some(head)) = commits {
        let suite = suite?;
        return Some(format!(
            "holdpoint ab --suite {suite} \\\n  --base-rev {base} \\\n  --head-rev {head} \\\n  {flags}"
        ));
    }
    // Nobody should copy a command from a stranger's file.
    let is_command = j.suite == "command" && trust == Trust::Own;
    let quoted = |label: &str| format!("'{}'", label.replace('\'', "'\\''"));
    let is_plain = |label: &str| {
        label.len() <= 220 && label.chars().all(|c| (c == ' ' || c.is_ascii_graphic()) && c != '`')
    };
    let given = |flag: &str, side: &Side| {
        let words = side.flags.iter().map(|[flag, value]| format!(" {flag} {}", quoted(value)));
        format!("{flag} {}{}", quoted(&side.label), words.collect::<String>())
    };
    let sides = [given("--base", &sides.base), given("--head", &sides.head)];
    (is_command && sides.iter().all(|side| is_plain(side) && !side.contains("##[")))
        .then(|| format!("holdpoint ab {} {flags}", sides.join(" ")))
}

/// The flags of `gate` that make it decide by the same rule; absent where none do.
fn flags_of_run(j: &Stated) -> Option<String> {
    let basis = j.basis.as_ref().and_then(|basis| basis.baseline());
    let threshold = basis.and_then(|basis| basis.threshold_pct);
    let threshold = threshold.or_else(|| j.threshold.as_ref().map(|keys| keys.threshold));
    let mut flags = match (j.policy.as_str(), threshold) {
        ("stored", _) => " --policy stored".to_owned(),
        ("allowed-max", _) => " --policy allowed-max".to_owned(),
        ("threshold", Some(percent)) => format!(" --threshold {percent}"),
        _ => return None,
    };
    let allowed = basis.map(|basis| basis.allow.names()).unwrap_or_default();
    if !allowed.is_empty() {
        flags += &format!(" --allow {}", allowed.join(","));
    }
    Some(flags)
}

/// The flags of `ab` that make it decide by the same rule.
fn flags_of_sides(judged: Judged<'_>, plan: &AbPlan) -> String {
    if judged.is_disjoint_ci() {
        return format!("--policy disjoint-ci --units-max {}", plan.units_max);
    }
    let mut flags = format!("--tolerance {}", units::setting(plan.tolerance).replace(' ', ""));
    for (flag, rate, default) in [("alarm", plan.alarm_rate, ALARM_RATE), ("miss", plan.miss_rate, MISS_RATE)]
    {
        if rate != default {
            flags += &format!(" --{flag}-rate {rate}");
        }
    }
    flags
}

fn is_hash(text: &str) -> bool {
    (7..=64).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_hexdigit())
}
