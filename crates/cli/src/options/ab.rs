//! Flags of `ab`.

use super::decide::DecideArgs;
use super::groups::{HistoryArg, SealArgs, SuiteArg, WaiversArg};
use super::inspect::profile_on;
use super::policy::policy_parser;
use holdpoint_flow::FlowError;
use holdpoint_flow::ab::sides::{CommandPair, Head};
use holdpoint_flow::ab::{AbRequest, AbSides};
use holdpoint_flow::request::{EvidenceFiles, Policy, ProfileOn, SidesRequest, SuiteChoice};
use std::path::PathBuf;

/// Examples of `holdpoint ab -h`.
const EXAMPLES: &str = "\
Examples:
  holdpoint ab --base './old' --head './new' --tolerance 1%
  holdpoint ab --suite perf.toml --base-rev main";

/// `holdpoint ab`.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES, mut_arg("device", |flag| flag.hide(true)), mut_arg("seal_key", |flag| flag.hide(true)), mut_arg("history", |flag| flag.hide(true)))]
pub struct AbArgs {
    // Each flag names what it does not go with: clap does not ask for a required flag that conflicts with a given one.
    /// Base as a command line
    #[arg(long, value_name = "COMMAND", requires = "head", help_heading = "Sides")]
    pub base: Option<String>,
    /// Head as a command line
    #[arg(long, value_name = "COMMAND", requires = "base", conflicts_with_all = ["base_rev", "base_worker", "base_suite"], help_heading = "Sides")]
    pub head: Option<String>,
    /// Commands: what else they need.
    #[command(flatten)]
    pub command: CommandArgs,
    /// Base as a git revision, built by the suite's build command
    #[arg(long, value_name = "REV", conflicts_with_all = ["base", "base_worker", "base_suite"], help_heading = "Sides")]
    pub base_rev: Option<String>,
    /// Head as a git revision [default: the work tree, uncommitted changes included]
    #[arg(long, value_name = "REV", requires = "base_rev", conflicts_with_all = ["base", "base_worker", "base_suite"], help_heading = "Sides")]
    pub head_rev: Option<String>,
    /// Build and measure the work tree in place, even where no tracked file differs from HEAD
    #[arg(long, hide = true, requires = "base_rev", conflicts_with_all = ["head_rev", "base", "base_worker", "base_suite"], help_heading = "Sides")]
    pub dirty: bool,
    /// Base as a program that serves the suite's workloads
    #[arg(long, value_name = "COMMAND", requires = "head_worker", conflicts_with_all = ["base", "base_suite"], help_heading = "Sides")]
    pub base_worker: Option<String>,
    /// Head as a program that serves the suite's workloads
    #[arg(long, value_name = "COMMAND", requires = "base_worker", conflicts_with_all = ["base", "base_rev", "base_suite"], help_heading = "Sides")]
    pub head_worker: Option<String>,
    /// Base as a suite
    #[arg(
        long,
        hide = true,
        value_name = "NAME|FILE",
        requires = "head_suite",
        conflicts_with = "base",
        help_heading = "Sides"
    )]
    pub base_suite: Option<String>,
    /// Head as a suite
    #[arg(long, hide = true, value_name = "NAME|FILE", requires = "base_suite", conflicts_with_all = ["base", "base_rev", "base_worker"], help_heading = "Sides")]
    pub head_suite: Option<String>,
    /// Which suite.
    #[command(flatten)]
    pub suite: SuiteArg,
    /// Decision.
    #[command(flatten)]
    pub decision: DecideArgs,
    /// The rule that decides: sequential or disjoint-ci [default: sequential]
    #[arg(long, value_name = "NAME", value_parser = policy_parser(), hide_possible_values = true, help_heading = "Decision")]
    pub policy: Option<Policy>,
    /// Files.
    #[command(flatten)]
    pub files: AbFiles,
    /// Also show the usual statistics
    #[arg(long, hide = true)]
    pub evidence: bool,
}

/// Needs of two commands beside their command lines.
#[derive(Clone, Debug, clap::Args)]
#[group(requires = "base", conflicts_with_all = ["base_rev", "base_worker", "base_suite"])]
pub struct CommandArgs {
    /// Commands: names to show for them, given twice: base, then head
    #[arg(short = 'n', long = "name", value_name = "NAME", hide = true, help_heading = "Sides")]
    pub names: Vec<String>,
    /// Commands: run once before each side is measured
    #[arg(long, value_name = "COMMAND", hide = true, help_heading = "Sides")]
    pub setup: Option<String>,
    /// Commands: run before each call, untimed
    #[arg(long, value_name = "COMMAND", hide = true, help_heading = "Sides")]
    pub prepare: Option<String>,
    /// Commands: file that each call reads from stdin
    #[arg(long, value_name = "FILE", hide = true, help_heading = "Sides")]
    pub stdin: Option<String>,
    /// Folder in which the base command runs
    #[arg(long, value_name = "DIR", hide = true, help_heading = "Sides")]
    pub base_dir: Option<PathBuf>,
    /// Folder in which the head command runs
    #[arg(long, value_name = "DIR", hide = true, help_heading = "Sides")]
    pub head_dir: Option<PathBuf>,
}

/// Where a side-by-side comparison leaves its files.
#[derive(Clone, Debug, clap::Args)]
pub struct AbFiles {
    /// Folder for ab.json, comparison.json and ab.md
    #[arg(long, value_name = "DIR", default_value = "artifacts")]
    pub artifacts: PathBuf,
    /// Continue the interrupted comparison in that folder
    #[arg(long)]
    pub resume: bool,
    /// Folder with the outcomes of `calibrate`
    #[arg(long, value_name = "DIR", hide = true, default_value = ".holdpoint/calibration")]
    pub calibration_dir: PathBuf,
    /// Waivers.
    #[command(flatten)]
    pub waivers: WaiversArg,
    /// Profile the kernels of what regressed, base and head, into the same folder
    #[arg(long, value_parser = profile_on(), value_name = "WHEN", hide = true, default_value = "never")]
    pub profile_on: ProfileOn,
    /// The history.
    #[command(flatten)]
    pub history: HistoryArg,
    /// The seal's key.
    #[command(flatten)]
    pub seal_key: SealArgs,
}

impl AbArgs {
    pub fn request(self) -> Result<AbRequest, FlowError> {
        let AbFiles { artifacts, resume, calibration_dir, waivers, profile_on, history, seal_key } =
            self.files;
        let files = EvidenceFiles {
            artifacts,
            calibration_dir,
            waivers: waivers.into(),
            profile_on,
            history: history.into(),
            seal_key: seal_key.into(),
        };
        let suite = SuiteChoice::from(self.suite);
        let sides = if let (Some(base), Some(head)) = (self.base, self.head) {
            AbSides::Commands(self.command.pair(base, head)?)
        } else if let (Some(base), Some(head)) = (self.base_suite, self.head_suite) {
            let side = |name| SuiteChoice { name, ..suite.clone() };
            AbSides::Suites { base: side(base), head: side(head) }
        } else if let (Some(base), Some(head)) = (self.base_worker, self.head_worker) {
            AbSides::Workers { suite, base, head }
        } else if let Some(base) = self.base_rev {
            let head = self.head_rev.map_or(Head::WorkTree { in_place: self.dirty }, Head::Rev);
            AbSides::Revisions { suite, base, head }
        } else {
            return Err(FlowError::Input(
                "what is to be compared? Give --base and --head (commands), --base-rev (revisions), --base-worker and \
                 --head-worker (programs that serve the suite), or --base-suite and --head-suite"
                    .to_owned(),
            ));
        };
        let how = SidesRequest { decision: self.decision.into(), policy: self.policy, resume };
        Ok(AbRequest { sides, how, files })
    }
}

impl CommandArgs {
    fn pair(self, base: String, head: String) -> Result<CommandPair, FlowError> {
        let Self { names, setup, prepare, stdin, base_dir, head_dir } = self;
        let names = match <[String; 2]>::try_from(names) {
            Ok(names) => Some(names),
            Err(names) if names.is_empty() => None,
            Err(_) => {
                let what = "give -n twice: a name for base, then one for head";
                return Err(FlowError::Input(what.to_owned()));
            }
        };
        Ok(CommandPair { base, head, names, setup, prepare, stdin, base_dir, head_dir })
    }
}
