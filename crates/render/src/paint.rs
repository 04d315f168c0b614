//! Colours on the terminal.

use holdpoint_model::Verdict;

/// How the terminal wants its text.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Style {
    /// Whether ANSI escapes are allowed.
    pub color: bool,
    /// Columns of the terminal, if known; without it nothing is wrapped.
    pub width: Option<u16>,
    /// Whether drawings have to do without characters beyond ASCII.
    pub ascii: bool,
}

/// The meaning of a piece of text; its colour follows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) enum Ink {
    #[default]
    Plain,
    Strong,
    Dim,
    Calm,
    Good,
    Doubt,
    Bad,
}

/// All that [`Style::paint`] puts into a text.
pub(crate) const COLORS: &[&str] =
    &["\u{1b}[0m", "\u{1b}[1m", "\u{1b}[2m", "\u{1b}[32m", "\u{1b}[1;32m", "\u{1b}[33m", "\u{1b}[1;31m"];

impl Ink {
    fn sgr(self) -> &'static str {
        match self {
            Self::Plain => "",
            Self::Strong => "1",
            Self::Dim => "2",
            Self::Calm => "32",
            Self::Good => "1;32",
            Self::Doubt => "33",
            Self::Bad => "1;31",
        }
    }
}

impl From<Verdict> for Ink {
    fn from(verdict: Verdict) -> Self {
        match verdict {
            Verdict::Improved => Self::Good,
            Verdict::Pass => Self::Calm,
            Verdict::Waived | Verdict::Skipped | Verdict::Inconclusive => Self::Doubt,
            Verdict::Regressed | Verdict::Broken => Self::Bad,
        }
    }
}

/// The sign before a verdict's word, so that its colour is never all there is.
pub(crate) fn mark(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::Improved => "★",
        Verdict::Pass => "✔",
        Verdict::Waived => "◇",
        Verdict::Skipped => "○",
        Verdict::Inconclusive => "?",
        Verdict::Regressed => "▲",
        Verdict::Broken => "✖",
    }
}

impl Style {
    /// The text in this ink, or as it is where colour is not wanted.
    pub(crate) fn paint(self, ink: Ink, text: &str) -> String {
        if self.color && ink != Ink::Plain && !text.is_empty() {
            format!("\u{1b}[{}m{text}\u{1b}[0m", ink.sgr())
        } else {
            text.to_owned()
        }
    }
}
