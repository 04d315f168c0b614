//! The kinds of documents: one table of their names, and of the keys by which files are known that carry no `kind`.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

macro_rules! kinds {
    ($($kind:ident $name:literal $words:literal $writer:literal [$($key:literal),*])*) => {
        /// A document's kind, from the key `kind` of its file.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
        pub enum Kind {
            $(#[doc = $words] #[serde(rename = $name)] $kind,)*
        }

        impl Kind {
            /// All of them, in the order in which old files are tried.
            pub const ALL: &[Self] = &[$(Self::$kind),*];

            pub fn as_str(self) -> &'static str {
                match self { $(Self::$kind => $name),* }
            }

            /// The name in sentences, such as "a report".
            pub fn words(self) -> &'static str {
                match self { $(Self::$kind => $words),* }
            }

            /// The command that writes it, as in "holdpoint run".
            pub(crate) fn writer(self) -> &'static str {
                match self { $(Self::$kind => $writer),* }
            }

            /// Keys that tell a file of this kind which carries no `kind`; none where all of them carry one.
            pub(crate) fn keys(self) -> &'static [&'static str] {
                match self { $(Self::$kind => &[$($key),*]),* }
            }
        }
    };
}

// Kind, name in files, name in sentences, who writes it, keys of files from before `kind`.
kinds! {
    Report "report" "a report" "holdpoint run" ["toolchain", "benchmarks"]
    Ab "ab" "a side-by-side comparison" "holdpoint ab" ["plan", "base", "head", "workloads"]
    Comparison "comparison" "a comparison" "holdpoint compare" ["checks", "verdict"]
    Calibration "calibration" "a calibration" "holdpoint calibrate" ["trials", "workloads"]
    Bisection "bisection" "a search among revisions" "holdpoint bisect" ["culprits", "steps"]
    Trend "trend" "a trend point" "holdpoint compare --trend-output" ["overall_status"]
    Profile "profile" "a profile" "holdpoint profile" ["profiles", "suite", "timestamp_utc"]
    ProfileComparison "profile_comparison" "a comparison of profiles" "holdpoint profile --against"
        ["base_timestamp_utc", "head_timestamp_utc", "kernels"]
    Sanitize "sanitize" "a sanitizer's report" "holdpoint sanitize" ["sanitized"]
    Roofline "roofline" "a roofline" "holdpoint roofline" ["ceilings", "workloads"]
    Fuzz "fuzz" "a fuzzing report" "holdpoint fuzz" ["kernels", "seed"]
    FuzzCase "fuzz_case" "a case of a fuzzing report" "holdpoint fuzz" ["case", "finding"]
    ReplayVerification "replay_verification" "a replay's verification" "holdpoint replay verify"
        ["manifest_sha256", "differences"]
    ReplayManifest "replay_manifest" "a replay manifest" "holdpoint replay record"
        ["seed", "config_sha256", "artifact_sha256", "manifest_sha256"]
    Attestation "attestation" "a release attestation" "holdpoint attest create"
        ["release_metadata", "artifacts", "gates", "summary"]
    Seal "seal" "a seal" "holdpoint gate" ["sealed_at_utc", "files", "samples_sha256"]
    SignOff "sign_off" "a sign-off" "a person" ["signed_off_by"]
    RuntimeCaps "runtime_caps" "a capability snapshot" "holdpoint doctor --format json" ["cpu", "cuda"]
    Check "check" "a check" "holdpoint check" ["correctness"]
    Tuning "tuning" "a tuning" "holdpoint tune --format json" []
    Notice "notice" "a notice" "holdpoint ci notify" []
    Baseline "baseline" "a baseline" "holdpoint baseline" []
    Changes "changes" "a list of change points" "holdpoint changes --format json" []
}
