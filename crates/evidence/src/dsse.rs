//! DSSE envelopes: what is signed is the payload together with what it is, so that bytes signed as one thing cannot pass for another.

use crate::keys;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use ed25519_dalek::{Signature, Signer, SigningKey, VerifyingKey};
use holdpoint_model::Envelope;
use holdpoint_model::attest::EnvelopeSignature;

/// What an in-toto statement is called.
pub const PAYLOAD_TYPE: &str = "application/vnd.in-toto+json";

/// The bytes that are signed: DSSE's pre-authentication encoding.
#[must_use]
pub fn pae(payload_type: &str, payload: &[u8]) -> Vec<u8> {
    let mut out = format!("DSSEv1 {} {payload_type} {} ", payload_type.len(), payload.len()).into_bytes();
    out.extend_from_slice(payload);
    out
}

/// Signs a payload.
#[must_use]
pub fn sign(payload: &[u8], key: &SigningKey) -> Envelope {
    sign_as(PAYLOAD_TYPE, payload, key)
}

/// Signs a payload of some type.
#[must_use]
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

/// The payload, whoever signed it.
///
/// # Errors
/// When it is not Base64.
pub fn payload(envelope: &Envelope) -> Result<Vec<u8>, String> {
    STANDARD.decode(&envelope.payload).map_err(|_| "its payload is not Base64".to_owned())
}

/// The payload, if this key has signed it.
///
/// # Errors
/// With what does not hold.
pub fn open(envelope: &Envelope, key: &VerifyingKey) -> Result<Vec<u8>, String> {
    open_as(PAYLOAD_TYPE, envelope, key)
}

/// The payload, if it is of this type and this key has signed it.
///
/// # Errors
/// With what does not hold.
pub fn open_as(payload_type: &str, envelope: &Envelope, key: &VerifyingKey) -> Result<Vec<u8>, String> {
    if envelope.payload_type != payload_type {
        return Err(format!("its payload is {:?}, not {payload_type:?}", envelope.payload_type));
    }
    let payload = payload(envelope)?;
    let keyid = keys::key_id(key);
    let own = envelope.signatures.iter().filter(|signature| signature.keyid == keyid);
    let own: Vec<&EnvelopeSignature> = own.collect();
    if own.is_empty() {
        let by: Vec<String> =
            envelope.signatures.iter().map(|s| s.keyid.chars().take(16).collect()).collect();
        let by = if by.is_empty() { "nobody".to_owned() } else { format!("key {}", by.join(", ")) };
        return Err(format!("it is signed by {by}, not by the key given, {keyid}"));
    }
    let message = pae(&envelope.payload_type, &payload);
    for signature in own {
        let bytes: Option<[u8; 64]> =
            STANDARD.decode(&signature.sig).ok().and_then(|bytes| bytes.try_into().ok());
        let signature = bytes
            .map(|bytes| Signature::from_bytes(&bytes))
            .ok_or("its signature is not 64 bytes in Base64")?;
        key.verify_strict(&message, &signature).map_err(|_| "its signature is not that of its content")?;
    }
    Ok(payload)
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

    #[test]
    fn every_bit_of_an_envelope_counts() {
        let key = SigningKey::from_bytes(&[7; 32]);
        let text = holdpoint_model::json::to_pretty(&sign(b"{\"a\":1}", &key)).unwrap();
        let opened = |bytes: &[u8]| -> Result<Vec<u8>, String> {
            let text = std::str::from_utf8(bytes).map_err(|error| error.to_string())?;
            let envelope = holdpoint_model::import::envelope(text).map_err(|error| error.to_string())?;
            open(&envelope, &key.verifying_key())
        };
        assert_eq!(opened(text.as_bytes()).unwrap(), b"{\"a\":1}");
        let mut bytes = text.trim_end().as_bytes().to_vec();
        for at in 0..bytes.len() {
            for bit in 0..8 {
                bytes[at] ^= 1 << bit;
                assert!(opened(&bytes).is_err(), "bit {bit} of byte {at}, now {:?}", char::from(bytes[at]));
                bytes[at] ^= 1 << bit;
            }
        }
    }

    #[test]
    fn another_key_another_type_and_no_signature_are_refused() {
        let key = SigningKey::from_bytes(&[7; 32]);
        let envelope = sign(b"x", &key);
        let other = SigningKey::from_bytes(&[8; 32]).verifying_key();
        assert!(open(&envelope, &other).unwrap_err().contains("not by the key given"));
        let unsigned = Envelope { signatures: Vec::new(), ..envelope.clone() };
        assert!(open(&unsigned, &key.verifying_key()).unwrap_err().contains("nobody"));
        let mut twice = envelope.clone();
        twice
            .signatures
            .push(EnvelopeSignature { sig: STANDARD.encode([0; 64]), ..envelope.signatures[0].clone() });
        assert!(open(&twice, &key.verifying_key()).is_err(), "each signature of the key must hold");
        let typed = Envelope { payload_type: "text/plain".to_owned(), ..envelope };
        assert!(open(&typed, &key.verifying_key()).unwrap_err().contains("text/plain"));
    }
}
