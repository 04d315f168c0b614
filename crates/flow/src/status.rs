//! `holdpoint` without a command: where a repository stands, and the next step.

use crate::command_result::CommandResult;
use crate::error::FlowError;
use crate::evidence::artifacts;
use crate::request::SuiteChoice;
use crate::request::{OWN_FILE, default_suite};
use crate::suites;
use holdpoint_evidence::rejudge::Rejudged;
use holdpoint_measure::machine::machine_for;
use holdpoint_model::{Calibration, ExitCode, Stated, Suite, Verdict};
use holdpoint_store::StoreError;
use serde::Serialize;
use std::path::Path;

/// A line for each of the things that a gate rests on.
#[derive(Debug, Serialize)]
pub struct Status {
    pub suite: String,
    pub baseline: String,
    pub calibration: String,
    pub last_verdict: String,
    pub ci: String,
    pub next: String,
}

impl Status {
    pub fn lines(&self) -> [(&'static str, &str); 6] {
        [
            ("suite", &self.suite),
            ("baseline", &self.baseline),
            ("calibration", &self.calibration),
            ("last verdict", &self.last_verdict),
            ("CI", &self.ci),
            ("next", &self.next),
        ]
    }
}

/// Files that CI runs `holdpoint` by.
const CI_FILES: [&str; 2] = [".github/workflows/perf.yml", ".gitlab/holdpoint.yml"];

pub fn run() -> Result<CommandResult<Status>, FlowError> {
    let name = default_suite();
    let is_own = name.ends_with(OWN_FILE);
    let suite = suites::load(&SuiteChoice::new(&name, None))?;
    let fingerprint = machine_for(&suite).fingerprint;
    let path = |folder: &str| holdpoint_store::baseline_path(Path::new(folder), &suite.name, &fingerprint);
    let baseline = read_if_there(&path(".holdpoint/baselines"), holdpoint_store::read_baseline)?;
    let calibration =
        read_if_there(&path(".holdpoint/calibration"), holdpoint_store::read_document::<Calibration>)?;
    let last_file = Path::new("artifacts").join(artifacts::COMPARISON);
    let stated = read_if_there(&last_file, holdpoint_store::read_document::<Stated>)?;
    let stated = stated.filter(|judgement| judgement.suite == suite.name);
    // A file may say anything; its samples say what it is.
    let last = stated.map(|stated| artifacts::rejudge_file(&stated, &last_file));
    let root = suite.dir.as_deref().unwrap_or(Path::new("."));
    let ci = CI_FILES.into_iter().find(|file| root.join(file).exists());
    let next = match (&last, &calibration) {
        _ if !is_own => "holdpoint init: a first suite for this repository".to_owned(),
        _ if is_unfinished(&name) => format!("fill in what is marked CHANGE in {name}, then holdpoint run"),
        (Some(last), _) if last.judgement.verdict >= Verdict::Regressed => {
            "holdpoint report artifacts/comparison.json --html report.html: see what is slower or broken"
                .to_owned()
        }
        (_, None) => "holdpoint calibrate: see what this machine resolves".to_owned(),
        (None, _) => "holdpoint gate: is your change slower than the default branch?".to_owned(),
        _ if ci.is_none() => "holdpoint ci init: gate pull requests".to_owned(),
        _ => "holdpoint gate: after every change".to_owned(),
    };
    let status = Status {
        suite: describe_suite(&suite, &name, is_own),
        baseline: baseline.map_or_else(
            || "none stored for this machine".to_owned(),
            |baseline| match baseline.metrics.len() {
                1 => "1 metric".to_owned(),
                count => format!("{count} metrics"),
            },
        ),
        calibration: calibration
            .map_or_else(|| "none on this machine".to_owned(), |found| describe_calibration(&found)),
        last_verdict: last.map_or_else(|| "none in artifacts/".to_owned(), |last| describe_verdict(&last)),
        ci: ci.map_or_else(|| "not set up".to_owned(), str::to_owned),
        next,
    };
    Ok(CommandResult::new(status, ExitCode::Ok))
}

/// Whether `init` has left something to fill in.
fn is_unfinished(suite: &str) -> bool {
    holdpoint_store::read_text(Path::new(suite)).is_ok_and(|text| text.contains(crate::init::TO_FILL_IN))
}

/// A file that is there and cannot be read is not taken for none.
fn read_if_there<T>(
    path: &Path,
    read: impl FnOnce(&Path) -> Result<T, StoreError>,
) -> Result<Option<T>, StoreError> {
    if path.exists() { read(path).map(Some) } else { Ok(None) }
}

fn describe_suite(suite: &Suite, name: &str, is_own: bool) -> String {
    match (&suite.harness, suite.workloads.len()) {
        _ if !is_own => format!("no {OWN_FILE} here or above; the built-in ops are --suite cpu"),
        (Some(harness), _) => format!("{name}: the benchmarks of {}", harness.kind.as_str()),
        (None, _) if suite.has_listed_workloads() => format!("{name}: the workloads that its workers list"),
        (None, 1) => format!("{name}: 1 workload"),
        (None, count) => format!("{name}: {count} workloads"),
    }
}

fn describe_calibration(calibration: &Calibration) -> String {
    let Calibration { false_alarms, trials, tolerance, timestamp_utc, .. } = calibration;
    let date = timestamp_utc.get(..10).unwrap_or(timestamp_utc);
    format!("{false_alarms} false alarms in {trials} suites at {:.1} %, {date}", 100.0 * tolerance)
}

fn describe_verdict(last: &Rejudged) -> String {
    if let Some(problem) = last.problem() {
        return format!("does not verify: {problem}");
    }
    let judgement = &last.judgement;
    let date = judgement.timestamp_utc.as_deref().map_or("", |time| time.get(..16).unwrap_or(time));
    let revision =
        judgement.revision.as_ref().and_then(|revision| revision.commit.get(..12)).unwrap_or_default();
    let known = [judgement.verdict.as_str(), date, revision];
    known.into_iter().filter(|text| !text.is_empty()).collect::<Vec<_>>().join(", ")
}
