//! Documents as bytes: compressed, and without their samples once those were pruned.

use flate2::Compression;
use flate2::read::ZlibDecoder;
use flate2::write::ZlibEncoder;
use holdpoint_model::document::AnyDocument;
use holdpoint_model::limits::FILE_BYTES_MAX;
use holdpoint_model::{Outcome, document};
use std::io::{self, Read, Write};

/// Compresses a document. Level 3: a report shrinks to a sixth, and level 9 saves a tenth more for four times the time.
pub fn pack(text: &str) -> io::Result<Vec<u8>> {
    let mut encoder = ZlibEncoder::new(Vec::new(), Compression::new(3));
    encoder.write_all(text.as_bytes())?;
    encoder.finish()
}

/// The document again; one that would be larger than any file that is read is refused.
pub fn unpack(bytes: &[u8]) -> io::Result<String> {
    let mut text = String::new();
    ZlibDecoder::new(bytes).take(FILE_BYTES_MAX + 1).read_to_string(&mut text)?;
    if text.len() as u64 > FILE_BYTES_MAX {
        return Err(io::Error::other("the document is too large"));
    }
    Ok(text)
}

/// A packed document without its samples; one that has none stays as it is.
pub(crate) fn repack_without_samples(bytes: &[u8]) -> io::Result<Vec<u8>> {
    let text = unpack(bytes)?;
    pack(&without_samples(&text).unwrap_or(text))
}

/// A document without its samples: the summaries stay. `None` where it is not of a kind that holds samples.
pub(crate) fn without_samples(text: &str) -> Option<String> {
    match document::read_any(text).ok()? {
        AnyDocument::Report(mut report) => {
            for measurement in report.benchmarks.values_mut() {
                match &mut measurement.outcome {
                    Outcome::Measured(measured) => measured.samples.rounds.clear(),
                    Outcome::Failed(failure) => failure.samples = None,
                    Outcome::Skipped { .. } => {}
                }
            }
            serde_json::to_string(&report).ok()
        }
        AnyDocument::Ab(mut ab) => {
            for workload in ab.workloads.values_mut() {
                for unit in &mut workload.units {
                    unit.rounds.clear();
                }
            }
            serde_json::to_string(&ab).ok()
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_document_is_packed_and_unpacked() {
        let text = "{\"kind\":\"report\"} ".repeat(1_000);
        let packed = pack(&text).unwrap();
        assert!(packed.len() < text.len() / 10);
        assert_eq!(unpack(&packed).unwrap(), text);
        assert!(unpack(b"not zlib").is_err());
    }
}
