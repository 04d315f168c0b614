//! `holdpoint init`: a first suite for a repository, tried once.

mod detect;

use crate::command_result::CommandResult;
use crate::error::FlowError;
use crate::request::OWN_FILE;
use crate::request::SuiteChoice;
use crate::suites;
use crate::{Watch, run};
use detect::{Files, Proposal};
use holdpoint_gate::HasExitCode;
use holdpoint_measure::builds::Builds;
use holdpoint_model::suite::MeasurePlan;
use holdpoint_model::{ExitCode, Report};
use serde::Serialize;
use std::fs;
use std::path::{Path, PathBuf};

/// Marks what has to be filled in.
pub(crate) const TO_FILL_IN: &str = "# CHANGE";
/// Folders this deep are looked into.
const DEPTH_MAX: usize = 5;
/// Files that are read at most, and how large they may be: what names a harness is short.
const FILES_MAX: usize = 5_000;
const FILE_BYTES_MAX: u64 = 256 << 10;
/// Folders with nothing of the repository's own.
const PASSED_OVER: [&str; 9] =
    ["target", "node_modules", "build", "dist", "vendor", "third_party", "venv", "__pycache__", "external"];
/// Workloads that are tried at most: the trial shows that the suite runs, not how fast it is.
const TRIED_MAX: usize = 5;

/// A first suite to be written.
#[derive(Clone, Debug)]
pub struct InitRequest {
    /// The repository.
    pub dir: PathBuf,
    /// Whether a suite that is there is overwritten.
    pub force: bool,
}

/// The new suite file, and the result of its trial.
#[derive(Debug, Serialize)]
pub struct InitResult {
    pub path: String,
    pub suite: String,
    /// None if it was not tried.
    pub report: Option<Report>,
}

pub fn run(request: &InitRequest, watch: &dyn Watch) -> Result<CommandResult<InitResult>, FlowError> {
    let dir = &request.dir;
    if !dir.is_dir() {
        return Err(FlowError::Input(format!("--dir {}: there is no such folder", dir.display())));
    }
    let path = dir.strip_prefix(".").unwrap_or(dir).join(OWN_FILE);
    if path.exists() && !request.force {
        let path = path.display();
        return Err(FlowError::Input(format!("{path} is there already; --force writes over it")));
    }
    let Proposal { text, is_complete, others } = detect::propose(&read_files(dir));
    holdpoint_store::write_text(&path, &text)?;
    let mut done = CommandResult::new(
        InitResult { path: path.display().to_string(), suite: text, report: None },
        ExitCode::Ok,
    );
    if !others.is_empty() {
        done = done.with_note(format!("found as well, each with a suite of its own: {}", others.join(", ")));
    }
    if !is_complete {
        return Ok(done.with_note(format!(
            "next: fill in what is marked CHANGE in {}, then run \"holdpoint run\"",
            path.display()
        )));
    }
    match trial(&path, dir, watch) {
        Ok((report, count)) => {
            let tried = report.benchmarks.len();
            if tried < count {
                done = done.with_note(format!("tried {tried} of {count} workloads"));
            }
            done.end = Ok(report.exit_code());
            done.document.report = Some(report);
            Ok(done.with_note(
                "next: commit it, run \"holdpoint calibrate\" to see what this machine resolves, then change something and run \
                 \"holdpoint gate\"; \"holdpoint ci init\" sets up pull requests",
            ))
        }
        // What was written stays: it may only need another command.
        Err(error) => Ok(CommandResult { end: Err(error), ..done }),
    }
}

/// Builds the suite in place and measures its first workloads shortly. With the number of all.
fn trial(path: &Path, dir: &Path, watch: &dyn Watch) -> Result<(Report, usize), FlowError> {
    let arg = SuiteChoice::new(&path.display().to_string(), None);
    let unbuilt = suites::unbuilt(&arg)?;
    watch.progress("building, and asking for what there is to measure");
    if unbuilt.build.is_some() {
        Builds::open(dir)?.in_folder(unbuilt.dir.as_deref()).build_in_place(unbuilt.build.as_ref())?;
    }
    let suite = suites::list(unbuilt)?;
    let count = suite.workloads.len();
    let measure = MeasurePlan { rounds_min: 3, rounds_max: 3, warmup_ms_max: 0.0, ..suite.measure.clone() };
    Ok((run::measure(&suite.with_measure(measure).first(TRIED_MAX), watch), count))
}

/// The texts that tell harnesses and builds apart.
fn read_files(dir: &Path) -> Files {
    let mut files = Files::new();
    collect(dir, "", DEPTH_MAX, &mut files);
    files
}

fn collect(dir: &Path, prefix: &str, depth: usize, files: &mut Files) {
    let mut entries: Vec<fs::DirEntry> = fs::read_dir(dir).into_iter().flatten().flatten().collect();
    entries.sort_by_key(fs::DirEntry::file_name);
    for entry in entries {
        let (Ok(name), Ok(kind)) = (entry.file_name().into_string(), entry.file_type()) else { continue };
        let path = format!("{prefix}{name}");
        if kind.is_dir() && depth > 0 && !name.starts_with('.') && !PASSED_OVER.contains(&name.as_str()) {
            collect(&entry.path(), &format!("{path}/"), depth - 1, files);
        } else if kind.is_file()
            && (detect::is_wanted(&name) || path == "src/main.rs")
            && files.len() < FILES_MAX
        {
            let is_small = entry.metadata().is_ok_and(|metadata| metadata.len() <= FILE_BYTES_MAX);
            if is_small {
                files.extend(fs::read_to_string(entry.path()).ok().map(|text| (path, text)));
            } else {
                // That it is there tells something too.
                files.insert(path, String::new());
            }
        }
    }
}
