//! `holdpoint profile`: what the kernels of a suite spend their time on, by a profiler's counters.

use crate::Watch;
use crate::command_result::CommandResult;
use crate::error::FlowError;
use crate::evidence::artifacts::{self, PROFILES};
use crate::evidence::save;
use crate::request::SuiteChoice;
use crate::suites;
use holdpoint_gate::HasExitCode;
use holdpoint_gate::profile::{Rules, add_findings, compare};
use holdpoint_measure::tools::{self, Folder, ProfileSettings, Tool};
use holdpoint_measure::{clock, machine};
use holdpoint_model::profile::WorkloadProfile;
use holdpoint_model::{
    ExitCode, Profile, ProfileComparison, ProfileOutcome, SCHEMA_VERSION, Suite, Workload,
};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Seconds that one workload may take under the profiler: tens of replays of some launches take a few.
pub const TIMEOUT_S: u32 = 120;

/// A profile to be looked into.
#[derive(Clone, Debug)]
pub struct ProfileRequest {
    pub source: ProfileSource,
    /// The profile to compare with.
    pub against: Option<PathBuf>,
    /// Rules instead of the built-in ones.
    pub rules: Option<PathBuf>,
    /// Where the comparison goes.
    pub comparison: Option<PathBuf>,
}

/// Where a profile comes from.
#[derive(Clone, Debug)]
pub enum ProfileSource {
    File(PathBuf),
    /// Made here.
    Suite {
        suite: SuiteChoice,
        /// All of the suite's that run on a device, if empty.
        workloads: Vec<String>,
        /// Names of kernels; the workload's own, if absent.
        kernel: Option<String>,
        /// Seconds that one workload may take under the profiler.
        timeout: u32,
        /// Where it goes; the profiler's own files go into a folder beside it.
        output: PathBuf,
    },
}

pub fn run(request: &ProfileRequest, watch: &dyn Watch) -> Result<CommandResult<ProfileResult>, FlowError> {
    let rules = rules(request.rules.as_deref())?;
    // Read before profiling: a bad file should not cost a run.
    let base = request.against.as_deref().map(|path| shown_again(path, &rules)).transpose()?;
    let mut note = None;
    let profile = match &request.source {
        ProfileSource::File(path) => shown_again(path, &rules)?,
        ProfileSource::Suite { suite, workloads, kernel, timeout, output } => {
            let suite = suites::runnable(suite)?;
            let specs = chosen(&suite, workloads)?;
            holdpoint_store::check_writable(output)?;
            let timeout = Duration::from_secs((*timeout).into());
            let how = How { rules: &rules, kernel: kernel.as_deref(), timeout };
            let profile = make(&suite, &specs, how, output, watch)?;
            save(output, &profile)?;
            note = Some(format!("profile: {}", output.display()));
            profile
        }
    };
    let comparison = base.map(|base| compare(&base, &profile, &rules));
    if let (Some(path), Some(comparison)) = (&request.comparison, &comparison) {
        save(path, comparison)?;
    }
    let exit = profile.exit_code();
    let document = match comparison {
        Some(comparison) => ProfileResult::Compared { comparison, profile },
        None => ProfileResult::Alone(profile),
    };
    Ok(CommandResult { notes: note.into_iter().collect(), ..CommandResult::new(document, exit) })
}

/// A profile, or its comparison with an earlier one.
#[derive(Debug)]
pub enum ProfileResult {
    Alone(Profile),
    Compared { comparison: ProfileComparison, profile: Profile },
}

fn rules(path: Option<&Path>) -> Result<Rules, FlowError> {
    match path {
        None => Rules::built_in().map_err(|error| FlowError::Internal(format!("built-in rules: {error}"))),
        Some(path) => Rules::parse(&holdpoint_store::read_text(path)?)
            .map_err(|error| FlowError::File { path: path.to_owned(), what: error.to_string() }),
    }
}

/// A profile from a file, with what today's rules find in it.
fn shown_again(path: &Path, rules: &Rules) -> Result<Profile, FlowError> {
    let mut profile = holdpoint_store::read_document::<Profile>(path)?;
    add_findings(&mut profile, rules);
    Ok(profile)
}

/// The workloads that were named, or all that can have kernels.
pub(crate) fn chosen<'s>(suite: &'s Suite, names: &[String]) -> Result<Vec<&'s Workload>, FlowError> {
    let all: Vec<&Workload> = tools::inspectable(suite).collect();
    let known = || all.iter().map(|spec| spec.name.as_str()).collect::<Vec<_>>().join(", ");
    if all.is_empty() {
        return Err(FlowError::Input(format!(
            "suite {:?} has only built-in ops of the CPU, which have no kernels; a built-in suite that has is \"gpu\"",
            suite.name
        )));
    }
    if names.is_empty() {
        return Ok(all);
    }
    let find = |name: &String| {
        let found = all.iter().find(|spec| spec.name == *name).copied();
        found.ok_or_else(|| {
            FlowError::Input(format!(
                "suite {:?} has no kernels of a workload {name:?}; it has {}",
                suite.name,
                known()
            ))
        })
    };
    names.iter().map(find).collect()
}

/// How to profile.
#[derive(Clone, Copy)]
struct How<'a> {
    rules: &'a Rules,
    kernel: Option<&'a str>,
    timeout: Duration,
}

/// Profiles workloads; the profiler's files go into a folder beside `path`.
fn make(
    suite: &Suite,
    specs: &[&Workload],
    how: How<'_>,
    path: &Path,
    watch: &dyn Watch,
) -> Result<Profile, FlowError> {
    let folder = folder_beside(path)?;
    let _lock = artifacts::lock(folder.path(), watch)?;
    let ncu = tools::find(Tool::Ncu);
    let (metrics, required) = (how.rules.metric_names(), how.rules.required_names());
    let mut profile = Profile {
        schema_version: SCHEMA_VERSION,
        suite: suite.name.clone(),
        timestamp_utc: clock::timestamp_utc(),
        profiler: ncu.as_ref().ok().cloned(),
        device: None,
        revision: machine::revision(suite.dir.as_deref().unwrap_or(Path::new("."))),
        missing_metrics: Vec::new(),
        profiles: Default::default(),
    };
    for (at, spec) in specs.iter().enumerate() {
        watch.progress(&format!("{} of {}: {}", at + 1, specs.len(), spec.name));
        let outcome = match &ncu {
            Err(why) => ProfileOutcome::Unavailable(why.clone()),
            Ok(ncu) => {
                let seen = tools::profile(
                    suite,
                    spec,
                    ProfileSettings {
                        ncu,
                        metrics: &metrics,
                        required: &required,
                        kernel: how.kernel,
                        timeout: how.timeout,
                        folder: &folder,
                    },
                );
                profile.device = profile.device.or(seen.device);
                for name in seen.missing {
                    if !profile.missing_metrics.contains(&name) {
                        profile.missing_metrics.push(name);
                    }
                }
                seen.outcome
            }
        };
        let identity = spec.identity(spec.timer());
        profile.profiles.insert(spec.name.clone(), WorkloadProfile { identity, outcome });
        if watch.is_interrupted() {
            break;
        }
    }
    add_findings(&mut profile, how.rules);
    Ok(profile)
}

/// The folder for a tool's own files: `profile-raw` beside `profile.json`.
pub(crate) fn folder_beside(path: &Path) -> Result<Folder, FlowError> {
    let stem = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
    let folder = path.with_file_name(format!("{stem}-raw"));
    Folder::new(&folder)
        .map_err(|error| FlowError::Internal(format!("cannot make the folder {}: {error}", folder.display())))
}

/// Profiles the workloads that regressed, and base beside head where there is one. What came of it, in sentences for the
/// report: nothing that goes wrong here changes a verdict.
pub(crate) fn of_regressed(
    names: &[String],
    head: &Suite,
    base: Option<&Suite>,
    artifacts: &Path,
    watch: &dyn Watch,
) -> Vec<String> {
    if names.is_empty() {
        return Vec::new();
    }
    sides(names, head, base, artifacts, watch).unwrap_or_else(|error| vec![format!("not profiled: {error}")])
}

fn sides(
    names: &[String],
    head: &Suite,
    base: Option<&Suite>,
    artifacts: &Path,
    watch: &dyn Watch,
) -> Result<Vec<String>, FlowError> {
    let [head_path, base_path, comparison_path] = PROFILES.map(|name| artifacts.join(name));
    let has_kernels = |name: &&String| tools::inspectable(head).any(|spec| spec.name == **name);
    let names: Vec<String> = names.iter().filter(has_kernels).cloned().collect();
    if names.is_empty() {
        return Ok(vec!["what regressed has no kernels to profile".to_owned()]);
    }
    let rules = rules(None)?;
    let timeout = Duration::from_secs(TIMEOUT_S.into());
    let side = |side: &Suite, path: &Path| -> Result<Profile, FlowError> {
        let specs = chosen(side, &names)?;
        let how = How { rules: &rules, kernel: None, timeout };
        let profile = make(side, &specs, how, path, watch)?;
        save(path, &profile)?;
        Ok(profile)
    };
    let profile = side(head, &head_path)?;
    let mut notes = vec![format!("{}: {}", summary(&profile), head_path.display())];
    if let Some(base) = base.filter(|_| profile.exit_code() == ExitCode::Ok) {
        let comparison = compare(&side(base, &base_path)?, &profile, &rules);
        save(&comparison_path, &comparison)?;
        let changed = comparison.kernels.iter().filter(|kernel| !kernel.changes.is_empty()).count();
        notes.push(format!("counters changed in {changed} kernels: {}", comparison_path.display()));
    }
    Ok(notes)
}

/// One sentence on a profile of what regressed.
fn summary(profile: &Profile) -> String {
    let mut why: Vec<String> = Vec::new();
    let mut kernels = 0;
    for workload in profile.profiles.values() {
        match &workload.outcome {
            ProfileOutcome::Profiled(profiled) => kernels += profiled.kernels.len(),
            ProfileOutcome::Unavailable(unavailable) => why.push(unavailable.reason.clone()),
            ProfileOutcome::Failed(failure) => why.push(failure.cause.as_str().to_owned()),
        }
    }
    why.dedup();
    match (kernels, why.as_slice()) {
        (0, why) => format!("what regressed could not be profiled ({})", why.join(", ")),
        (kernels, []) => format!("what regressed was profiled, {kernels} kernels"),
        (kernels, why) => {
            format!("what regressed was profiled, {kernels} kernels, in part ({})", why.join(", "))
        }
    }
}
