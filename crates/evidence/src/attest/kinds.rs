//! The first seed's eight artifacts and seven gates, in its order, and where they are looked for.

/// An artifact.
pub(super) struct ArtifactKind {
    pub key: &'static str,
    pub label: &'static str,
    /// Below the artifacts folder: the seed's place first, then where holdpoint's commands write.
    pub paths: &'static [&'static str],
    pub producer: &'static str,
    /// Whether only releases for TensorRT need it.
    pub is_tensorrt: bool,
}

/// The eight.
pub(super) const ARTIFACTS: [ArtifactKind; 8] = [
    ArtifactKind {
        key: "export_manifest",
        label: "Export manifest",
        paths: &["export/apex_x_manifest.json", "replay.json"],
        producer: "holdpoint replay record, or the export of the model",
        is_tensorrt: false,
    },
    ArtifactKind {
        key: "onnx_graph",
        label: "ONNX graph",
        paths: &["export/apex_x.onnx", "model.onnx"],
        producer: "the export of the model",
        is_tensorrt: false,
    },
    ArtifactKind {
        key: "trt_engine",
        label: "TRT engine (if TRT release)",
        paths: &["trt/apex_x.engine", "model.engine"],
        producer: "TensorRT build pipeline",
        is_tensorrt: true,
    },
    ArtifactKind {
        key: "trt_plugin_versions",
        label: "TRT plugin versions (if TRT release)",
        paths: &["trt/plugin_versions.json"],
        producer: "TensorRT build pipeline",
        is_tensorrt: true,
    },
    ArtifactKind {
        key: "parity_report",
        label: "Parity report",
        paths: &["parity/parity_report.json", "check.json", "fuzz.json", "replay-verify.json"],
        producer: "holdpoint check, fuzz or replay verify, with --output",
        is_tensorrt: false,
    },
    ArtifactKind {
        key: "performance_report",
        label: "Performance report",
        paths: &["perf/perf_report.json", "report.json", "ab.json"],
        producer: "holdpoint gate or run",
        is_tensorrt: false,
    },
    ArtifactKind {
        key: "runtime_capability_snapshot",
        label: "Runtime capability snapshot",
        paths: &["runtime/caps.json", "doctor.json"],
        producer: "holdpoint doctor --format json",
        is_tensorrt: false,
    },
    ArtifactKind {
        key: "eval_report",
        label: "Eval report with runtime metadata",
        paths: &["eval/eval_report.json", "eval.json"],
        producer: "the evaluation of the model",
        is_tensorrt: false,
    },
];

/// What a verdict file may hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Form {
    Judged,
    Fuzzed,
    Replayed,
    SignedOff,
    Capabilities,
    Checked,
    Jobs,
}

impl Form {
    pub(super) fn as_str(self) -> &'static str {
        match self {
            Self::Judged => "a comparison",
            Self::Fuzzed => "a fuzzing report",
            Self::Replayed => "a replay's verification",
            Self::SignedOff => "a sign-off",
            Self::Capabilities => "a capability snapshot",
            Self::Checked => "a check",
            Self::Jobs => "jobs' results",
        }
    }
}

/// What the parity of backends is told by.
pub(super) const PARITY: &[Form] = &[Form::Checked, Form::Fuzzed, Form::Replayed];

/// A gate.
pub(super) struct GateKind {
    pub key: &'static str,
    pub label: &'static str,
    /// Verdict files below the artifacts folder; all that are there count.
    pub files: &'static [&'static str],
    /// What they may hold: anything else says nothing about it.
    pub forms: &'static [Form],
}

/// Where verdicts over times are written.
const TIMES: &[&str] = &["comparison.json", "cpu/comparison.json", "gpu/comparison.json"];
const OVER_TIMES: &[Form] = &[Form::Judged];
pub(super) const CPU_TIMES: &str = "cpu_perf_regression";
pub(super) const GPU_TIMES: &str = "gpu_perf_regression";

/// The seven.
pub(super) const GATES: [GateKind; 7] = [
    GateKind {
        key: "lint_type_tests",
        label: "Lint + typecheck + tests",
        files: &["needs.json", "signoff/lint_type_tests.json"],
        forms: &[Form::Jobs, Form::SignedOff],
    },
    GateKind { key: CPU_TIMES, label: "CPU perf regression", files: TIMES, forms: OVER_TIMES },
    GateKind { key: GPU_TIMES, label: "GPU perf regression (if GPU scope)", files: TIMES, forms: OVER_TIMES },
    GateKind {
        key: "runtime_backend_parity",
        label: "Runtime backend parity",
        files: &["parity/parity_report.json", "check.json", "fuzz.json", "replay-verify.json"],
        forms: PARITY,
    },
    GateKind {
        key: "runtime_capability_transparency",
        label: "Runtime capability transparency",
        files: &["runtime/caps.json", "doctor.json"],
        forms: &[Form::Capabilities],
    },
    GateKind {
        key: "security_review",
        label: "Security review",
        files: &["signoff/security_review.json"],
        forms: &[Form::SignedOff],
    },
    GateKind {
        key: "documentation_sync",
        label: "Documentation sync",
        files: &["signoff/documentation_sync.json"],
        forms: &[Form::SignedOff],
    },
];

/// Whether an artifact or a gate speaks about times; a release needs those sealed.
pub(super) fn is_about_times(key: &str) -> bool {
    ["performance_report", CPU_TIMES, GPU_TIMES].contains(&key)
}

/// Whether there is an artifact of this key.
#[must_use]
pub fn is_artifact(key: &str) -> bool {
    ARTIFACTS.iter().any(|kind| kind.key == key)
}

/// Whether there is a gate of this key.
#[must_use]
pub fn is_gate(key: &str) -> bool {
    GATES.iter().any(|kind| kind.key == key)
}

/// The keys of artifacts and of gates, for messages.
#[must_use]
pub fn known_keys() -> [Vec<&'static str>; 2] {
    [ARTIFACTS.iter().map(|kind| kind.key).collect(), GATES.iter().map(|kind| kind.key).collect()]
}
