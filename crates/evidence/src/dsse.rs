//! DSSE envelopes: the payload is signed together with its type, so that bytes signed as one thing cannot pass for another.

use crate::Problem;
use crate::keys::{self, PublicKey};
use base64::alphabet;
use base64::engine::general_purpose::{GeneralPurpose, GeneralPurposeConfig, STANDARD};
use base64::engine::{DecodePaddingMode, Engine};
use ed25519_dalek::{Signer, SigningKey};
use holdpoint_model::Envelope;
use holdpoint_model::attest::EnvelopeSignature;
use holdpoint_model::limits::clean_text;

/// The payload type of an in-toto statement.
pub const PAYLOAD_TYPE: &str = "application/vnd.in-toto+json";

/// The bytes that are signed: DSSE's pre-authentication encoding.
pub(crate) fn pae(payload_type: &str, payload: &[u8]) -> Vec<u8> {
    let mut out = format!("DSSEv1 {} {payload_type} {} ", payload_type.len(), payload.len()).into_bytes();
    out.extend_from_slice(payload);
    out
}

pub fn sign(payload: &[u8], key: &SigningKey) -> Envelope {
    sign_as(PAYLOAD_TYPE, payload, key)
}

pub fn sign_as(payload_type: &str, payload: &[u8], key: &SigningKey) -> Envelope {
    let signature = key.sign(&pae(payload_type, payload));
    Envelope {
        payload: STANDARD.encode(payload),
        payload_type: payload_type.to_owned(),
        signatures: vec![EnvelopeSignature {
            keyid: keys::key_id(&key.verifying_key()),
            sig: STANDARD.encode(signature.to_bytes()),
        }],
    }
}

/// Both alphabets of Base64, with and without padding: a reader must take them all, says the specification.
fn decode(text: &str) -> Option<Vec<u8>> {
    let is_url_safe = text.contains(['-', '_']);
    let alphabet = if is_url_safe { alphabet::URL_SAFE } else { alphabet::STANDARD };
    let config = GeneralPurposeConfig::new().with_decode_padding_mode(DecodePaddingMode::Indifferent);
    GeneralPurpose::new(&alphabet, config).decode(text).ok()
}

/// The payload, whoever signed it.
///
/// # Errors
/// When it is not Base64.
pub fn payload(envelope: &Envelope) -> Result<Vec<u8>, Problem> {
    decode(&envelope.payload).ok_or_else(|| "its payload is not Base64".into())
}

/// The payload, if this key has signed it. One signature of the key is enough, whoever else has signed and whatever its name: a
/// `keyid` is an unverified hint.
pub fn open(envelope: &Envelope, key: &PublicKey) -> Result<Vec<u8>, Problem> {
    open_as(PAYLOAD_TYPE, envelope, key)
}

/// The payload, if it is of this type and this key has signed it.
pub(crate) fn open_as(payload_type: &str, envelope: &Envelope, key: &PublicKey) -> Result<Vec<u8>, Problem> {
    if envelope.payload_type != payload_type {
        let what = format!("its payload is {:?}, not {payload_type:?}", envelope.payload_type);
        return Err(what.into());
    }
    let payload = payload(envelope)?;
    let message = pae(&envelope.payload_type, &payload);
    let is_by_key = |signature: &EnvelopeSignature| {
        decode(&signature.sig).is_some_and(|bytes| key.has_signed(&message, &bytes))
    };
    if envelope.signatures.iter().any(is_by_key) {
        return Ok(payload);
    }
    Err(describe_signers(envelope, &key.key_id()).into())
}

/// Why no signature is the key's, as far as the hints show.
fn describe_signers(envelope: &Envelope, keyid: &str) -> String {
    if envelope.signatures.is_empty() {
        return "it has no signature".to_owned();
    }
    if envelope.signatures.iter().any(|signature| signature.keyid == keyid) {
        return format!("its signature by {keyid} is not one of its content: it was edited");
    }
    let hint = |signature: &EnvelopeSignature| match signature.keyid.as_str() {
        "" => "a key without a name".to_owned(),
        keyid => keyid.chars().take(16).collect(),
    };
    let signers: Vec<String> = envelope.signatures.iter().map(hint).collect();
    clean_text(&format!("it is signed by {}, not by the key given, {keyid}", signers.join(", ")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_encoding_is_that_of_the_specification() {
        assert_eq!(
            pae("http://example.com/HelloWorld", b"hello world"),
            b"DSSEv1 29 http://example.com/HelloWorld 11 hello world"
        );
        assert_eq!(pae("", b""), b"DSSEv1 0  0 ");
    }

    fn key() -> SigningKey {
        SigningKey::from_bytes(&[7; 32])
    }

    fn opened(envelope: &Envelope) -> Result<Vec<u8>, String> {
        open(envelope, &key().verifying_key().into()).map_err(|problem| problem.to_string())
    }

    #[test]
    fn every_bit_of_payload_type_and_signature_counts() {
        let envelope = sign(b"{\"a\":1}", &key());
        assert_eq!(opened(&envelope).unwrap(), b"{\"a\":1}");
        let places: [fn(&mut Envelope) -> &mut String; 3] =
            [|e| &mut e.payload, |e| &mut e.payload_type, |e| &mut e.signatures[0].sig];
        for place in places {
            let count = place(&mut envelope.clone()).len();
            for (at, bit) in (0..count).flat_map(|at| (0..7).map(move |bit| (at, bit))) {
                let mut edited = envelope.clone();
                let mut bytes = std::mem::take(place(&mut edited)).into_bytes();
                // Padding may be left out, but nothing else may stand there.
                bytes[at] ^= 1 << bit;
                *place(&mut edited) = String::from_utf8(bytes).unwrap();
                assert!(opened(&edited).is_err(), "bit {bit} of byte {at}: {edited:?}");
            }
        }
    }

    #[test]
    fn a_key_is_found_by_its_signature_and_not_by_its_name() {
        let envelope = sign(b"x", &key());
        for keyid in ["", "foreign", &keys::key_id(&SigningKey::from_bytes(&[8; 32]).verifying_key())] {
            let mut renamed = envelope.clone();
            renamed.signatures[0].keyid = keyid.to_owned();
            assert_eq!(opened(&renamed).unwrap(), b"x", "{keyid:?}");
        }
        let mut several = envelope.clone();
        let garbage = |sig: &str| EnvelopeSignature { keyid: String::new(), sig: sig.to_owned() };
        several.signatures.splice(
            0..0,
            [garbage("?"), garbage(""), sign(b"x", &SigningKey::from_bytes(&[8; 32])).signatures.remove(0)],
        );
        assert_eq!(opened(&several).unwrap(), b"x");
        several.signatures.pop();
        assert!(opened(&several).unwrap_err().contains("not by the key given"));
    }

    #[test]
    fn both_alphabets_are_read_with_and_without_padding() {
        // Bytes whose Base64 has characters that the alphabets spell differently.
        let payload = [0xfb, 0xef, 0xff, 0xfe];
        let envelope = sign(&payload, &key());
        assert!(envelope.payload.contains('+') && envelope.payload.ends_with('='));
        let url_safe = |text: &str| text.replace('+', "-").replace('/', "_");
        let bare = |text: &str| text.trim_end_matches('=').to_owned();
        let edits: [&dyn Fn(&str) -> String; 3] = [&url_safe, &bare, &|text| bare(&url_safe(text))];
        for edit in edits {
            let mut other = envelope.clone();
            other.payload = edit(&other.payload);
            other.signatures[0].sig = edit(&other.signatures[0].sig);
            assert_eq!(opened(&other).unwrap(), payload);
        }
        let mixed = Envelope { payload: format!("-{}", &envelope.payload[1..]), ..envelope };
        assert!(
            mixed.payload.contains('/') && opened(&mixed).unwrap_err().contains("not Base64"),
            "{mixed:?}"
        );
    }

    #[test]
    fn another_key_another_type_and_no_signature_are_refused() {
        let envelope = sign(b"x", &key());
        let other = SigningKey::from_bytes(&[8; 32]).verifying_key().into();
        assert!(open(&envelope, &other).unwrap_err().to_string().contains("not by the key given"));
        let unsigned = Envelope { signatures: Vec::new(), ..envelope.clone() };
        assert!(opened(&unsigned).unwrap_err().contains("no signature"));
        let edited = Envelope { payload: STANDARD.encode("y"), ..envelope.clone() };
        assert!(opened(&edited).unwrap_err().contains("it was edited"));
        let typed = Envelope { payload_type: "text/plain".to_owned(), ..envelope };
        assert!(opened(&typed).unwrap_err().contains("text/plain"));
    }
}
