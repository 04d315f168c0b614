//! Where the two sides come from.

use crate::Watch;
use crate::error::FlowError;
use crate::options::{AbArgs, CommandArgs, DecideArgs, SuiteArg};
use crate::support::suites;
use holdpoint_measure::ab::{Sides, conditions};
use holdpoint_measure::builds::{BuildError, Builds, Built, Inventory};
use holdpoint_model::ab::SameBuild;
use holdpoint_model::suite::{HarnessFrom, Reuse, WORKER_BUILTIN, WORKER_COMMAND, WORKER_CUDA, WorkerSpec};
use holdpoint_model::{Revision, SCHEMA_VERSION, Side, Suite, WorkloadSpec};
use serde_json::json;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// Two sides that can be started.
pub struct Prepared {
    pub sides: Sides,
    pub base: Side,
    pub head: Side,
    /// Everything that the units depend on apart from the plan.
    pub conditions: BTreeMap<String, String>,
    /// The proof that both sides are the same build, where they are.
    pub same_build: Option<SameBuild>,
    /// The files of base's and of head's build.
    pub inventories: [Option<Inventory>; 2],
    /// Keeps the checkouts from being cleared away.
    pub _builds: Option<Builds>,
}

impl Prepared {
    /// Sides that need no checkouts.
    pub fn new(sides: Sides, base: Side, head: Side) -> Self {
        let inventories = [None, None];
        Self {
            conditions: conditions(&sides),
            sides,
            base,
            head,
            same_build: None,
            inventories,
            _builds: None,
        }
    }
}

/// The sides that the flags mean.
pub fn prepare(args: &AbArgs, watch: &dyn Watch) -> Result<Prepared, FlowError> {
    if let (Some(base), Some(head)) = (&args.base, &args.head) {
        return commands(base, head, args);
    }
    if let (Some(base), Some(head)) = (&args.base_suite, &args.head_suite) {
        let suite = |name: &str| {
            let arg = SuiteArg { suite: name.to_owned(), ..args.suite.clone() };
            suites::with_benches(suites::separate(&arg, 0.0)?)
        };
        let sides = with_settings(suite(base)?, suite(head)?, &args.decide);
        return Ok(Prepared::new(sides, labelled(base), labelled(head)));
    }
    if let (Some(base), Some(head)) = (&args.base_worker, &args.head_worker) {
        let suite = |program: &str| with_worker(suites::load(&args.suite)?, program);
        let sides = with_settings(suite(base)?, suite(head)?, &args.decide);
        return Ok(Prepared::new(sides, labelled(base), labelled(head)));
    }
    let Some(base_rev) = &args.base_rev else {
        return Err(FlowError::Input(
            "what is to be compared? Give --base and --head (commands), --base-rev (revisions), --base-worker and \
             --head-worker (programs that serve the suite), or --base-suite and --head-suite"
                .to_owned(),
        ));
    };
    let head = match &args.head_rev {
        _ if args.dirty => Head::WorkingTree,
        Some(rev) => Head::Rev(rev),
        None => Head::Checkout { remedy: ", or --head-rev HEAD to leave it out" },
    };
    revisions(&args.suite, base_rev, head, &args.decide, watch)
}

/// Two command lines.
fn commands(base: &str, head: &str, args: &AbArgs) -> Result<Prepared, FlowError> {
    let given = &args.command;
    if !matches!(given.names.len(), 0 | 2) {
        return Err(FlowError::Input("give -n twice: a name for base, then one for head".to_owned()));
    }
    let suite = |text, dir: &Option<PathBuf>| command_suite(text, dir.as_deref(), given);
    let sides = with_settings(suite(base, &given.base_dir)?, suite(head, &given.head_dir)?, &args.decide);
    let folder = |dir: &Option<PathBuf>| dir.as_ref().map(|dir| dir.display().to_string());
    let side = |text: &str, at: usize, flags: &[(&str, Option<String>)]| {
        let name = given.names.get(at).cloned();
        let flags = flags.iter().cloned().chain([("-n", name.clone())]);
        let flags = flags.filter_map(|(flag, value)| Some([flag.to_owned(), value?])).collect();
        Side { name, flags, ..labelled(text) }
    };
    let of_base = [
        ("--setup", given.setup.clone()),
        ("--prepare", given.prepare.clone()),
        ("--stdin", given.stdin.clone()),
        ("--base-dir", folder(&given.base_dir)),
    ];
    let of_head = [("--head-dir", folder(&given.head_dir))];
    Ok(Prepared::new(sides, side(base, 0, &of_base), side(head, 1, &of_head)))
}

/// Both sides, measured as the flags and head's suite say.
fn with_settings(base: Suite, head: Suite, decide: &DecideArgs) -> Sides {
    let gate = &head.gate;
    let (pin, measure_same_code) = (decide.pin(gate), decide.measure_same_code(gate));
    Sides { base, head, pin, measure_same_code }
}

/// The side under test, among revisions.
#[derive(Clone, Copy)]
pub enum Head<'a> {
    /// This one.
    Rev(&'a str),
    /// HEAD, as long as the files are those of HEAD; what else can be done where they are not.
    Checkout {
        /// Words for the end of a sentence.
        remedy: &'static str,
    },
    /// The files as they are.
    WorkingTree,
}

/// Two revisions of the repository around the current folder.
pub fn revisions(
    suite: &SuiteArg,
    base_rev: &str,
    head: Head,
    decide: &DecideArgs,
    watch: &dyn Watch,
) -> Result<Prepared, FlowError> {
    let suite = revision_suite(suite)?;
    let builds = Builds::open(Path::new("."))?.in_folder(suite.dir.as_deref());
    let base_commit = builds.resolve(base_rev)?;
    let (label, commit) = match head {
        Head::WorkingTree => ("working tree", builds.resolve("HEAD")?),
        Head::Checkout { .. } => ("HEAD", builds.resolve("HEAD")?),
        Head::Rev(rev) => (rev, builds.resolve(rev)?),
    };
    if let Head::Checkout { remedy } = head {
        refuse_changes(&builds, remedy)?;
    }
    let builds = with_benches_of(builds, &commit, &suite);
    let mut base_built = build(&builds, &base_commit, &suite, Purpose::Verdict, watch)?;
    let mut head_built = match head {
        Head::WorkingTree => builds.build_in_place(suite.build.as_ref())?,
        Head::Checkout { .. } | Head::Rev(_) => build(&builds, &commit, &suite, Purpose::Verdict, watch)?,
    };
    builds.check(&base_built, &format!("{label} was built"))?;
    let dirty = matches!(head, Head::WorkingTree) && !builds.changes()?.is_empty();
    let is_measured = matches!(head, Head::WorkingTree) || decide.measure_same_code(&suite.gate);
    let base_suite = listed(&builds, &mut base_built, &suite).map_err(|error| of_base(error, &suite))?;
    check_beside(&builds, &base_built, &mut head_built, &format!("{base_rev} listed its benchmarks"))?;
    let head_suite = listed(&builds, &mut head_built, &suite)?;
    check_beside(&builds, &head_built, &mut base_built, &format!("{label} listed its benchmarks"))?;
    suites::check_gated(&[&base_suite, &head_suite])?;
    let same_build = if is_measured { None } else { builds.same(&base_built, &head_built, &head_suite) };
    let sides = with_settings(base_suite, head_suite, decide);
    // A hash says nothing to a reader; the subject does.
    let of = |name: &str, commit: String, dirty| {
        let subject = (name == commit).then(|| builds.describe(&commit).ok()).flatten();
        let label = subject.map(|commit| commit.subject).filter(|subject| !subject.is_empty());
        let label = label.unwrap_or_else(|| name.to_owned());
        Side { label, revision: Some(Revision { commit, dirty }), ..Side::default() }
    };
    let mut prepared = Prepared::new(sides, of(base_rev, base_commit, false), of(label, commit, dirty));
    if dirty {
        prepared.conditions.insert("uncommitted changes".to_owned(), builds.changes_sha256()?);
    }
    let inventories = [base_built.inventory, head_built.inventory];
    Ok(Prepared { same_build, inventories, _builds: Some(builds), ..prepared })
}

/// The suite as it runs in a build, with the benchmarks that its harness and its workers list there.
pub fn listed(builds: &Builds, built: &mut Built, suite: &Suite) -> Result<Suite, FlowError> {
    let at_built = suites::with_benches(Suite { dir: Some(built.dir.clone()), ..suite.clone() })?;
    if suite.has_listed_workloads() {
        builds.take_inventory(built)?;
    }
    Ok(at_built)
}

/// Checks a build while only the other side's programs ran, unless both sides are one build.
fn check_beside(builds: &Builds, ran: &Built, other: &mut Built, meanwhile: &str) -> Result<(), FlowError> {
    if ran.dir == other.dir {
        other.inventory.clone_from(&ran.inventory);
    }
    Ok(builds.check(other, meanwhile)?)
}

/// Builds in which every revision has head's benchmarks, if the suite says so.
pub fn with_benches_of(builds: Builds, head: &str, suite: &Suite) -> Builds {
    match &suite.harness {
        Some(harness) => builds.with_files_of(head, &harness.files_of_head()),
        None => builds,
    }
}

/// Base's benchmarks may be older than the harness.
fn of_base(error: FlowError, suite: &Suite) -> FlowError {
    match (error, &suite.harness) {
        (FlowError::Input(what), Some(harness)) if harness.harness_from == HarnessFrom::Each => {
            FlowError::Input(format!(
                "base: {what}; if its benchmarks are newer than base, set harness_from = \"head\" under [harness]"
            ))
        }
        (error, _) => error,
    }
}

/// A suite whose workloads come out of the revision that is measured.
pub fn revision_suite(arg: &SuiteArg) -> Result<Suite, FlowError> {
    let suite = suites::load(arg)?;
    // A kernel of the user's own is compiled from the revision's source.
    let is_same =
        |workload: &&WorkloadSpec| suites::is_own(&suite, &workload.worker) && workload.kernel.is_none();
    if let Some(workload) = suite.workloads.iter().find(is_same) {
        return Err(FlowError::Input(format!(
            "suite {:?}, workload {:?}: built-in ops are holdpoint's own, the same at every revision of your code; \
             use a `command`, a `kernel` or a worker that is built from it (docs/ab.md)",
            suite.name, workload.name
        )));
    }
    suites::unbuilt(arg)
}

/// Purpose of a build.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Purpose {
    Verdict,
    /// A step of a search: the next one may be built in its place.
    Search,
}

/// Checks a revision out and builds it, unless that has been done before.
pub fn build(
    builds: &Builds,
    commit: &str,
    suite: &Suite,
    purpose: Purpose,
    watch: &dyn Watch,
) -> Result<Built, BuildError> {
    watch.progress(&format!("building {}", &commit[..commit.len().min(12)]));
    let build = suite.build.as_ref();
    let may_reuse = match build.map(|build| build.reuse) {
        Some(Reuse::Always) => true,
        Some(Reuse::Search) => purpose == Purpose::Search,
        // Where nothing is built, there is nothing to save.
        Some(Reuse::Never) | None => false,
    };
    let built = if may_reuse { builds.get_in_workshop(commit, build)? } else { builds.get(commit, build)? };
    built.note.iter().for_each(|note| watch.note(note));
    if !built.cached {
        watch.progress(&format!("built {} in {:.1} s", &commit[..commit.len().min(12)], built.seconds));
    }
    Ok(built)
}

fn refuse_changes(builds: &Builds, remedy: &str) -> Result<(), FlowError> {
    let changes = builds.changes()?;
    let shown: Vec<&str> = changes.iter().take(3).map(String::as_str).collect();
    match changes.len() {
        0 => Ok(()),
        n => Err(FlowError::Input(format!(
            "the working tree differs from HEAD in {n} {} ({}{}), which no revision names; commit that, or give --dirty \
             to measure the tree as it is{remedy}",
            if n == 1 { "file" } else { "files" },
            shown.join(", "),
            if n > shown.len() { ", …" } else { "" }
        ))),
    }
}

fn labelled(label: &str) -> Side {
    Side { label: label.to_owned(), ..Side::default() }
}

/// A suite of the one workload that a command line is.
fn command_suite(text: &str, dir: Option<&Path>, given: &CommandArgs) -> Result<Suite, FlowError> {
    let line = CommandLine::parse(text);
    // What is run beside it has its environment.
    let beside = |text: &Option<String>| text.as_deref().map(|text| CommandLine::parse(text).into_words());
    let mut workload = json!({"name": "command", "command": line.words, "env": line.env});
    for (key, words) in [("setup", beside(&given.setup)), ("prepare", beside(&given.prepare))] {
        words.into_iter().for_each(|words| workload[key] = json!(words));
    }
    if let Some(file) = &given.stdin {
        // What was typed is relative to the current folder.
        let path = std::path::absolute(file).map_err(|error| FlowError::Input(format!("{file}: {error}")))?;
        workload["stdin"] = json!(path);
    }
    let suite = json!({"schema_version": SCHEMA_VERSION, "name": "command", "workload": [workload]});
    let suite =
        Suite::from_json(suite).map_err(|error| FlowError::Input(format!("command {text:?}: {error}")))?;
    match dir {
        Some(dir) if !dir.is_dir() => Err(FlowError::Input(format!("there is no folder {}", dir.display()))),
        _ => Ok(Suite { dir: dir.and_then(|dir| std::path::absolute(dir).ok()), ..suite }),
    }
}

/// A command line as a person types it.
#[derive(Debug, PartialEq)]
struct CommandLine {
    env: BTreeMap<String, String>,
    /// Program and arguments.
    words: Vec<String>,
}

impl CommandLine {
    /// One that needs a shell gets one.
    fn parse(text: &str) -> Self {
        let words = Some(text).filter(|text| !needs_shell(text)).and_then(shlex::split);
        let Some(words) = words else {
            return Self { env: BTreeMap::new(), words: ["sh", "-c", text].map(str::to_owned).to_vec() };
        };
        let mut words = words.into_iter().peekable();
        let mut env = BTreeMap::new();
        while let Some((name, value)) = words.peek().and_then(|word| assignment(word)) {
            env.insert(name.to_owned(), value.to_owned());
            words.next();
        }
        Self { env, words: words.collect() }
    }

    /// For where only words will do.
    fn into_words(self) -> Vec<String> {
        if self.env.is_empty() {
            return self.words;
        }
        let set = self.env.iter().map(|(name, value)| format!("{name}={value}"));
        std::iter::once("env".to_owned()).chain(set).chain(self.words).collect()
    }
}

/// Whether a command line has more than words and quotes.
fn needs_shell(text: &str) -> bool {
    let is_plain = |c: char| c.is_alphanumeric() || " /._-+=,:@%^".contains(c);
    let mut quote = None;
    for c in text.chars() {
        match quote {
            Some(open) if c == open => quote = None,
            Some('"') if "$`\\".contains(c) => return true,
            Some(_) => {}
            None if c == '\'' || c == '"' => quote = Some(c),
            None if is_plain(c) => {}
            None => return true,
        }
    }
    false
}

/// `NAME=value` before a command, as in a shell.
fn assignment(word: &str) -> Option<(&str, &str)> {
    let (name, value) = word.split_once('=')?;
    let is_name = name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
        && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
    is_name.then_some((name, value))
}

/// A suite with this program in place of every worker but `command`.
fn with_worker(mut suite: Suite, program: &str) -> Result<Suite, FlowError> {
    let names: Vec<String> =
        suite.workloads.iter().map(|w| w.worker.clone()).filter(|name| name != WORKER_COMMAND).collect();
    if names.is_empty() {
        return Err(FlowError::Input(format!(
            "suite {:?} has only commands, no worker to replace",
            suite.name
        )));
    }
    // What was typed is relative to the current folder.
    let dir = std::env::current_dir().ok();
    for name in names {
        let declared = suite.workers.get(&name);
        let single_threaded = declared.map_or(name == WORKER_BUILTIN, |worker| worker.single_threaded);
        let units_per_process = match declared {
            Some(worker) => worker.units_per_process,
            None if name == WORKER_CUDA => suites::UNITS_PER_CUDA_PROCESS,
            None => 1,
        };
        suite.workers.insert(
            name,
            WorkerSpec {
                command: CommandLine::parse(program).into_words(),
                single_threaded,
                units_per_process,
                all_workloads: false,
                dir: dir.clone(),
            },
        );
    }
    Ok(suite)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_shell_is_used_only_where_one_is_needed() {
        let words = |text| CommandLine::parse(text).into_words();
        assert_eq!(words("./a --n 3 x=1"), ["./a", "--n", "3", "x=1"]);
        assert_eq!(words("seq 3 | wc -l"), ["sh", "-c", "seq 3 | wc -l"]);
        assert_eq!(words("a 'b | $c' \"d;\n\"e"), ["a", "b | $c", "d;\ne"]);
        for text in ["a \"$b\"", "a 'b' *", "a 'b", "a \"\\\"\""] {
            assert_eq!(words(text), ["sh", "-c", text]);
        }
        assert!(words(" ").is_empty());
    }

    #[test]
    fn variables_before_a_command_are_its_environment() {
        let line = CommandLine::parse("A=1 _b2=x=y ./a C=3");
        assert_eq!(line.words, ["./a", "C=3"]);
        assert_eq!(
            line.env.into_iter().collect::<Vec<_>>(),
            [("A", "1"), ("_b2", "x=y")].map(|(n, v)| (n.to_owned(), v.to_owned()))
        );
        assert_eq!(CommandLine::parse("A=1 ./a").into_words(), ["env", "A=1", "./a"]);
        assert_eq!(CommandLine::parse("./a=b/c 2=3").into_words(), ["./a=b/c", "2=3"]);
    }
}
