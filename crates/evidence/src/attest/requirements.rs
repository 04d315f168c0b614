//! The artifacts and gates of a release, read from a file: Apex-X's eight and seven are `data/apex-x.toml`.

use holdpoint_model::Kind;
use holdpoint_model::attest::RuntimeTarget;
use serde::Deserialize;
use std::sync::LazyLock;

const APEX_X: &str = include_str!("../../data/apex-x.toml");

pub(super) static REQUIREMENTS: LazyLock<Requirements> = LazyLock::new(|| {
    // A test reads the file, so this cannot fail in a binary that was tested.
    toml::from_str(APEX_X).expect("the file is of its form")
});

/// Artifacts and gates, in their order.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Requirements {
    #[serde(rename = "artifact")]
    pub artifacts: Vec<ArtifactKind>,
    #[serde(rename = "gate")]
    pub gates: Vec<GateKind>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ArtifactKind {
    pub key: String,
    pub label: String,
    /// Below the artifacts folder; the first that is there counts.
    pub paths: Vec<String>,
    pub producer: String,
    pub content: Content,
    #[serde(default)]
    pub takes: Vec<Form>,
    /// The only target whose releases need it.
    pub only_for: Option<RuntimeTarget>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Content {
    Onnx,
    Bytes,
    Json,
    Manifest,
    Report,
    Verdict,
}

/// The content that a verdict file may have.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Form {
    /// Results of a pipeline's jobs: GitHub's file, not ours.
    Jobs,
    #[serde(untagged)]
    Document(Kind),
}

impl Form {
    pub(super) fn words(self) -> &'static str {
        match self {
            Self::Jobs => "jobs' results",
            Self::Document(kind) => kind.words(),
        }
    }
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct GateKind {
    pub key: String,
    pub label: String,
    /// Verdict files below the artifacts folder; all that are there count.
    pub files: Vec<String>,
    /// The content that its files may have.
    pub takes: Vec<Form>,
    /// The processor whose times it is about, where it is about times.
    pub times: Option<TimesOf>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum TimesOf {
    Cpu,
    Gpu,
}

impl Requirements {
    /// The gates that are about times.
    pub(super) fn times_gates(&self) -> impl Iterator<Item = &GateKind> {
        self.gates.iter().filter(|gate| gate.times.is_some())
    }

    /// Whether an artifact or a gate is about times; a release needs those sealed.
    pub(super) fn is_about_times(&self, key: &str) -> bool {
        let mut reports = self.artifacts.iter().filter(|artifact| artifact.content == Content::Report);
        reports.any(|artifact| artifact.key == key) || self.times_gates().any(|gate| gate.key == key)
    }
}

/// The keys of artifacts and of gates.
pub fn known_keys() -> [Vec<&'static str>; 2] {
    let Requirements { artifacts, gates } = &*REQUIREMENTS;
    let artifacts = artifacts.iter().map(|kind| kind.key.as_str());
    [artifacts.collect(), gates.iter().map(|kind| kind.key.as_str()).collect()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn apex_x_has_eight_artifacts_and_seven_gates_each_with_its_files() {
        let Requirements { artifacts, gates } = &*REQUIREMENTS;
        assert_eq!((artifacts.len(), gates.len()), (8, 7));
        for artifact in artifacts {
            assert!(!artifact.paths.is_empty(), "{}", artifact.key);
            assert_eq!(artifact.takes.is_empty(), artifact.content != Content::Verdict, "{}", artifact.key);
        }
        assert!(gates.iter().all(|gate| !gate.files.is_empty() && !gate.takes.is_empty()));
        let times: Vec<Option<TimesOf>> = REQUIREMENTS.times_gates().map(|gate| gate.times).collect();
        assert_eq!(times, [Some(TimesOf::Cpu), Some(TimesOf::Gpu)]);
    }
}
