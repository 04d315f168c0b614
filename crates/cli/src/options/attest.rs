//! Flags of `attest` and `checklist`.

use super::values::{self, Words};
use clap::Subcommand;
use holdpoint_flow::attest::release::{ReleaseRequest, VerificationRequest};
use holdpoint_flow::attest::{AttestRequest, AttestationRequest};
use holdpoint_flow::checklist::ChecklistRequest;
use holdpoint_model::attest::RuntimeTarget;
use std::path::PathBuf;

/// `holdpoint attest`.
#[derive(Debug, clap::Args)]
pub struct AttestArgs {
    #[command(subcommand)]
    pub command: AttestCommand,
}

#[derive(Debug, Subcommand)]
pub enum AttestCommand {
    /// Make a pair of Ed25519 keys; only its owner can read the private one
    Keygen {
        /// Where to write the private key; nothing is ever overwritten
        #[arg(long, value_name = "FILE", default_value = "holdpoint.key")]
        key: PathBuf,
        /// Where to write the public key [default: the same name, ending in .pub]
        #[arg(long, value_name = "FILE")]
        public_key: Option<PathBuf>,
    },
    /// Write an attestation from the artifacts and verdicts in a folder
    Create(AttestCreateArgs),
    /// Sign an attestation: an in-toto statement in a DSSE envelope
    Sign {
        /// The attestation
        #[arg(value_name = "FILE", default_value = ATTESTATION)]
        attestation: PathBuf,
        /// Folder with the files it names; nothing is signed unless they verify
        #[arg(long, value_name = "DIR", default_value = "artifacts")]
        artifacts: PathBuf,
        /// The folder of the files that are released
        #[arg(long, value_name = "DIR", default_value = ".")]
        release_dir: PathBuf,
        /// The private key [default: the variable HOLDPOINT_SIGNING_KEY]
        #[arg(long, value_name = "FILE")]
        key: Option<PathBuf>,
        /// Where to write the envelope [default: beside it, ending in .dsse.json]
        #[arg(long, short, value_name = "FILE")]
        output: Option<PathBuf>,
    },
    /// Verify an envelope against a public key, the files it names and the release policy
    Verify {
        /// The envelope, or an attestation that is not signed
        #[arg(value_name = "FILE", default_value = ENVELOPE)]
        file: PathBuf,
        /// The release that the attestation is judged for.
        #[command(flatten)]
        against: VerifyArgs,
    },
    /// Show an envelope or an attestation; nothing is checked
    Show {
        /// The file
        #[arg(value_name = "FILE", default_value = ATTESTATION)]
        file: PathBuf,
    },
}

/// The release that an attestation is judged for.
#[derive(Debug, clap::Args)]
pub struct VerifyArgs {
    /// Folder with the files it names
    #[arg(long, value_name = "DIR", default_value = "artifacts")]
    pub artifacts: PathBuf,
    /// The public key that it must be signed with [default: the variable HOLDPOINT_PUBLIC_KEY]
    #[arg(long, value_name = "FILE")]
    pub public_key: Option<PathBuf>,
    /// The commit it must be for [default: the one that is checked out]
    #[arg(long, value_name = "SHA")]
    pub commit_sha: Option<String>,
    /// Id of a key that may seal measurements, besides the policy's; may be given several times
    #[arg(long, value_name = "ID")]
    pub seal_keyid: Vec<String>,
    /// Released files and the release policy.
    #[command(flatten)]
    pub release: ReleaseArgs,
}

/// Released files and the release policy.
#[derive(Debug, clap::Args)]
pub struct ReleaseArgs {
    /// The release policy [default: nothing may be missing]
    #[arg(long, value_name = "FILE")]
    pub policy: Option<PathBuf>,
    /// The folder of the files that are released
    #[arg(long, value_name = "DIR", default_value = ".")]
    pub release_dir: PathBuf,
}

/// Where attestations lie if nothing else is said.
const ATTESTATION: &str = "artifacts/release/release_attestation.json";
/// Help of `attest create --policy`.
const DRAFT: &str = "The release policy; exits with 5 where it is not met, and writes the files all the same [default: none, the attestation is a draft]";
/// And envelopes.
const ENVELOPE: &str = "artifacts/release/release_attestation.dsse.json";

/// `holdpoint attest create`.
#[derive(Debug, clap::Args)]
#[command(mut_arg("policy", |policy| policy.help(DRAFT)))]
pub struct AttestCreateArgs {
    /// The folder with artifacts and verdict files
    #[arg(long, value_name = "DIR", default_value = "artifacts")]
    pub artifacts: PathBuf,
    /// The tag [default: the one that CI builds, else "unversioned"]
    #[arg(long, value_name = "TAG")]
    pub release_tag: Option<String>,
    /// The commit [default: CI's, else HEAD]
    #[arg(long, value_name = "SHA")]
    pub commit_sha: Option<String>,
    /// Owner of the release [default: the user who started the CI run]
    #[arg(long, value_name = "NAME")]
    pub release_owner: Option<String>,
    /// Runtime of the release
    #[arg(long, value_parser = values::word(TARGETS), value_name = "TARGET", default_value = "cpu")]
    pub runtime_target: RuntimeTarget,
    /// The CI run [default: this one]
    #[arg(long, value_name = "URL")]
    pub ci_run_url: Option<String>,
    /// An artifact that lies elsewhere in the folder; may be given several times
    #[arg(long, value_name = "KEY=PATH")]
    pub artifact_path: Vec<String>,
    /// A verdict file for a gate, beside those that are found by name; may be given several times
    #[arg(long, value_name = "KEY=PATH")]
    pub gate_evidence: Vec<String>,
    /// An artifact or gate that this project does not have, and why; may be given several times
    #[arg(long, value_name = "KEY=REASON")]
    pub without: Vec<String>,
    /// Where to write the attestation [default: release/release_attestation.json in the folder]
    #[arg(long, value_name = "FILE")]
    pub output_json: Option<PathBuf>,
    /// Where to write it as Markdown [default: beside it, ending in .md]
    #[arg(long, value_name = "FILE")]
    pub output_md: Option<PathBuf>,
    /// A file that is released, below the release folder; may be given several times
    #[arg(long, value_name = "PATH")]
    pub release_file: Vec<String>,
    /// Released files and the release policy.
    #[command(flatten)]
    pub release: ReleaseArgs,
}

const TARGETS: Words<RuntimeTarget> = &[
    ("cpu", "The CPU", RuntimeTarget::Cpu),
    ("torch", "PyTorch", RuntimeTarget::Torch),
    ("triton", "Triton", RuntimeTarget::Triton),
    ("tensorrt", "TensorRT", RuntimeTarget::Tensorrt),
];

/// `holdpoint checklist`.
#[derive(Debug, clap::Args)]
pub struct ChecklistArgs {
    /// The checklist
    #[arg(value_name = "FILE", default_value = "CHECKLIST.md")]
    pub file: PathBuf,
    /// The attestation or envelope to fill it from; it must verify
    #[arg(long, value_name = "FILE", default_value = ATTESTATION)]
    pub attestation: PathBuf,
    /// The release that the attestation is judged for.
    #[command(flatten)]
    pub against: VerifyArgs,
    /// If there is no checklist, create one with all five sections first
    #[arg(long)]
    pub init: bool,
}

requests! {
    ReleaseArgs => ReleaseRequest { policy, release_dir }
    VerifyArgs => VerificationRequest { artifacts, public_key, commit_sha, seal_keyid, release }
    AttestCreateArgs => AttestationRequest {
        artifacts, release_tag, commit_sha, release_owner, runtime_target, ci_run_url, artifact_path, gate_evidence,
        without, output_json, output_md, release_file, release,
    }
    ChecklistArgs => ChecklistRequest { file, attestation, against, init }
}

impl From<AttestArgs> for AttestRequest {
    fn from(args: AttestArgs) -> Self {
        match args.command {
            AttestCommand::Keygen { key, public_key } => Self::Keygen { key, public_key },
            AttestCommand::Create(args) => Self::Create(args.into()),
            AttestCommand::Sign { attestation, artifacts, release_dir, key, output } => {
                Self::Sign { attestation, artifacts, release_dir, key, output }
            }
            AttestCommand::Verify { file, against } => Self::Verify { file, against: against.into() },
            AttestCommand::Show { file } => Self::Show { file },
        }
    }
}
