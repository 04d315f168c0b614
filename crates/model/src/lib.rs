//! The nouns of holdpoint and their wire formats.
//!
//! Everything here is plain data: no file is opened, no clock is read, nothing is decided. `GLOSSARY.md`
//! fixes the words; `docs/schemas` holds the JSON Schemas generated from these types.

pub mod ab;
pub mod attest;
pub mod baseline;
pub mod bisect;
pub mod cache;
pub mod calibration;
pub mod caps;
pub mod changes;
pub mod check;
pub mod current;
pub mod date;
pub mod document;
pub mod exit;
pub mod fuzz;
pub mod history;
pub mod json;
pub mod judgement;
mod kind;
pub mod limits;
pub mod machine;
mod measurement;
pub mod metric;
pub mod notice;
pub mod notify;
mod oracle;
mod pair_round;
pub mod pattern;
pub mod person;
pub mod profile;
pub mod protocol;
pub mod release_policy;
pub mod replay;
pub mod report;
pub mod roofline;
pub mod seal;
pub mod suite;
pub mod timestamp;
pub mod toml_file;
pub mod trend;
pub mod tune;
pub mod unit_plan;
mod values;
pub mod waiver;

pub use ab::{AbPlan, AbReport, AbWorkload, PairRound, Side, SideName, SideNumbers, Trouble, Unit};
pub use attest::{Attestation, Envelope, SignOff, Statement};
pub use baseline::{Baseline, BaselineMetric, BaselineRun, Promotion, RunNoise};
pub use bisect::{BisectStep, Bisection, CommitInfo, StepOutcome};
pub use cache::{CacheListing, CachedBuild};
pub use calibration::{Calibrated, Calibration};
pub use changes::{
    Cause, ChangeEvent, Changes, Effect, EventMember, LevelChange, RunPlace, SeriesChanges, Track,
    TrackPoint, Tracks, VersionChange,
};
pub use check::{CheckDocument, KernelCheck};
pub use current::{Current, MetricValue, Unmeasured};
pub use date::Date;
pub use document::{Document, FileError};
pub use exit::ExitCode;
pub use fuzz::{Evaluated, FindingKind, FuzzCase, FuzzFile, FuzzReport};
pub use history::{
    Acceptance, Point, RunCursor, RunFilter, RunHash, RunPage, RunSummary, Series, SeriesFilter, SeriesKey,
    SeriesSummary, Taken, TimeRange, Versions,
};
pub use judgement::{
    Allow, BaselineBasis, Basis, Check, CheckStatus, ComparedSides, HistoryLevel, MetricKeys, PairedKeys,
    Source, Stated, ThresholdKeys, Verdict,
};
pub use kind::Kind;
pub use machine::{Advice, Machine, MachineState, Revision, Toolchain};
pub use profile::{
    KernelProfile, Profile, ProfileComparison, ProfileOutcome, SanitizeOutcome, SanitizeReport,
};
pub use release_policy::{Allowance, ReleasePolicy};
pub use replay::{ReplayManifest, ReplayVerification};
pub use report::{Failure, FailureCause, Measured, Measurement, Outcome, Report, Round, RunStatus, Samples};
pub use roofline::{Ceilings, Roofline};
pub use seal::{Seal, SealFacts, SealState};
pub use suite::{Identity, Suite, Workload};
pub use timestamp::Timestamp;
pub use trend::{Trend, TrendMetric};
pub use tune::{TuneOutcome, TunedKernel, Tuning};
pub use unit_plan::{UnitCost, UnitPlan};
pub use values::Values;
pub use waiver::{UsedWaiver, Waiver, WaiverState, Waivers};

/// The version of every file format that holdpoint writes. It is the originals' own version number: what
/// holdpoint adds, it adds beside their keys. Raise it only when a key changes its meaning.
pub const SCHEMA_VERSION: u32 = 1;

/// The version of files that do not say theirs.
fn schema_version() -> u32 {
    SCHEMA_VERSION
}
