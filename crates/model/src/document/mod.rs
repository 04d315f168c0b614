//! One way to read every document. Each says what it is by its key `kind`, which its type writes (`#[serde(tag = "kind")]`), and
//! of which version by `schema_version`. Files from before `kind` are known by their keys, here and nowhere else.

mod check;
mod head;
mod summary;
#[cfg(test)]
mod tests;
mod types;

pub use crate::kind::Kind;
pub use check::{check_time, value_error};
pub use head::Head;
pub use summary::is_close;

use crate::json::{self, JsonError};
use crate::{AbReport, Bisection, Calibration, Envelope, Report, SCHEMA_VERSION, Stated};
use serde::Serialize;
use serde::de::DeserializeOwned;

/// A document that holdpoint writes.
pub trait Document: Serialize + DeserializeOwned {
    const KIND: Kind;

    /// Looks for values that have the right form and make no sense.
    fn check(&self) -> Result<(), FileError> {
        Ok(())
    }
}

/// A file that cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum FileError {
    /// Not JSON, or not of the form its kind has.
    #[error(transparent)]
    Json(#[from] JsonError),
    /// The version is not known here.
    #[error("schema_version is {found}; this holdpoint reads {SCHEMA_VERSION}{}", newer_hint(.found))]
    Version { found: String },
    /// Another document than the one wanted.
    #[error("it is {}, not {}; {} writes one", found.words(), wanted.words(), wanted.writer())]
    OtherKind { found: Kind, wanted: Kind },
    /// Nothing that is known here.
    #[error("not {wanted}: {what}")]
    Unknown {
        wanted: &'static str,
        /// The kind that it looks like, or the keys that it lacks.
        what: String,
    },
    /// A value that makes no sense.
    #[error("{place}: {what}")]
    Value { place: String, what: String },
}

fn newer_hint(found: &str) -> &'static str {
    match found.parse::<u32>() {
        Ok(version) if version > SCHEMA_VERSION => "; it was written by a newer one: update holdpoint",
        _ => "",
    }
}

/// Reads a document of one kind.
pub fn read<T: Document>(text: &str) -> Result<T, FileError> {
    let head = Head::parse(text)?;
    head.check_version()?;
    match head.kind() {
        Some(found) if found == T::KIND => {}
        Some(found) => return Err(FileError::OtherKind { found, wanted: T::KIND }),
        None => return Err(FileError::Unknown { wanted: T::KIND.words(), what: head.describe() }),
    }
    let document: T = json::parse(text)?;
    document.check()?;
    Ok(document)
}

/// The kind of a document; absent for a foreign one.
pub fn kind(text: &str) -> Result<Option<Kind>, FileError> {
    let head = Head::parse(text)?;
    head.check_version()?;
    Ok(head.kind())
}

/// A document that can be shown again.
#[derive(Debug)]
pub enum AnyDocument {
    Report(Box<Report>),
    Ab(Box<AbReport>),
    /// A run against its baseline, judged.
    Comparison(Box<Stated>),
    Calibration(Box<Calibration>),
    Bisection(Box<Bisection>),
}

/// Reads whichever of them it is.
pub fn read_any(text: &str) -> Result<AnyDocument, FileError> {
    Ok(match kind(text)? {
        Some(Kind::Ab) => AnyDocument::Ab(Box::new(read(text)?)),
        Some(Kind::Comparison) => AnyDocument::Comparison(Box::new(read(text)?)),
        Some(Kind::Calibration) => AnyDocument::Calibration(Box::new(read(text)?)),
        Some(Kind::Bisection) => AnyDocument::Bisection(Box::new(read(text)?)),
        _ => AnyDocument::Report(Box::new(read(text)?)),
    })
}

/// Reads a DSSE envelope, or the one in a bundle of sigstore's, as cosign writes it. Who signed it is not looked at here. Its keys
/// are DSSE's, so it carries no `kind`: `payloadType` says what is in it.
pub fn read_envelope(text: &str) -> Result<Envelope, FileError> {
    #[derive(serde::Deserialize)]
    struct Bundle {
        #[serde(rename = "dsseEnvelope")]
        envelope: Envelope,
    }
    let head = Head::parse(text)?;
    match () {
        () if head.has("dsseEnvelope") => Ok(json::parse::<Bundle>(text)?.envelope),
        () if ["payload", "payloadType", "signatures"].iter().all(|key| head.has(key)) => {
            Ok(json::parse(text)?)
        }
        () => Err(FileError::Unknown { wanted: "a DSSE envelope", what: head.describe() }),
    }
}
