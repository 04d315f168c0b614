//! `holdpoint ci gate`: the change of this job, from the event to the exit code.
//!
//! The change's own code runs in [`super::measure`] only, in this process or isolated from it. Everything after that takes the
//! evidence for a stranger's, and judges it again.

use super::annotate::{self, Level};
use super::commits::{self, BaseSuite, SETTINGS};
use super::event::{self, EventFacts, EventRequest, variable};
use super::isolate::{self, Isolation};
use super::{CiResult, measure, report};
use crate::Watch;
use crate::command_result::CommandResult;
use crate::error::FlowError;
use crate::evidence::artifacts::{AB, COMPARISON, EXIT_CODE, EvidenceFolder, REPORT};
use crate::gate::GateResult;
use crate::request::MeasureRequest;
use crate::suites;
use holdpoint_ci::guard::{Decision, Mode, Ruling, Sha, plain};
use holdpoint_ci::outcome::{Conclusion, Outcome};
use holdpoint_model::ExitCode;
use holdpoint_model::suite::OnInconclusive;
use holdpoint_process::git::{self, Repository};
use holdpoint_render::forms;
use holdpoint_store::Scratch;
use std::cell::RefCell;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

/// Stands for the exit code of a gate that left none that can be used.
pub(crate) const NO_VERDICT: i32 = -1;
/// The decision about the event, as the evidence keeps it.
pub const DECISION: &str = "ci.json";
/// JUnit's format, which GitLab shows.
const JUNIT: &str = "junit.xml";

/// A change to be measured and judged.
#[derive(Clone, Debug)]
pub struct GateRequest {
    /// A file of the repository, read at the base revision, or at head where the base has none.
    pub suite: String,
    /// The folder for the evidence; emptied first.
    pub artifacts: PathBuf,
    /// Whether measured code is isolated from the job.
    pub isolate: bool,
    /// The runner is the user's own, with a GPU.
    pub gpu: bool,
    /// A point of the trend: only a slowdown fails.
    pub trend: bool,
    /// The decision about the event, if it has been made already.
    pub decided: Option<PriorRuling>,
    pub event: EventRequest,
}

/// A decision of `ci guard`, handed on by a workflow.
#[derive(Clone, Debug)]
pub struct PriorRuling {
    pub mode: Mode,
    /// Full hashes of the commit that is measured, and of the one whose suite, baselines and waivers count.
    pub head: String,
    pub base: String,
}

/// A gate as it is printed.
#[derive(Debug)]
pub struct GateEnd {
    /// Absent where another process has printed it.
    pub gated: Option<GateResult>,
    /// Annotations and the outcome, to be printed as they are.
    pub lines: String,
}

pub fn run(args: &GateRequest, watch: &dyn Watch) -> Result<CommandResult<CiResult>, FlowError> {
    match gate(args, watch) {
        Err(error) => {
            let lines = annotate::line(Level::Error, &error.to_string());
            let document = CiResult::Gate(Box::new(GateEnd { gated: None, lines }));
            Ok(CommandResult { document, notes: Vec::new(), end: Err(error) })
        }
        done => done,
    }
}

fn gate(args: &GateRequest, watch: &dyn Watch) -> Result<CommandResult<CiResult>, FlowError> {
    let job = Job::new(args)?;
    let ruling = job.decide()?;
    holdpoint_store::write_json(&job.artifacts.join(DECISION), &ruling)?;
    watch.note(&ruling.to_string());
    let (head, base) = match (&ruling.decision, ruling.head_sha.clone(), ruling.base_sha.clone()) {
        (Decision::Run, Some(head), Some(base)) => (head, base),
        (Decision::Skip, ..) => return job.end(&Outcome::skipped(&ruling.reason), None, ExitCode::Ok),
        _ => return job.end(&Outcome::refused(&ruling.reason), None, ExitCode::Failed),
    };
    let believed = job.believed(&base)?;
    let suite = job.base_suite(&head, &believed, watch)?;
    let against = match ruling.mode {
        Mode::Against => Some(commits::merge_base(&job.clone, &base, &head)?),
        Mode::Baseline => None,
    };
    let is_newer = match &against {
        Some(against) => commits::differs(&job.clone, against, &believed, &args.suite)?,
        None => false,
    };
    let measured = job.measure(&head, against, &suite, watch)?;
    let code = measured.code();
    // Measured code could have written another.
    remove_all(&job.artifacts.join(DECISION))?;
    holdpoint_store::write_json(&job.artifacts.join(DECISION), &ruling)?;
    if code == ExitCode::Broken as i32 && is_newer {
        job.warn(format!(
            "{} has changed since this change left its base, and may ask for what neither side has: rebase it",
            args.suite
        ));
    }
    job.finish(measured, suite.suite.gate.on_inconclusive.unwrap_or_default())
}

/// The job and its folders.
struct Job<'a> {
    args: &'a GateRequest,
    here: PathBuf,
    clone: Repository,
    artifacts: PathBuf,
    scratch: Scratch,
    /// For the end: what a runner reads is printed with the result.
    warnings: RefCell<Vec<String>>,
}

/// The end of the part that runs the change's code.
enum MeasureEnd {
    Here(Result<CommandResult<CiResult>, FlowError>),
    /// By another process, which has printed what it has to say.
    Apart(i32),
}

impl MeasureEnd {
    fn code(&self) -> i32 {
        let of = |error: &FlowError| error.exit_code() as i32;
        match self {
            Self::Here(Ok(done)) => done.end.as_ref().map_or_else(of, |code| *code as i32),
            Self::Here(Err(error)) => of(error),
            Self::Apart(code) => *code,
        }
    }
}

impl<'a> Job<'a> {
    fn new(args: &'a GateRequest) -> Result<Self, FlowError> {
        let here = std::env::current_dir()
            .and_then(|here| here.canonicalize())
            .map_err(|error| FlowError::Internal(format!("the current folder cannot be read: {error}")))?;
        let artifacts = std::path::absolute(&args.artifacts)
            .map_err(|error| FlowError::File { path: args.artifacts.clone(), what: error.to_string() })?;
        // What a checkout has under this name is no evidence.
        if artifacts == here || here.starts_with(&artifacts) {
            let what = "the folder of the evidence is emptied; name one that holds nothing else".to_owned();
            return Err(FlowError::File { path: artifacts, what });
        }
        if !["CI", "GITHUB_ACTIONS", "GITLAB_CI"].into_iter().any(|name| variable(name) == "true") {
            refuse_other_files(&artifacts)?;
        }
        remove_all(&artifacts)?;
        std::fs::create_dir_all(&artifacts)
            .map_err(|error| FlowError::File { path: artifacts.clone(), what: error.to_string() })?;
        let temp = variable("RUNNER_TEMP");
        let temp = if temp.is_empty() { std::env::temp_dir() } else { PathBuf::from(temp) };
        let scratch = Scratch::new_in(&temp)?;
        let clone = Repository::around(&here);
        Ok(Self { args, here, clone, artifacts, scratch, warnings: RefCell::default() })
    }

    fn warn(&self, text: String) {
        self.warnings.borrow_mut().push(text);
    }

    fn decide(&self) -> Result<Ruling, FlowError> {
        if let Some(PriorRuling { mode, head, base }) = &self.args.decided {
            let sha = |flag: &str, text: &str| {
                Sha::new(text)
                    .ok_or_else(|| FlowError::Input(format!("{flag}: a full commit hash is wanted")))
            };
            return Ok(Ruling::handed_on(*mode, sha("--head", head)?, sha("--base", base)?));
        }
        let hosted = !self.args.gpu;
        let ruling = event::decide(&self.args.event, &EventFacts { hosted, ..EventFacts::default() })?;
        if let Some((head, _)) = &ruling.compared
            && event::is_gitlab(&self.args.event)
            && !self.clone.has(head.as_str())?
        {
            self.fetch(head.as_str())?;
        }
        let suite = match &ruling.compared {
            Some((head, base)) => {
                let folder = self.scratch.path().join("filter");
                commits::read_suite(&self.clone, &[base, head], &self.args.suite, &folder)?
            }
            None => None,
        };
        let matters = suite.as_ref().map(|suite| suite.matters(&self.args.suite));
        let ruling = event::filtered(ruling, &self.clone, matters.as_ref())?;
        if hosted && !self.args.trend && ruling.mode == Mode::Baseline {
            return self.without_baseline(ruling);
        }
        Ok(ruling)
    }

    /// Hosted machines vary and have no baseline of their own: a run that nothing compares is compared with the branch that it
    /// left, or with its parent.
    fn without_baseline(&self, ruling: Ruling) -> Result<Ruling, FlowError> {
        let Some(head) = ruling.head_sha.clone() else { return Ok(ruling) };
        let mut base = None;
        for branch in &self.args.event.branch {
            let tip = commits::find(&self.clone, &format!("refs/remotes/origin/{branch}"))?;
            base = base.or(tip.filter(|tip| *tip != head));
        }
        let base = match base {
            Some(base) => Some(base),
            None => commits::find(&self.clone, &format!("{head}^1"))?,
        };
        Ok(ruling.against(base.unwrap_or(head)))
    }

    /// The commit whose suite and settings are used: the base, on GitLab the target branch as it is now.
    fn believed(&self, base: &Sha) -> Result<Sha, FlowError> {
        if !event::is_gitlab(&self.args.event) {
            return Ok(base.clone());
        }
        let [source, project, target] =
            ["CI_PIPELINE_SOURCE", "CI_MERGE_REQUEST_PROJECT_ID", "CI_MERGE_REQUEST_TARGET_BRANCH_NAME"]
                .map(variable);
        // In a fork's own pipeline, the branch of that name is the fork's.
        if source != "merge_request_event" || project != variable("CI_PROJECT_ID") {
            return Ok(base.clone());
        }
        self.fetch(&format!("+refs/heads/{target}:refs/holdpoint/target"))?;
        let tip = commits::find(&self.clone, "refs/holdpoint/target")?;
        tip.ok_or_else(|| FlowError::Input("the target branch cannot be fetched".to_owned()))
    }

    fn fetch(&self, what: &str) -> Result<(), FlowError> {
        let fetch = ["fetch", "--quiet", "--no-recurse-submodules", "origin", what];
        let done = git::output(&mut self.clone.command(&fetch))?;
        if done.status.success() {
            return Ok(());
        }
        Err(FlowError::Input(format!("{} cannot be fetched: {}", plain(what), plain(&git::complaint(&done)))))
    }

    /// The suite and the settings of the base, in a folder of their own.
    fn base_suite(&self, head: &Sha, base: &Sha, watch: &dyn Watch) -> Result<BaseSuite, FlowError> {
        let folder = self.base();
        for commit in [head, base] {
            if !self.clone.has(commit.as_str())? {
                return Err(FlowError::Input(format!(
                    "the checkout does not have the commit {commit}: it needs the whole history (fetch-depth: 0)"
                )));
            }
        }
        commits::extract_settings(&self.clone, base, &folder)?;
        let file = &self.args.suite;
        let Some(suite) = commits::read_suite(&self.clone, &[base, head], file, &folder)? else {
            return Err(FlowError::Input(format!(
                "{file}: neither the base nor the change has this suite; \"holdpoint init\" writes a first one"
            )));
        };
        if suite.is_fallback && !suite.suite.pass_env.is_empty() {
            return Err(FlowError::Input(format!(
                "{file} is new and names variables in pass_env, which only the base may do: add it to the base first"
            )));
        }
        suites::pass_on(&suite.suite)?;
        if suite.is_fallback {
            watch.note(&format!("{file} is new: the base has none, so the change is judged by its own"));
        }
        Ok(suite)
    }

    fn base(&self) -> PathBuf {
        self.scratch.path().join("base")
    }

    fn measure(
        &self,
        head: &Sha,
        against: Option<String>,
        suite: &BaseSuite,
        watch: &dyn Watch,
    ) -> Result<MeasureEnd, FlowError> {
        let folder = Path::new(&self.args.suite).parent().unwrap_or(Path::new(""));
        let in_checkout = |checkout: &Path| MeasureRequest {
            suite: suite.path.clone(),
            workdir: checkout.join(folder),
            settings: self.base().join(SETTINGS),
            artifacts: self.artifacts.clone(),
            head: head.to_string(),
            against: against.clone(),
            gpu: self.args.gpu,
            trend: self.args.trend,
        };
        if !self.args.isolate {
            return Ok(MeasureEnd::Here(measure::run(&in_checkout(&self.here), watch)));
        }
        let is_gitlab = event::is_gitlab(&self.args.event);
        if self.args.gpu {
            isolate::warn_of_others(&|text| self.warn(text));
        }
        let isolation =
            Isolation::prepare(&self.here, head, self.scratch.path(), &self.artifacts, is_gitlab)?;
        let code = isolation.run(&in_checkout(isolation.checkout()), &|text| self.warn(text))?;
        Ok(MeasureEnd::Apart(code))
    }

    /// Keeps the exit code, and says what follows from the evidence.
    fn finish(
        &self,
        measured: MeasureEnd,
        on_inconclusive: OnInconclusive,
    ) -> Result<CommandResult<CiResult>, FlowError> {
        let code = measured.code();
        isolate::keep_plain_files(&self.artifacts)?;
        let file = self.artifacts.join(EXIT_CODE);
        remove_all(&file)?;
        holdpoint_store::write_text(&file, &format!("{code}\n"))?;
        if self.args.isolate {
            isolate::empty_job_files();
        }
        let found = EvidenceFolder::read(&self.artifacts);
        // Under cudadent42's rule, no significant difference is the code of what could not be measured.
        let is_undecided = code == ExitCode::Skipped as i32
            && found
                .judged()
                .is_some_and(|judged| judged.judgement.verdict == holdpoint_model::Verdict::Inconclusive);
        let judged_code = match found.problems.first() {
            // Whoever ended the measuring process with 0 has not made its samples quicker.
            Some(problem) if code == ExitCode::Ok as i32 => {
                self.warn(format!("the evidence does not hold: {problem}"));
                NO_VERDICT
            }
            _ if is_undecided => ExitCode::Inconclusive as i32,
            _ => code,
        };
        let outcome = match self.args.trend {
            true => Outcome::of_trend(judged_code),
            false => Outcome::of_gate(judged_code, on_inconclusive),
        };
        if let Some(judged) = found.judged().filter(|_| event::is_gitlab(&self.args.event)) {
            holdpoint_store::write_text(&self.artifacts.join(JUNIT), &forms::junit(judged))?;
        }
        let end = exit_code(code, &outcome, event::is_gitlab(&self.args.event));
        let mut done = self.end(&outcome, Some(&found), end)?;
        if let MeasureEnd::Here(here) = measured {
            match here {
                Ok(here) => {
                    done.notes.extend(here.notes);
                    if let (CiResult::Gate(end), CiResult::Measure(gated)) =
                        (&mut done.document, here.document)
                    {
                        end.gated = Some(*gated);
                    }
                    if let Err(error) = here.end {
                        done.end = Err(error);
                    }
                }
                Err(error) => done.end = failed(error, end),
            }
        }
        Ok(done)
    }

    /// Annotations, summary and the last line.
    fn end(
        &self,
        outcome: &Outcome,
        found: Option<&EvidenceFolder>,
        exit: ExitCode,
    ) -> Result<CommandResult<CiResult>, FlowError> {
        let warnings = self.warnings.borrow();
        let mut lines: String = warnings.iter().map(|text| annotate::line(Level::Warning, text)).collect();
        if annotate::is_github() {
            if let Some(judged) = found.and_then(EvidenceFolder::judged) {
                lines += &forms::github(judged, Some(&self.args.suite));
            }
            let ending = format!("**holdpoint**: {}\n", outcome.text);
            report::append_summary(&match found {
                Some(found) => {
                    let page = report::summary(found, if self.args.gpu { "gpu" } else { "cpu" });
                    // The job is green, and the page alone does not say why.
                    let is_neutral = outcome.conclusion == Conclusion::Neutral;
                    if is_neutral { format!("{page}\n{ending}") } else { page }
                }
                None => ending,
            })?;
        }
        lines += &match outcome.conclusion {
            Conclusion::Neutral if self.args.trend => annotate::line(Level::Warning, &outcome.text),
            Conclusion::Neutral => annotate::line(Level::Notice, &outcome.text),
            Conclusion::Success | Conclusion::Failure => format!("{}\n", outcome.text),
        };
        let document = CiResult::Gate(Box::new(GateEnd { gated: None, lines }));
        Ok(CommandResult::new(document, exit))
    }
}

/// An error is how it came out, unless the outcome is not a failure.
fn failed(error: FlowError, exit: ExitCode) -> Result<ExitCode, FlowError> {
    if exit == ExitCode::Ok { Ok(exit) } else { Err(error) }
}

/// GitHub knows no exit code that is neutral; GitLab's file allows that of inconclusive evidence.
fn exit_code(code: i32, outcome: &Outcome, is_gitlab: bool) -> ExitCode {
    match outcome.conclusion {
        Conclusion::Success => ExitCode::Ok,
        Conclusion::Neutral if is_gitlab => ExitCode::Inconclusive,
        Conclusion::Neutral => ExitCode::Ok,
        Conclusion::Failure => match ExitCode::from_number(code) {
            Some(ExitCode::Inconclusive) if is_gitlab => ExitCode::Failed,
            Some(ExitCode::Ok) | None => ExitCode::Internal,
            Some(code) => code,
        },
    }
}

/// A slip in `--artifacts` must not empty a folder of somebody's own, where no job runs.
fn refuse_other_files(artifacts: &Path) -> Result<(), FlowError> {
    let is_empty = artifacts.read_dir().is_ok_and(|mut entries| entries.next().is_none());
    let is_evidence =
        [DECISION, EXIT_CODE, COMPARISON, AB, REPORT].iter().any(|name| artifacts.join(name).exists());
    if is_empty || is_evidence || artifacts.symlink_metadata().is_err() {
        return Ok(());
    }
    let what =
        "it is there, and holds no evidence of an earlier gate; name a folder that may be emptied".to_owned();
    Err(FlowError::File { path: artifacts.to_owned(), what })
}

/// Removes a file, a link or a folder, whatever it is; nothing is followed.
pub(super) fn remove_all(path: &Path) -> Result<(), FlowError> {
    let removed = match path.symlink_metadata() {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(()),
        Err(error) => Err(error),
        Ok(metadata) if metadata.is_dir() => std::fs::remove_dir_all(path),
        Ok(_) => std::fs::remove_file(path),
    };
    removed.map_err(|error| FlowError::File {
        path: path.to_owned(),
        what: format!("cannot be removed: {error}"),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_evidence_and_nothing_at_all_make_way() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("artifacts");
        assert!(refuse_other_files(&path).is_ok());
        std::fs::create_dir(&path).unwrap();
        assert!(refuse_other_files(&path).is_ok());
        std::fs::write(path.join("thesis.tex"), "").unwrap();
        assert!(refuse_other_files(&path).is_err());
        std::fs::write(path.join("ab.json"), "").unwrap();
        assert!(refuse_other_files(&path).is_ok());
    }
}
