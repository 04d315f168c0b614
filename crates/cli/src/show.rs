//! Printing the results of commands.

use crate::args::Format;
use crate::output::Output;
use crate::streams::print;
use holdpoint_flow::attest::AttestResult;
use holdpoint_flow::attest::release::Verification;
use holdpoint_flow::checklist::ChecklistResult;
use holdpoint_flow::ci::CiResult;
use holdpoint_flow::fuzz::FuzzResult;
use holdpoint_flow::gate::GateResult;
use holdpoint_flow::history::HistoryResult;
use holdpoint_flow::init::InitResult;
use holdpoint_flow::profile::ProfileResult;
use holdpoint_flow::replay::Replay;
use holdpoint_flow::report::{Document, ReportResult};
use holdpoint_flow::roofline::RooflineResult;
use holdpoint_flow::run::RunReports;
use holdpoint_flow::status::Status;
use holdpoint_flow::trend::ShownHistory;
use holdpoint_flow::{FlowError, JudgementWithSamples, Message};

use holdpoint_model::caps::RuntimeCaps;
use holdpoint_model::{
    Baseline, Bisection, CacheListing, Calibration, Changes, CheckDocument, Report, SanitizeReport, Source,
    Tuning,
};
use holdpoint_render::{Judged, Style, terminal};

/// A result that can be printed, as text or as JSON.
pub trait Show {
    /// Prints it.
    fn show(&self, output: &Output) -> Result<(), FlowError>;
}

/// Documents that one function of `render` turns into text.
macro_rules! show_by {
    ($($document:ty, $text:path;)*) => {
        $(impl Show for $document {
            fn show(&self, output: &Output) -> Result<(), FlowError> {
                output.result(self, |style| $text(self, style))
            }
        })*
    };
}

show_by! {
    Baseline, terminal::baseline;
    Bisection, terminal::bisection;
    CacheListing, terminal::cache;
    Calibration, terminal::calibration;
    Changes, terminal::changes;
    CheckDocument, terminal::check;
    Report, terminal::report;
    RuntimeCaps, terminal::caps;
    SanitizeReport, terminal::sanitize;
    Vec<Tuning>, terminal::tune;
}

impl Show for ShownHistory {
    fn show(&self, output: &Output) -> Result<(), FlowError> {
        output.result(self, |style| terminal::trend(&self.points, Some(&self.changes), style))
    }
}

/// Nothing is printed where there is nothing.
impl<T: Show> Show for Option<T> {
    fn show(&self, output: &Output) -> Result<(), FlowError> {
        self.as_ref().map_or(Ok(()), |document| document.show(output))
    }
}

impl Show for Message {
    fn show(&self, output: &Output) -> Result<(), FlowError> {
        output.result(&self.json, |_| self.text.clone())
    }
}

impl Show for InitResult {
    fn show(&self, output: &Output) -> Result<(), FlowError> {
        let report =
            |style| self.report.as_ref().map_or_else(String::new, |report| terminal::report(report, style));
        output.result(self, |style| format!("{}:\n\n{}\n{}", self.path, self.suite, report(style)))
    }
}

impl Show for Status {
    fn show(&self, output: &Output) -> Result<(), FlowError> {
        output.result(self, |_| {
            let lines = self.lines().map(|(name, text)| format!("{name:<13} {text}\n"));
            lines.concat() + "\nholdpoint --help lists the commands\n"
        })
    }
}

impl Show for JudgementWithSamples {
    fn show(&self, output: &Output) -> Result<(), FlowError> {
        output.result(&self.judgement, |style| terminal::judgement(self.judged(), style))
    }
}

/// A comparison with the familiar statistics below it.
pub struct WithEvidence(pub JudgementWithSamples);

impl Show for WithEvidence {
    fn show(&self, output: &Output) -> Result<(), FlowError> {
        output.result(&self.0.judgement, |style| text_with_evidence(self.0.judged(), style))
    }
}

fn text_with_evidence(judged: Judged<'_>, style: Style) -> String {
    format!("{}\n{}", terminal::judgement(judged, style), terminal::evidence_of_sides(judged, style))
}

impl Show for HistoryResult {
    fn show(&self, output: &Output) -> Result<(), FlowError> {
        match self {
            Self::Message(message) => message.show(output),
            Self::Listed(all) => output.result(all, |style| terminal::history(all, style)),
            Self::Runs(page) => output.result(page, |style| terminal::runs(page, style)),
            Self::Shown { all, points } => output.result(all, |style| terminal::series(all, *points, style)),
            Self::Exported(text) => print(text),
            Self::Written => Ok(()),
        }
    }
}

impl Show for GateResult {
    fn show(&self, output: &Output) -> Result<(), FlowError> {
        match self {
            Self::Judged(decided) => decided.show(output),
            Self::Recorded(baseline) => baseline.show(output),
            Self::Unrecorded(report) => report.show(output),
            Self::NoBaseline => Ok(()),
        }
    }
}

impl Show for RunReports {
    fn show(&self, output: &Output) -> Result<(), FlowError> {
        match self {
            Self::Once(report) => report.show(output),
            Self::OnDevices(reports) => output.result(reports, |style| terminal::devices(reports, style)),
        }
    }
}

impl Show for ReportResult {
    fn show(&self, output: &Output) -> Result<(), FlowError> {
        let first = self.problem.as_ref().map(|what| format!("problem: {what}\n\n")).unwrap_or_default();
        match &self.document {
            Document::Report(judged) => output.result(&judged.report, |style| {
                let text = terminal::report(&judged.report, style);
                let Some(judgement) = &judged.judgement else { return first + &text };
                let judged = Judged::new(judgement, Some(Source::Run(&judged.report)));
                format!("{first}{text}\n{}", terminal::judgement(judged, style))
            }),
            Document::Judged(decided) => output.result(&decided.judgement, |style| {
                let judged = decided.judged();
                first
                    + &if judged.is_sides() {
                        text_with_evidence(judged, style)
                    } else {
                        terminal::judgement(judged, style)
                    }
            }),
            Document::Calibration(calibration) => calibration.show(output),
            Document::Bisection(bisection) => bisection.show(output),
            Document::Trend(trend) => trend.show(output),
            Document::ApexGpu(apex) => output.result(&apex.report, |_| apex.page.clone()),
            Document::Form(text) => print(text),
            Document::Written => Ok(()),
        }
    }
}

impl Show for RooflineResult {
    fn show(&self, output: &Output) -> Result<(), FlowError> {
        match self {
            Self::Roofline(roofline) => output.result(roofline, |style| terminal::roofline(roofline, style)),
            Self::Ceilings(all) => output.result(all, |style| {
                let texts: Vec<String> = all.iter().map(|one| terminal::ceilings(one, style)).collect();
                texts.join("\n")
            }),
            Self::Unmeasured(report) => report.show(output),
        }
    }
}

impl Show for ProfileResult {
    fn show(&self, output: &Output) -> Result<(), FlowError> {
        match self {
            Self::Alone(profile) => output.result(profile, |style| terminal::profile(profile, style)),
            Self::Compared { comparison, profile } => output.result(comparison, |style| {
                let (profile, changes) =
                    (terminal::profile(profile, style), terminal::profile_comparison(comparison, style));
                format!("{profile}\n{changes}")
            }),
        }
    }
}

impl Show for FuzzResult {
    fn show(&self, output: &Output) -> Result<(), FlowError> {
        match self {
            Self::Searched(report) => output.result(report, |style| terminal::fuzz(report, style)),
            Self::Replayed(cases) => output.result(cases, |style| terminal::replayed(cases, style)),
        }
    }
}

impl Show for Replay {
    fn show(&self, output: &Output) -> Result<(), FlowError> {
        match self {
            Self::Recorded { manifest, path } => {
                output.result(manifest, |style| terminal::replay_manifest(manifest, path, style))
            }
            Self::Verified(found) => {
                output.result(found, |style| terminal::replay_verification(found, style))
            }
            Self::WrongAnswer => Ok(()),
        }
    }
}

impl Show for Verification {
    fn show(&self, output: &Output) -> Result<(), FlowError> {
        output.result(&self.json, |style| terminal::verified(&self.problems, &self.holds, style))
    }
}

impl Show for AttestResult {
    fn show(&self, output: &Output) -> Result<(), FlowError> {
        match self {
            Self::Keys(message) => message.show(output),
            Self::Attestation(attestation) => {
                output.result(attestation, |style| terminal::attestation(attestation, style))
            }
            Self::Signed(signature) => output.result(&signature.envelope, |_| signature.text.clone()),
            Self::Verified(verified) => verified.show(output),
        }
    }
}

impl Show for ChecklistResult {
    fn show(&self, output: &Output) -> Result<(), FlowError> {
        match self {
            Self::Filled(message) => message.show(output),
            Self::Unverified(verified) => verified.show(output),
        }
    }
}

impl Show for CiResult {
    fn show(&self, output: &Output) -> Result<(), FlowError> {
        match self {
            Self::Message(message) => message.show(output),
            Self::Guarded(guarded) => output.result(guarded, |_| guarded.to_string()),
            Self::Files(files) => output.result(files, |_| files.text()),
            Self::Page(page) => print(page),
            Self::Measure(gated) => gated.show(output),
            Self::Gate(end) => {
                end.gated.show(output)?;
                // Commands to a runner: JSON is for another program.
                if output.quiet || output.format == Format::Json { Ok(()) } else { print(&end.lines) }
            }
            Self::Nothing => Ok(()),
        }
    }
}
