//! This program, started again for a part of its work. Its flags are those of `cli`, where a test parses every command line that is made
//! here.

use super::SuiteChoice;
use crate::error::FlowError;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The work of a process of its own.
#[derive(Clone, Debug, PartialEq)]
pub enum OwnProcess {
    /// A run whose report goes to a file; it ends with the process of that number.
    Run { suite: SuiteChoice, output: PathBuf, parent: u32 },
    /// Serves a suite's built-in workloads.
    Worker(WorkerRequest),
    /// Measures a change, isolated from the job.
    Measure(MeasureRequest),
    /// Shuts out the files of the job, then runs a command.
    Wall,
    /// Ends the processes of a session; its tag is appended.
    Watchdog,
}

/// A suite to be served.
#[derive(Clone, Debug, PartialEq)]
pub struct WorkerRequest {
    pub suite: SuiteChoice,
    /// Which of the built-in workers; the first that the suite uses, if absent.
    pub worker: Option<String>,
    /// Real work that is added to every call, as a share.
    pub slowdown: f64,
    /// The same for one sample in 32 of the CPU's ops.
    pub tail: f64,
}

/// A revision to be measured: paths are absolute, and the current folder is the checkout.
#[derive(Clone, Debug, PartialEq)]
pub struct MeasureRequest {
    /// The suite, as it is at the base.
    pub suite: PathBuf,
    /// The folder of the checkout that paths in the suite are relative to.
    pub workdir: PathBuf,
    /// The folder `.holdpoint` of the base.
    pub settings: PathBuf,
    pub artifacts: PathBuf,
    /// The commit that is measured.
    pub head: String,
    /// The commit that it is compared with, side by side; a stored baseline if absent.
    pub against: Option<String>,
    pub gpu: bool,
    pub trend: bool,
}

impl OwnProcess {
    /// Without the secrets of this process.
    pub(crate) fn command(&self) -> Result<Command, FlowError> {
        let mut command = holdpoint_process::command(program()?);
        command.args(self.arguments());
        Ok(command)
    }

    /// The program and its arguments, as text.
    pub(crate) fn words(&self) -> Result<Vec<String>, FlowError> {
        let words = [vec![program()?.into_os_string()], self.arguments()].concat();
        Ok(words.iter().map(|word| word.to_string_lossy().into_owned()).collect())
    }

    pub fn arguments(&self) -> Vec<OsString> {
        let mut line = Line(Vec::new());
        match self {
            Self::Run { suite, output, parent } => {
                line.words(&["--quiet", "run"]).flag("--output", output).suite(suite);
                line.flag("--parent", parent.to_string());
            }
            Self::Worker(WorkerRequest { suite, worker, slowdown, tail }) => {
                line.words(&["worker"]).suite(suite).given("--worker", worker.as_ref());
                line.flag("--slowdown", percent(*slowdown));
                line.given("--tail", (*tail > 0.0).then(|| percent(*tail)));
            }
            Self::Measure(request) => {
                let MeasureRequest { suite, workdir, settings, artifacts, head, against, gpu, trend } =
                    request;
                line.words(&["ci", "measure"]).flag("--head", head).flag("--suite", suite);
                line.flag("--workdir", workdir).flag("--settings", settings).flag("--artifacts", artifacts);
                line.given("--against", against.as_ref());
                line.words(if *gpu { &["--gpu"] } else { &[] });
                line.words(if *trend { &["--trend"] } else { &[] });
            }
            Self::Wall => _ = line.words(&["ci", "wall"]),
            Self::Watchdog => _ = line.words(&["watchdog"]),
        }
        line.0
    }
}

struct Line(Vec<OsString>);

impl Line {
    fn words(&mut self, words: &[&str]) -> &mut Self {
        self.0.extend(words.iter().map(OsString::from));
        self
    }

    fn flag(&mut self, name: &str, value: impl AsRef<Path>) -> &mut Self {
        self.given(name, Some(value))
    }

    fn given(&mut self, name: &str, value: Option<impl AsRef<Path>>) -> &mut Self {
        self.0.extend(value.into_iter().flat_map(|value| [name.into(), value.as_ref().into()]));
        self
    }

    fn suite(&mut self, SuiteChoice { name, device, workdir }: &SuiteChoice) -> &mut Self {
        self.flag("--suite", name).given("--device", device.map(|device| device.to_string()));
        self.given("--workdir", workdir.as_ref())
    }
}

/// As long for one side as for the other: the length of the arguments moves the stack.
fn percent(share: f64) -> String {
    format!("{:08.3}%", share * 100.0)
}

fn program() -> Result<PathBuf, FlowError> {
    std::env::current_exe().map_err(|error| FlowError::Internal(format!("cannot find this program: {error}")))
}
