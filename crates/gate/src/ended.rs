//! The verdict over a folder of evidence: a judgement, the gate's exit code as workflows keep it, and problems with the files.

use crate::Judgement;
use holdpoint_model::{ExitCode, Verdict};

/// An exit code takes three digits, a word for none of them a few letters.
const CHARS_MAX: usize = 16;

/// An exit code, or a word where there was none.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ended {
    code: String,
}

impl Ended {
    /// Reads the file `exit-code`.
    pub fn parse(text: &str) -> Option<Self> {
        let code = text.trim();
        let is_word =
            (1..=CHARS_MAX).contains(&code.len()) && code.bytes().all(|b| b.is_ascii_alphanumeric());
        is_word.then(|| Self { code: code.to_owned() })
    }

    /// As it was written.
    pub fn code(&self) -> &str {
        &self.code
    }

    /// Whether it is this one.
    pub fn is(&self, code: ExitCode) -> bool {
        self.code == (code as u8).to_string()
    }

    /// The verdict that it stands for. Where nothing was decided, the gate is broken.
    pub fn verdict(&self) -> Verdict {
        self.known().map_or(Verdict::Broken, |(verdict, _)| verdict)
    }

    /// The verdict that it stands for where there is no comparison: without one, nothing was shown not to be slower.
    pub(crate) fn verdict_alone(&self) -> Verdict {
        match self.verdict() {
            Verdict::Pass => Verdict::Inconclusive,
            verdict => verdict,
        }
    }

    /// Whether a signal ended the gate: a hang-up, an interruption, an end.
    pub fn is_signal(&self) -> bool {
        ["129", "130", "143"].contains(&self.code.as_str())
    }

    /// Whether it is worse than what the files say. Without a fault it says nothing of what got better.
    pub fn is_worse_than(&self, verdict: Verdict) -> bool {
        self.verdict() > verdict.max(Verdict::Pass)
    }

    /// Its meaning in words: `no verdict: exit code 137`.
    pub fn sentence(&self, has_comparison: bool) -> String {
        match self.known() {
            Some((Verdict::Pass, _)) if !has_comparison => {
                "nothing was compared; a first gate records what to compare with (exit code 0)".to_owned()
            }
            Some((_, what)) => format!("{what} (exit code {})", self.code),
            None => format!("no verdict: exit code {}", self.code),
        }
    }

    fn known(&self) -> Option<(Verdict, &'static str)> {
        Some(match self.code.as_str() {
            "0" => (Verdict::Pass, "nothing slower than allowed was found"),
            "1" => (Verdict::Regressed, "slower than allowed"),
            "2" => (Verdict::Skipped, "nothing could be measured"),
            "3" => (Verdict::Inconclusive, "the evidence does not suffice"),
            "4" => (Verdict::Broken, "a wrong answer, a crash, or a revision that does not build"),
            _ => return None,
        })
    }
}

/// The worst of a judgement and of the gate's exit code; inconclusive where there is neither, and no better where the files have
/// problems.
pub fn overall(judgement: Option<&Judgement>, ended: Option<&Ended>, has_problems: bool) -> Verdict {
    let judged = judgement.map(|judgement| judgement.verdict);
    let ended = ended.filter(|ended| judged.is_none_or(|verdict| ended.is_worse_than(verdict)));
    let verdict_of = if judged.is_none() { Ended::verdict_alone } else { Ended::verdict };
    let worst = ended.map(verdict_of).or(judged).unwrap_or(Verdict::Inconclusive);
    if has_problems { worst.max(Verdict::Inconclusive) } else { worst }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_code_outside_of_the_verdicts_is_none() {
        let of = |text: &str| Ended::parse(text).map(|ended| (ended.verdict(), ended.sentence(true)));
        for (code, verdict) in [
            ("0\n", Verdict::Pass),
            ("1", Verdict::Regressed),
            ("2", Verdict::Skipped),
            ("3", Verdict::Inconclusive),
            ("4", Verdict::Broken),
        ] {
            assert_eq!(of(code).unwrap().0, verdict, "{code}");
        }
        for code in ["5", "64", "70", "137", "143", "none", "00"] {
            assert_eq!(of(code), Some((Verdict::Broken, format!("no verdict: exit code {code}"))));
        }
        let none = Ended::parse("none").unwrap();
        assert!(none.is_worse_than(Verdict::Regressed) && !none.is_worse_than(Verdict::Broken));
        assert!(!Ended::parse("0").unwrap().is_worse_than(Verdict::Improved));
        for bad in ["", " ", "<!channel>", "-1", "1 2", "12345678901234567"] {
            assert_eq!(of(bad), None, "{bad:?}");
        }
    }
}
