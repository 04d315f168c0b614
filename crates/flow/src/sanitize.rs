//! `holdpoint sanitize`: errors in the kernels of a suite that a right answer does not show.

use crate::Watch;
use crate::command_result::CommandResult;
use crate::error::FlowError;
use crate::evidence::artifacts;
use crate::evidence::save;
use crate::profile::{chosen, folder_beside};
use crate::request::SuiteChoice;
use crate::suites;
use holdpoint_gate::HasExitCode;
use holdpoint_measure::tools::{self, SanitizeSettings, Tool};
use holdpoint_measure::{clock, machine};
use holdpoint_model::profile::Unavailable;
use holdpoint_model::{SCHEMA_VERSION, SanitizeOutcome, SanitizeReport};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// A write out of bounds, which a sanitizer that works must find.
const PLANTED: &str = "\
schema_version = 1
name = \"planted\"
description = \"a write out of bounds that compute-sanitizer must find\"

[[workload]]
name = \"planted\"
op = \"fault\"
worker = \"cuda\"
shape = [65536]
params = { kind = \"address\" }
";

/// Kernels to be checked.
#[derive(Clone, Debug)]
pub struct SanitizeRequest {
    /// All of the suite's, if empty.
    pub workloads: Vec<String>,
    pub suite: SuiteChoice,
    /// All, if empty.
    pub tools: Vec<Sanitizer>,
    /// Where the report goes; the sanitizer's logs go into a folder beside it.
    pub output: PathBuf,
    /// Seconds that one workload may take under one tool.
    pub timeout: u32,
}

/// The tools of compute-sanitizer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sanitizer {
    Memcheck,
    Racecheck,
    Initcheck,
    Synccheck,
}

impl Sanitizer {
    /// As compute-sanitizer calls it.
    fn name(self) -> &'static str {
        match self {
            Self::Memcheck => "memcheck",
            Self::Racecheck => "racecheck",
            Self::Initcheck => "initcheck",
            Self::Synccheck => "synccheck",
        }
    }
}

pub fn run(request: &SanitizeRequest, watch: &dyn Watch) -> Result<CommandResult<SanitizeReport>, FlowError> {
    let suite = suites::runnable(&request.suite)?;
    let specs = chosen(&suite, &request.workloads)?;
    let names: Vec<&str> = match request.tools.as_slice() {
        [] => tools::SANITIZERS.to_vec(),
        named => named.iter().map(|tool| tool.name()).collect(),
    };
    holdpoint_store::check_writable(&request.output)?;
    let folder = folder_beside(&request.output)?;
    let _lock = artifacts::lock(folder.path(), watch)?;
    let mut report = SanitizeReport {
        schema_version: SCHEMA_VERSION,
        suite: suite.name.clone(),
        timestamp_utc: clock::timestamp_utc(),
        sanitizer: None,
        device: None,
        revision: machine::revision(Path::new(".")),
        sanitized: Default::default(),
    };
    let ready = tools::find(Tool::Sanitizer).and_then(|sanitizer| {
        let sanitizer = report.sanitizer.insert(sanitizer).clone();
        let timeout = Duration::from_secs(request.timeout.into());
        let how = SanitizeSettings { sanitizer: &sanitizer, timeout, folder: &folder };
        watch.progress("an error that was planted");
        let planted = planted(&request.suite, folder.path())?;
        report.device = tools::check_sanitizer(&planted, how)?;
        Ok(sanitizer)
    });
    let count = specs.len() * names.len();
    for (at, spec) in specs.iter().enumerate() {
        let outcomes = report.sanitized.entry(spec.name.clone()).or_default();
        for (nth, tool) in names.iter().enumerate() {
            let outcome = match &ready {
                Err(why) => SanitizeOutcome::Unavailable(why.clone()),
                Ok(_) if watch.is_interrupted() => break,
                Ok(sanitizer) => {
                    let done = at * names.len() + nth + 1;
                    watch.progress(&format!("{done} of {count}: {}, {tool}", spec.name));
                    let timeout = Duration::from_secs(request.timeout.into());
                    let how = SanitizeSettings { sanitizer, timeout, folder: &folder };
                    tools::sanitize(&suite, spec, tool, how).0
                }
            };
            outcomes.insert((*tool).to_owned(), outcome);
        }
    }
    save(&request.output, &report)?;
    let exit = report.exit_code();
    Ok(CommandResult::new(report, exit).with_note(format!("report: {}", request.output.display())))
}

/// The suite with the planted error, in a file that a worker can be told.
fn planted(choice: &SuiteChoice, folder: &Path) -> Result<holdpoint_measure::ReadySuite, Unavailable> {
    let path = folder.join("planted.toml");
    let suite = path.display().to_string();
    let made = holdpoint_store::write_text(&path, PLANTED)
        .map_err(FlowError::from)
        .and_then(|()| suites::runnable(&SuiteChoice::new(&suite, choice.device)));
    made.map_err(|error| Unavailable {
        reason: "sanitizer_blind".to_owned(),
        detail: Some(format!("no error could be planted: {error}")),
        remedy: None,
    })
}
