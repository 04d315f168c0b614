//! A judgement with its samples.

use holdpoint_gate::Judgement;
use holdpoint_model::{AbReport, Report, Source};
use holdpoint_render::Judged;

/// A judgement, and the samples it was made of as far as they are at hand.
#[derive(Clone, Debug)]
pub struct JudgementWithSamples {
    pub judgement: Judgement,
    pub sides: Option<AbReport>,
    pub report: Option<Report>,
}

impl JudgementWithSamples {
    pub fn judged(&self) -> Judged<'_> {
        let source = self.sides.as_ref().map(Source::Sides).or(self.report.as_ref().map(Source::Run));
        Judged::new(&self.judgement, source)
    }
}
