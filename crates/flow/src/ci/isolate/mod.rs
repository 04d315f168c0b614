//! Isolation of measured code, for jobs with secrets and for machines that are not thrown away.
//!
//! Nothing that is measured may speak for this job, or for a later one. It does not know the job's files and secrets; it is alone in
//! a namespace of processes, which ends with the gate; it does not become root by sudo; and what a later step runs (the runner, its
//! actions, holdpoint, whatever PATH finds) it can neither write to nor move out of the way. What is measured is a copy of the checkout:
//! no git of a later step reads what it could write to.

mod checkout;
mod environment;
mod mounts;
mod wall;

pub(crate) use wall::run as run_wall;

use super::event::variable;
use super::gate::remove_all;
use crate::error::FlowError;
use crate::request::{MeasureRequest, OwnProcess};
use holdpoint_ci::guard::Sha;
use holdpoint_process::command;
use rustix::process::{getgid, getuid};
use std::fs::{self, Permissions};
use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};
use wall::Plan;

/// Folders of the machine's own programs: nothing of the change is called by accident.
const SYSTEM: [&str; 4] = ["/usr/bin", "/bin", "/usr/sbin", "/sbin"];
/// It ends with this process, however that ends.
const ALONE: [&str; 9] = [
    "setpriv",
    "--pdeathsig",
    "KILL",
    "unshare",
    "--mount",
    "--pid",
    "--fork",
    "--kill-child",
    "--mount-proc",
];
/// The variable that names a user to measure as, where jobs run as root.
const MEASURE_AS: &str = "HOLDPOINT_MEASURE_AS";

/// A user and a group, by number.
#[derive(Clone, Copy, PartialEq, Eq)]
struct User {
    uid: u32,
    gid: u32,
}

impl User {
    fn own() -> Self {
        Self { uid: getuid().as_raw(), gid: getgid().as_raw() }
    }

    /// The user of a name.
    fn named(name: &str) -> Result<Self, FlowError> {
        let ask = |flag: &str| -> Option<u32> {
            let output = system("id")?.arg(flag).arg("--").arg(name).output().ok()?;
            String::from_utf8_lossy(&output.stdout).trim().parse().ok()
        };
        match (ask("-u"), ask("-g")) {
            (Some(uid), Some(gid)) => Ok(Self { uid, gid }),
            _ => Err(FlowError::Input(format!("{MEASURE_AS}: there is no user {name:?}"))),
        }
    }

    /// Becomes the user, for good.
    fn become_it(self) -> Vec<String> {
        let (uid, gid) = (self.uid.to_string(), self.gid.to_string());
        words(&["setpriv", "--reuid", &uid, "--regid", &gid, "--clear-groups", "--no-new-privs"])
    }
}

/// A way to run something apart.
enum Way {
    /// In namespaces of its own: how to get there, and what to drop inside.
    Namespaces { enter: Vec<String>, inside: Vec<String> },
    /// As another user, whose processes are all ended afterwards.
    OtherUser(Vec<String>),
    /// Not at all.
    None,
}

/// A copy of the checkout, and the folders around it.
pub(crate) struct Isolation {
    here: PathBuf,
    checkout: PathBuf,
    scratch: PathBuf,
    artifacts: PathBuf,
    is_gitlab: bool,
    user: User,
}

impl Isolation {
    pub fn prepare(
        here: &Path,
        head: &Sha,
        scratch: &Path,
        artifacts: &Path,
        is_gitlab: bool,
    ) -> Result<Self, FlowError> {
        let name = variable(MEASURE_AS);
        let user = if name.is_empty() { User::own() } else { User::named(&name)? };
        let isolation = Self {
            here: here.to_owned(),
            checkout: scratch.join("head"),
            scratch: scratch.to_owned(),
            artifacts: artifacts.to_owned(),
            is_gitlab,
            user,
        };
        for folder in [isolation.cache(), isolation.home()] {
            fs::create_dir_all(&folder).map_err(|error| internal(&folder, &error))?;
        }
        checkout::copy(here, head, &isolation.checkout)?;
        if is_gitlab {
            checkout::forget_credentials(here)?;
        }
        if user != User::own() {
            isolation.hand_over()?;
        }
        Ok(isolation)
    }

    pub fn checkout(&self) -> &Path {
        &self.checkout
    }

    /// New for every job: what an earlier job has built is not believed.
    fn cache(&self) -> PathBuf {
        self.scratch.join("cache")
    }

    fn home(&self) -> PathBuf {
        self.scratch.join("home")
    }

    /// Lets another user write to what is measured.
    fn hand_over(&self) -> Result<(), FlowError> {
        let folders = [self.checkout.clone(), self.cache(), self.home(), self.artifacts.clone()];
        let owner = format!("{}:{}", self.user.uid, self.user.gid);
        let done = system("chown").map(|mut chown| chown.args(["-R", &owner]).args(&folders).status());
        if !matches!(done, Some(Ok(status)) if status.success()) {
            let why = format!("{MEASURE_AS}: files cannot be given to that user: is this job root?");
            return Err(FlowError::Input(why));
        }
        // The way there.
        fs::set_permissions(&self.scratch, Permissions::from_mode(0o755))
            .map_err(|error| internal(&self.scratch, &error))
    }

    /// Runs the part that measures, and returns its exit code; warnings say where the isolation has gaps.
    pub fn run(&self, request: &MeasureRequest, warn: &dyn Fn(String)) -> Result<i32, FlowError> {
        self.warn_of_user(warn);
        let path = environment::clean_path();
        let plan = |inside: &[String], measured: &[String]| {
            let env = environment::inside(self.is_gitlab, &path, &self.cache(), self.home_of_user());
            let (held, shut, hidden) = self.mounts(&path);
            let command = inside.iter().chain(measured).cloned().collect();
            Plan { held, shut, hidden, dir: self.checkout.clone(), env, command }
        };
        let measured = OwnProcess::Measure(request.clone()).words()?;
        let wall = OwnProcess::Wall.words()?;
        let status = match self.find_way(&wall, &plan, warn) {
            Way::Namespaces { enter, inside } => enter_wall(&enter, &wall, &plan(&inside, &measured)),
            Way::OtherUser(inside) => {
                let status = plan(&inside, &measured).command(false).status();
                let mut end = inside.clone();
                end.extend(words(&["/bin/sh", "-c", "kill -KILL -1"]));
                let _ = plan(&[], &end).command(true).status();
                status
            }
            Way::None => plan(&[], &measured).command(false).status(),
        };
        let status = status.map_err(|error| FlowError::Internal(format!("cannot measure: {error}")))?;
        Ok(code_of(status))
    }

    /// The first way that works on this machine.
    fn find_way(
        &self,
        wall: &[String],
        plan: &dyn Fn(&[String], &[String]) -> Plan,
        warn: &dyn Fn(String),
    ) -> Way {
        let (own, user) = (User::own(), self.user);
        let alone = words(&ALONE);
        let mut ways = vec![([words(&["sudo", "-n"]), alone.clone()].concat(), user.become_it())];
        if own.uid == 0 && user.uid != 0 {
            ways.push((alone.clone(), user.become_it()));
        }
        if own == user {
            let map = ["--map-user", &user.uid.to_string(), "--map-group", &user.gid.to_string()]
                .map(str::to_owned);
            let inside = [words(&["unshare", "--user"]), map.to_vec()].concat();
            ways.push(([alone, words(&["--user", "--map-root-user"])].concat(), inside));
        }
        let mut why = String::new();
        for (enter, inside) in ways {
            let trial = plan(&inside, &words(&["true"]));
            match enter_wall_for_trial(&enter, wall, &trial) {
                Ok(()) => return Way::Namespaces { enter, inside },
                Err(reason) => why = reason,
            }
        }
        if own.uid == 0 && user != own {
            return Way::OtherUser(user.become_it());
        }
        let remedy = match self.is_gitlab {
            true => format!(". Where the job is root, {MEASURE_AS} can name a user to measure as"),
            false => String::new(),
        };
        warn(format!(
            "this machine has no namespaces ({}): what is measured may outlive the gate, and its verdict is advice only{remedy}",
            why.trim().replace('\n', "; ")
        ));
        Way::None
    }

    fn warn_of_user(&self, warn: &dyn Fn(String)) {
        let advice = "and its verdict is advice only";
        if self.user.uid == 0 {
            let remedy = if self.is_gitlab {
                format!(". {MEASURE_AS} can name a user to measure as")
            } else {
                String::new()
            };
            warn(format!("this job is root: what is measured may change the machine, {advice}{remedy}"));
        } else if self.is_gitlab
            && variable("CI_DISPOSABLE_ENVIRONMENT") != "true"
            && self.user == User::own()
        {
            warn(format!(
                "this runner is not made anew for each job: what is measured may change the files of the runner's user (such as \
                 ~/.profile, which the next step of the job reads), {advice}"
            ));
        }
    }

    /// The home folder of another user.
    fn home_of_user(&self) -> Option<PathBuf> {
        (self.user != User::own()).then(|| self.home())
    }

    fn mounts(&self, path: &[PathBuf]) -> mounts::Mounts {
        let open = [self.checkout.clone(), self.cache(), self.home(), self.artifacts.clone()];
        let mut shut = vec![self.here.clone(), self.scratch.join("base")];
        let temp = PathBuf::from(variable("RUNNER_TEMP"));
        shut.extend(temp.parent().filter(|folder| folder.is_absolute()).map(Path::to_owned));
        let runner = mounts::runner_folder();
        shut.extend(runner.clone());
        shut.extend(path.iter().filter(|folder| mounts::is_writable(folder)).cloned());
        mounts::plan(&open, shut, mounts::hidden(runner.as_deref()))
    }
}

/// Keeps files, not links to others, and makes them readable.
pub(crate) fn keep_plain_files(folder: &Path) -> Result<(), FlowError> {
    let mut links = Vec::new();
    mounts::walk(folder, &mut |path, metadata| {
        if metadata.is_symlink() {
            links.push(path.to_owned());
        } else {
            let mode = metadata.permissions().mode();
            let wanted = mode | if metadata.is_dir() { 0o700 } else { 0o600 };
            if mode != wanted {
                let _ = fs::set_permissions(path, Permissions::from_mode(wanted));
            }
        }
    });
    links.iter().try_for_each(|link| remove_all(link))
}

/// Empties the step's files: lines that were written to them before do not count.
pub(crate) fn empty_job_files() {
    for name in ["GITHUB_ENV", "GITHUB_PATH", "GITHUB_OUTPUT", "GITHUB_STATE", "GITHUB_STEP_SUMMARY"] {
        let path = variable(name);
        if !path.is_empty() && Path::new(&path).is_file() {
            let _ = fs::write(&path, "");
        }
    }
}

/// From inside the namespace nobody else is seen on the device.
pub(crate) fn warn_of_others(warn: &dyn Fn(String)) {
    let query = ["--query-compute-apps=pid,name", "--format=csv,noheader"];
    let Some(Ok(output)) = system("nvidia-smi").map(|mut smi| smi.args(query).output()) else { return };
    let others = String::from_utf8_lossy(&output.stdout).trim().replace('\n', "; ");
    if output.status.success() && !others.is_empty() {
        warn(format!("other processes use the GPU: {others}"));
    }
}

/// Runs a plan behind the wall.
fn enter_wall(enter: &[String], wall: &[String], plan: &Plan) -> std::io::Result<ExitStatus> {
    let mut child = wall_command(enter, wall)?.stdin(Stdio::piped()).spawn()?;
    if let Some(mut stdin) = child.stdin.take() {
        let _ = stdin.write_all(plan.text().as_bytes());
    }
    child.wait()
}

fn enter_wall_for_trial(enter: &[String], wall: &[String], plan: &Plan) -> Result<(), String> {
    let run = || -> std::io::Result<std::process::Output> {
        let mut command = wall_command(enter, wall)?;
        let mut child =
            command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn()?;
        if let Some(mut stdin) = child.stdin.take() {
            let _ = stdin.write_all(plan.text().as_bytes());
        }
        child.wait_with_output()
    };
    match run() {
        Ok(output) if output.status.success() => Ok(()),
        Ok(output) => Err(String::from_utf8_lossy(&output.stderr).into_owned()),
        Err(error) => Err(error.to_string()),
    }
}

fn wall_command(enter: &[String], wall: &[String]) -> std::io::Result<Command> {
    let missing = || std::io::Error::other(format!("there is no {}", enter[0]));
    let mut command = system(&enter[0]).ok_or_else(missing)?;
    command.args(&enter[1..]).args(wall);
    // Found by name on the way: sudo has a PATH of its own.
    command.env("PATH", SYSTEM.join(":"));
    Ok(command)
}

/// One of the machine's own programs.
fn system(name: &str) -> Option<Command> {
    SYSTEM.iter().map(|folder| Path::new(folder).join(name)).find(|path| path.is_file()).map(command)
}

fn words(words: &[&str]) -> Vec<String> {
    words.iter().map(|word| (*word).to_owned()).collect()
}

/// As a shell would tell it.
fn code_of(status: ExitStatus) -> i32 {
    status.code().or_else(|| status.signal().map(|signal| 128 + signal)).unwrap_or(-1)
}

fn internal(path: &Path, error: &std::io::Error) -> FlowError {
    FlowError::Internal(format!("{}: {error}", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_do_not_stay_in_the_evidence() {
        let dir = tempfile::tempdir().unwrap();
        let folder = dir.path().join("a");
        fs::create_dir(&folder).unwrap();
        fs::write(folder.join("kept"), "x").unwrap();
        std::os::unix::fs::symlink("/etc", folder.join("etc")).unwrap();
        std::os::unix::fs::symlink("/etc/passwd", folder.join("file")).unwrap();
        keep_plain_files(dir.path()).unwrap();
        assert!(folder.join("kept").is_file() && Path::new("/etc/passwd").is_file());
        assert!(
            folder.join("etc").symlink_metadata().is_err() && folder.join("file").symlink_metadata().is_err()
        );
    }
}
