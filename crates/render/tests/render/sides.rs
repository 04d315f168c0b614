//! Hand-built comparisons of two sides, and calibrations.

use crate::values::{HOSTILE, machine};
use holdpoint_model::ab::{AbEvidence, Clock, DisjointCiKeys, Ended, QUANTILE, SideFailure, SideTimes};
use holdpoint_model::calibration::Visible;
use holdpoint_model::{
    AbPlan, AbReport, AbWorkload, Basis, Calibrated, Calibration, Check, CheckStatus, ComparedSides, Failure,
    FailureCause, Identity, PairRound, PairedKeys, Revision, Side, SideName, Source, Stated, Toolchain,
    Trouble, Unit, UsedWaiver, Verdict,
};
use holdpoint_render::{Judged, Style, markdown, terminal};
use holdpoint_stats::sequential::{Plan, Sequential};

use indexmap::IndexMap;

pub const ROUNDS_PER_UNIT: u32 = 12;

/// A comparison with its verdicts beside the samples, as tests like to write it.
#[derive(Clone)]
pub struct Sides {
    pub suite: String,
    pub timestamp_utc: String,
    pub verdict: Verdict,
    pub policy: String,
    pub finished: bool,
    pub plan: AbPlan,
    pub base: Side,
    pub head: Side,
    pub toolchain: Toolchain,
    pub notes: Vec<String>,
    pub workloads: IndexMap<String, Workload>,
}

/// A workload of it.
#[derive(Clone)]
pub struct Workload {
    pub verdict: Verdict,
    pub reason: String,
    pub ended: Ended,
    pub spent_s: f64,
    pub evidence: Option<AbEvidence>,
    pub disjoint_ci: Option<DisjointCiKeys>,
    pub calibrated: Option<Calibrated>,
    pub waiver: Option<UsedWaiver>,
    pub failure: Option<SideFailure>,
    pub units: Vec<Unit>,
}

impl Workload {
    fn identity() -> Identity {
        Identity {
            op: "tile_pack".to_owned(),
            shape: Vec::new(),
            dtype: String::new(),
            timer: "host_monotonic".to_owned(),
            params: Default::default(),
        }
    }

    fn samples(&self) -> AbWorkload {
        AbWorkload {
            identity: Self::identity(),
            reason: String::new(),
            ended: self.ended,
            spent_s: self.spent_s,
            failure: self.failure.clone(),
            kernels: None,
            same_build: None,
            exact: Default::default(),
            calls_per_sample: 1,
            units: self.units.clone(),
        }
    }

    fn check(&self, name: &str) -> Check {
        let evidence = self.evidence.as_ref();
        let medians = match &self.disjoint_ci {
            Some(keys) => Some([keys.baseline_median_ms, keys.candidate_median_ms]),
            None => evidence.map(|e| [e.base.p50_ms, e.head.p50_ms]),
        };
        let by_intervals = self.disjoint_ci.as_ref().map(|keys| keys.delta_pct / 100.0);
        Check {
            metric: format!("{name}_p50_ms"),
            workload: Some(name.to_owned()),
            status: CheckStatus::Pass,
            verdict: self.verdict,
            reason: self.reason.clone(),
            baseline_ms: medians.map(|medians| medians[0]),
            allowed_max_ms: None,
            current_ms: medians.map(|medians| medians[1]),
            regression_ratio: by_intervals.or(evidence.map(|e| e.ratio - 1.0)),
            baseline_spread: None,
            waiver: self.waiver.clone(),
            expected: None,
            current: None,
            threshold: None,
            paired: Some(PairedKeys {
                identity: Self::identity(),
                ended: self.ended,
                spent_s: self.spent_s,
                busy_share: None,
                evidence: self.evidence.clone(),
                disjoint_ci: self.disjoint_ci.clone(),
                calibrated: self.calibrated.clone(),
                metric: None,
            }),
            stored: None,
        }
    }
}

impl Sides {
    pub fn samples(&self) -> AbReport {
        AbReport {
            schema_version: 1,
            suite: self.suite.clone(),
            timestamp_utc: self.timestamp_utc.clone(),
            finished: self.finished,
            plan: self.plan.clone(),
            base: self.base.clone(),
            head: self.head.clone(),
            branch: None,
            machine: Some(machine()),
            toolchain: self.toolchain.clone(),
            conditions: Default::default(),
            elapsed_s: 14.23,
            notes: self.notes.clone(),
            workloads: self.workloads.iter().map(|(name, w)| (name.clone(), w.samples())).collect(),
        }
    }

    pub fn judgement(&self) -> Stated {
        Stated {
            schema_version: 1,
            suite: self.suite.clone(),
            status: "fail".to_owned(),
            verdict: self.verdict,
            policy: self.policy.clone(),
            timestamp_utc: Some(self.timestamp_utc.clone()),
            required_status: "ok".to_owned(),
            current_status: None,
            machine: Some(machine()),
            revision: self.head.revision.clone(),
            sides: Some(ComparedSides {
                base: self.base.clone(),
                head: self.head.clone(),
                finished: self.finished,
            }),
            notes: self.notes.clone(),
            ungated: Vec::new(),
            checks: self.workloads.iter().map(|(name, w)| w.check(name)).collect(),
            threshold: None,
            basis: Some(Basis::Sides { plan: self.plan.clone() }),
        }
    }

    /// For as long as the test runs.
    pub fn judged(&self) -> Judged<'static> {
        let (judgement, samples) =
            (Box::leak(Box::new(self.judgement())), Box::leak(Box::new(self.samples())));
        Judged::new(judgement, Some(Source::Sides(samples)))
    }
}

pub fn terminal_ab(r: &Sides, style: Style) -> String {
    terminal::judgement(r.judged(), style)
}

pub fn terminal_evidence(r: &Sides, style: Style) -> String {
    terminal::evidence_of_sides(r.judged(), style)
}

pub fn markdown_ab(r: &Sides) -> String {
    markdown::judgement(r.judged()).expect("a page")
}

pub fn ab(workloads: Vec<(&str, Workload)>) -> Sides {
    Sides {
        suite: "cpu-smoke".to_owned(),
        timestamp_utc: "2025-03-01T12:00:00Z".to_owned(),
        verdict: workloads.iter().map(|(_, w)| w.verdict).max().unwrap_or(Verdict::Inconclusive),
        policy: "side-by-side".to_owned(),
        finished: true,
        plan: AbPlan {
            tolerance: 0.01,
            tolerances: Default::default(),
            metrics: Default::default(),
            speedup_max: None,
            alarm_rate: 0.001,
            miss_rate: 0.05,
            units_max: 100,
            budget_s: 10.0,
            clock: None,
            units_at_once: 1,
            seed: 123,
        },
        base: side("main", "0a1b2c3d4e5f60718293a4b5c6d7e8f901234567", false),
        head: side("HEAD", "4f2c9e1d07ab35c8e6610f9b2a7d4c3e5f6a7b8c", true),
        toolchain: toolchain(),
        notes: Vec::new(),
        workloads: workloads.into_iter().map(|(name, w)| (name.to_owned(), w)).collect(),
    }
}

pub fn side(label: &str, commit: &str, dirty: bool) -> Side {
    Side {
        label: label.to_owned(),
        revision: Some(Revision { commit: commit.to_owned(), dirty }),
        ..Side::default()
    }
}

fn toolchain() -> Toolchain {
    Toolchain {
        holdpoint: "0.1.0".to_owned(),
        rustc: "1.95.0".to_owned(),
        profile: "release".to_owned(),
        kernel: Some("6.8.0".to_owned()),
        cuda: None,
    }
}

/// A workload without evidence.
pub fn bare(verdict: Verdict, ended: Ended, reason: &str) -> Workload {
    Workload {
        verdict,
        reason: reason.to_owned(),
        ended,
        spent_s: 0.0,
        evidence: None,
        disjoint_ci: None,
        calibrated: None,
        waiver: None,
        failure: None,
        units: Vec::new(),
    }
}

/// A workload that was measured on both sides.
pub fn measured(verdict: Verdict, base_ms: f64, ratio: f64, units: u32, reason: &str) -> Workload {
    let ended = if verdict == Verdict::Inconclusive { Ended::Budget } else { Ended::Decided };
    Workload {
        spent_s: 0.21 * f64::from(units),
        evidence: Some(evidence(verdict, base_ms, ratio, units)),
        units: (0..units).map(|process| unit(process, ratio.ln())).collect(),
        ..bare(verdict, ended, reason)
    }
}

/// The evidence that it takes to call a workload slower.
const CALL_E: f64 = 7_000.0;

/// The growth of the evidence over equal units.
fn growth(ratio: f64, units: u32) -> Vec<[f64; 3]> {
    let mut known = Sequential::new(Plan { tolerance: 0.01, ..Plan::default() }).expect("a plan");
    (0..units).for_each(|_| _ = known.push(ratio.ln()));
    known.growth(CALL_E)
}

fn evidence(verdict: Verdict, base_ms: f64, ratio: f64, units: u32) -> AbEvidence {
    let half = if verdict == Verdict::Inconclusive { 0.031 } else { 0.004 };
    let e = |wanted: Verdict| if verdict == wanted { 21_500.0 } else { 0.0312 };
    AbEvidence {
        ratio,
        ratio_interval: (units > 5).then_some([ratio - half, ratio + half]),
        ratio_interval_rate: Some(0.001),
        needed: Some(holdpoint_model::ab::NeededEvidence { call: CALL_E, pairs: 3, not_slower: 100.0 }),
        growth: growth(ratio, units),
        e_slower: e(Verdict::Regressed),
        e_not_slower: if verdict == Verdict::Inconclusive { 8.31 } else { e(Verdict::Pass) },
        e_faster: e(Verdict::Improved),
        smallest_visible_slowdown: Some(0.01 + half),
        unit_sd: Some(half * 1.1),
        units_count: units,
        rounds_count: units * ROUNDS_PER_UNIT,
        rounds_left_out: 0,
        base: times(base_ms),
        head: times(base_ms * ratio),
        cliffs_delta: Some(((ratio - 1.0) * 9.0).clamp(-1.0, 1.0)),
        hedges_g: Some((ratio - 1.0) * 41.0),
        mann_whitney_p: Some(if verdict == Verdict::Pass { 0.412 } else { 0.000_021 }),
    }
}

fn times(p50_ms: f64) -> SideTimes {
    SideTimes {
        p50_ms,
        p50_interval_ms: Some([p50_ms * 0.996, p50_ms * 1.003]),
        p95_ms: p50_ms * 1.031,
        p99_ms: p50_ms * 1.127,
        cv: Some(0.0213),
    }
}

fn unit(process: u32, x: f64) -> Unit {
    let round = |round| PairRound {
        round,
        order: 0,
        first: if round % 2 == 0 { SideName::Base } else { SideName::Head },
        base_ns: vec![1_000_000],
        head_ns: vec![1_000_000],
        ..PairRound::default()
    };
    let rounds = (0..ROUNDS_PER_UNIT).map(round).collect();
    Unit { process, x, skip: 0, quantile: QUANTILE, clock: Clock::Unwaited, rounds }
}

pub fn pass(base_ms: f64, ratio: f64) -> Workload {
    measured(Verdict::Pass, base_ms, ratio, 9, "not slower than 1.0 %")
}

pub fn regressed(base_ms: f64, ratio: f64) -> Workload {
    let reason = "head is slower than 1.0 %: 1.0484 times base in the median of 7 units";
    measured(Verdict::Regressed, base_ms, ratio, 7, reason)
}

pub fn undecided(base_ms: f64, ratio: f64) -> Workload {
    let reason = "the budget of 10.0 s was spent before the evidence sufficed; it would show a slowdown of 4.1 %: \
                  raise --budget, or the tolerance, or quiet the machine";
    measured(Verdict::Inconclusive, base_ms, ratio, 44, reason)
}

pub fn crashed(side: SideName, reason: &str) -> Workload {
    let tail =
        ["loading weights", "", "thread 'main' panicked at src/infer.rs:41:", "index out of bounds: 64"];
    Workload {
        failure: Some(SideFailure {
            side,
            failure: Failure {
                cause: FailureCause::Crashed,
                detail: "the worker ended with signal 11 after 3 of 12 rounds".to_owned(),
                stderr_tail: tail.map(str::to_owned).to_vec(),
                samples: None,
            },
        }),
        spent_s: 0.42,
        ..bare(Verdict::Broken, Ended::Failed, reason)
    }
}

/// Marks every `step`th round of the report.
pub fn trouble(r: &mut Sides, step: usize, left_out: bool, trouble: &[Trouble]) {
    let rounds = r.workloads.values_mut().flat_map(|w| &mut w.units).flat_map(|unit| &mut unit.rounds);
    for round in rounds.step_by(step) {
        round.trouble.extend(trouble);
        round.left_out |= left_out;
    }
}

pub fn by_seed(verdict: Verdict, base_ms: f64, head_ms: f64, sentence: &str) -> Workload {
    Workload {
        disjoint_ci: Some(DisjointCiKeys {
            baseline_median_ms: base_ms,
            candidate_median_ms: head_ms,
            delta_pct: (head_ms - base_ms) / base_ms * 100.0,
            speedup: base_ms / head_ms,
            cis_overlap: verdict == Verdict::Inconclusive,
            cliffs_delta: -0.91,
            cliffs_interpretation: "large".to_owned(),
            mann_whitney_p: 0.000_02,
            is_significant: verdict != Verdict::Inconclusive,
            verdict: sentence.to_owned(),
        }),
        ..measured(verdict, base_ms, head_ms / base_ms, 12, sentence)
    }
}

pub fn disjoint_ci() -> Sides {
    let mut r = ab(vec![
        (
            "ff_path",
            by_seed(Verdict::Regressed, 1.373, 1.439, "REGRESSION: 4.8% slower (significant, large effect)"),
        ),
        (
            "sort_merge",
            by_seed(Verdict::Inconclusive, 0.512, 0.514, "NO SIGNIFICANT DIFFERENCE: CIs overlap (Δ=+0.39%)"),
        ),
        ("tile_pack", by_seed(Verdict::Pass, 0.1234, 0.1229, "MAINTAINED: Δ=-0.41% (within noise)")),
    ]);
    r.policy = "disjoint-ci".to_owned();
    r
}

pub fn hostile_ab() -> Sides {
    let mut broken = crashed(SideName::Base, HOSTILE);
    if let Some(failed) = &mut broken.failure {
        failed.failure.detail = HOSTILE.to_owned();
        failed.failure.stderr_tail =
            vec![HOSTILE.to_owned(), String::new(), "</pre></details><b>".to_owned()];
    }
    let mut r = ab(vec![
        (HOSTILE, pass(1.0, 1.001)),
        ("größe_漢字", undecided(2.0, 1.0)),
        ("worker", broken),
        ("skip", bare(Verdict::Skipped, Ended::Skipped, HOSTILE)),
    ]);
    (r.suite, r.policy) = (HOSTILE.to_owned(), HOSTILE.to_owned());
    (r.base.label, r.head.label) = (HOSTILE.to_owned(), HOSTILE.to_owned());
    r.head.revision = None;
    r.notes = vec![HOSTILE.to_owned()];
    r.toolchain.rustc = HOSTILE.to_owned();
    r
}

pub fn calibrated(inject: f64, trials: u32, called: u32, inconclusive: u32, sd: f64) -> Calibrated {
    let visible =
        |seconds: f64, slowdown: f64| Visible { seconds, slowdown: (slowdown < 0.2).then_some(slowdown) };
    Calibrated {
        tolerance: 0.01,
        inject,
        trials,
        false_alarms: if inject > 0.0 { 0 } else { called },
        alarms: Vec::new(),
        detected: if inject > 0.0 { called } else { 0 },
        passed: trials - called - inconclusive,
        faster: 0,
        inconclusive,
        failed: 0,
        seconds: 1.9 + sd * 80.0,
        busy_share: None,
        seconds_p90: 2.6 + sd * 110.0,
        units: 8.5 + sd * 300.0,
        unit_sd: Some(sd),
        smallest_visible_slowdown: Some(0.01 + sd),
        visible: vec![visible(1.0, 0.01 + sd * 9.0), visible(3.0, 0.01 + sd * 2.4), visible(10.0, 0.01 + sd)],
        too_noisy: inconclusive * 2 > trials,
    }
}

pub fn calibration(inject: f64, trials: u32, workloads: Vec<(&str, Calibrated)>) -> Calibration {
    let sum = |of: fn(&Calibrated) -> u32| workloads.iter().map(|(_, w)| of(w)).sum();
    Calibration {
        schema_version: 1,
        suite: "cpu-smoke".to_owned(),
        timestamp_utc: "2025-03-01T12:00:00Z".to_owned(),
        machine: machine(),
        toolchain: toolchain(),
        tolerance: 0.01,
        alarm_rate: 0.001,
        inject,
        trials,
        decided: None,
        false_alarms: sum(|w| w.false_alarms),
        comparisons: sum(|w| w.trials),
        false_alarm_rate_upper: (inject == 0.0).then_some(0.014_867),
        detected: sum(|w| w.detected),
        inconclusive: sum(|w| w.inconclusive),
        seconds: 2.14,
        busy_share: None,
        suite_seconds: None,
        elapsed_s: 1_284.6,
        finished: true,
        advice: Vec::new(),
        workloads: workloads.into_iter().map(|(name, w)| (name.to_owned(), w)).collect(),
    }
}
