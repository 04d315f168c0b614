//! Decides whether a run of a workflow may use the GPU: an event in, a decision with its reason out. Pure.
//!
//! Everything in an event that an outsider can write (titles, branch names, comments, labels) is data: nothing of it
//! reaches a decision but by comparison, nor a reason but through [`plain`].

mod event;
mod github;
mod gitlab;

pub use github::{GitHub, github};
pub use gitlab::{GitLab, gitlab};

use serde::Serialize;
use std::fmt;

/// Whether a run may use the GPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Decision {
    Run,
    /// There is nothing to measure, by a rule that only those who may write to the repository can set: no reason to fail.
    Skip,
    /// There is something to measure, and this event is not trusted to do it: the required check must not pass.
    Refuse,
}

/// The thing that the head is compared with.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Mode {
    /// The base revision, side by side: a change that is not merged yet.
    Against,
    /// A stored baseline: what has been merged.
    Baseline,
}

/// A full commit hash.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(transparent)]
pub struct Sha(String);

impl Sha {
    /// A hash of 40 or 64 lower-case hex digits. Short ones are not taken: one that begins alike can be made.
    pub fn new(text: &str) -> Option<Self> {
        let is_hex = |byte: u8| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte);
        (matches!(text.len(), 40 | 64) && text.bytes().all(is_hex)).then(|| Self(text.to_owned()))
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Whether it is git's placeholder for no commit.
    fn is_null(&self) -> bool {
        self.0.bytes().all(|byte| byte == b'0')
    }
}

impl fmt::Display for Sha {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// A decision, with its reason and the commits to use.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Ruling {
    pub decision: Decision,
    pub reason: String,
    pub mode: Mode,
    /// The commit to measure; absent unless the run is allowed.
    pub head_sha: Option<Sha>,
    /// The commit whose suite, baselines, policy and waivers are used; absent unless the run is allowed.
    pub base_sha: Option<Sha>,
    /// Whether, and by which comparison, a filter of paths may still find that nothing of interest has changed.
    #[serde(skip)]
    pub filter: Option<Filter>,
    /// Head and base of that comparison.
    #[serde(skip)]
    pub compared: Option<(Sha, Sha)>,
}

/// The range in which a filter of paths looks for changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Filter {
    /// Since head left base.
    SinceMergeBase,
    /// Between base and head: a push by force also takes away.
    SinceBase,
}

impl Ruling {
    fn run(mode: Mode, head: Sha, base: Sha, reason: String) -> Self {
        Self {
            decision: Decision::Run,
            reason,
            mode,
            compared: Some((head.clone(), base.clone())),
            head_sha: Some(head),
            base_sha: Some(base),
            filter: None,
        }
    }

    /// A push; the first one of a branch is compared with itself. Hosted machines vary and have no baseline of their own.
    fn run_push(before: Sha, after: Sha, reason: String, settings: &Settings) -> Self {
        let mode = if settings.hosted { Mode::Against } else { Mode::Baseline };
        let base = if before.is_null() { after.clone() } else { before };
        Self::run(mode, after, base, reason).filtered(Filter::SinceBase)
    }

    /// A run of the wanted commit against `own`, or of `own` where none is wanted; absent where it is no full hash.
    fn run_wanted(wanted: &str, own: Sha, [start, who]: [&str; 2]) -> Option<Self> {
        if wanted.is_empty() {
            return Some(Self::run(Mode::Baseline, own.clone(), own, format!("{start} by {who}")));
        }
        let head = Sha::new(wanted)?;
        let reason = format!("{start} for {head} by {who}");
        Some(Self::run(Mode::Against, head, own, reason))
    }

    fn without_run(decision: Decision, reason: String) -> Self {
        let (head_sha, base_sha, filter, compared) = (None, None, None, None);
        Self { decision, reason, mode: Mode::Against, head_sha, base_sha, filter, compared }
    }

    fn skip(reason: impl Into<String>) -> Self {
        Self::without_run(Decision::Skip, reason.into())
    }

    fn refuse(reason: impl Into<String>) -> Self {
        Self::without_run(Decision::Refuse, reason.into())
    }

    fn filtered(mut self, filter: Filter) -> Self {
        self.filter = Some(filter);
        self
    }

    /// Refused, unless the filter of paths finds that there is nothing to measure.
    fn unless_unchanged(mut self, head: Sha, base: Sha) -> Self {
        self.compared = Some((head, base));
        self.filtered(Filter::SinceMergeBase)
    }

    /// A run that an earlier job has decided on.
    pub fn handed_on(mode: Mode, head: Sha, base: Sha) -> Self {
        Self::run(mode, head, base, "decided by an earlier job".to_owned())
    }

    /// The same run, compared with a commit instead of a stored baseline.
    pub fn against(mut self, base: Sha) -> Self {
        self.mode = Mode::Against;
        self.base_sha = Some(base);
        self
    }

    /// Skips the run, as none of the paths that matter has changed.
    pub fn without_changes(self) -> Self {
        if self.filter.is_some() { Self::skip("no file that matters for speed has changed") } else { self }
    }

    /// Replaces a base that a force push has removed: the pushed commit is compared with its first parent, or with itself where it
    /// has none.
    pub fn since_parent(mut self, parent: Option<&str>) -> Self {
        if self.filter != Some(Filter::SinceBase) {
            return self;
        }
        let parent = parent.and_then(Sha::new);
        let against = match &parent {
            Some(parent) => format!("so it is compared with its parent {parent}"),
            None => "and it has no parent, so it is compared with itself".to_owned(),
        };
        self.reason = format!("{}; what was there before is gone, {against}", self.reason);
        self.base_sha = parent.or_else(|| self.head_sha.clone());
        self
    }

    /// Whether the GPU may be used.
    pub fn is_allowed(&self) -> bool {
        self.decision == Decision::Run
    }

    /// `name=value` lines for a step's outputs. No value can hold a line break: hashes are hex, reasons are [`plain`].
    pub fn outputs(&self) -> String {
        let sha = |sha: &Option<Sha>| sha.as_ref().map(Sha::to_string).unwrap_or_default();
        let (decision, mode) = (word(self.decision), word(self.mode));
        let (head, base) = (sha(&self.head_sha), sha(&self.base_sha));
        format!(
            "allowed={}\ndecision={decision}\nreason={}\nmode={mode}\nhead_sha={head}\nbase_sha={base}\n",
            self.is_allowed(),
            self.reason
        )
    }
}

impl fmt::Display for Ruling {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        write!(f, "{}: {}", word(self.decision), self.reason)
    }
}

/// The name of a plain enum's value in files.
fn word(value: impl Serialize) -> String {
    let value = serde_json::to_value(value).unwrap_or_default();
    value.as_str().unwrap_or_default().to_owned()
}

#[derive(Clone, Debug, Default)]
pub struct Settings {
    /// Scheduled runs may use the GPU.
    pub scheduled: bool,
    /// Only pull requests with this label are measured.
    pub label: Option<String>,
    /// The runner belongs to the forge and is thrown away afterwards: strangers' code may run there, and no label is needed.
    pub hosted: bool,
    /// Branches that are judged besides the default one.
    pub branches: Vec<String>,
}

/// An event that cannot be understood; no run is allowed then.
#[derive(Debug, thiserror::Error)]
pub enum EventError {
    /// No JSON, or not of the form the forge documents.
    #[error("{what} is not of the form it should have: {why}")]
    Form {
        what: String,
        /// The parser's message; it quotes the document, so only in harmless characters.
        why: String,
    },
    #[error("{field} is no full commit hash: {found:?}")]
    Sha { field: &'static str, found: String },
    #[error("{0}")]
    Missing(String),
}

fn sha(field: &'static str, text: &str) -> Result<Sha, EventError> {
    Sha::new(text).ok_or_else(|| EventError::Sha { field, found: plain(text) })
}

/// Longest piece of an event that is shown in a reason.
const PLAIN_CHARS_MAX: usize = 80;

/// Foreign text made safe for a log line, an output or a table: no line break, no workflow command
/// (`::error`, `##[group]`), no markup, no expression; cut where it is long.
pub fn plain(text: &str) -> String {
    let harmless = |c: char| if c.is_ascii_alphanumeric() || "-_./@ ".contains(c) { c } else { '?' };
    let mut plain: String = text.chars().take(PLAIN_CHARS_MAX).map(harmless).collect();
    if text.chars().nth(PLAIN_CHARS_MAX).is_some() {
        plain.push_str("...");
    }
    plain
}
