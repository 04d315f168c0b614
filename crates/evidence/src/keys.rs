//! Keys as PEM: PKCS#8 for the private one, SubjectPublicKeyInfo for the public one, as `openssl genpkey -algorithm ed25519` writes
//! them. In the environment a key may also stand as the Base64 between the two lines alone. We sign with Ed25519; signatures of
//! ECDSA P-256, the default of cosign, are verified too.

use crate::{EvidenceError, hash};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use ed25519_dalek::{Signature, SigningKey, VerifyingKey};
use ring::signature::{ECDSA_P256_SHA256_ASN1, UnparsedPublicKey};
use sha2::{Digest, Sha512};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

/// Holds the private key.
pub const PRIVATE_VARIABLE: &str = "HOLDPOINT_SIGNING_KEY";
/// Holds the key that seals measurements.
pub const SEAL_VARIABLE: &str = "HOLDPOINT_SEAL_KEY";
/// Holds the public key.
pub const PUBLIC_VARIABLE: &str = "HOLDPOINT_PUBLIC_KEY";

/// All of a PKCS#8 document of version 1 but the 32 bytes of the key (RFC 8410).
const PRIVATE_PREFIX: [u8; 16] =
    [0x30, 0x2e, 0x02, 0x01, 0x00, 0x30, 0x05, 0x06, 0x03, 0x2b, 0x65, 0x70, 0x04, 0x22, 0x04, 0x20];
/// The same of a SubjectPublicKeyInfo.
const PUBLIC_PREFIX: [u8; 12] = [0x30, 0x2a, 0x30, 0x05, 0x06, 0x03, 0x2b, 0x65, 0x70, 0x03, 0x21, 0x00];
/// The same of a key of the curve P-256, before the 65 bytes of its uncompressed point (RFC 5480).
const P256_PREFIX: [u8; 26] = [
    0x30, 0x59, 0x30, 0x13, 0x06, 0x07, 0x2a, 0x86, 0x48, 0xce, 0x3d, 0x02, 0x01, 0x06, 0x08, 0x2a, 0x86,
    0x48, 0xce, 0x3d, 0x03, 0x01, 0x07, 0x03, 0x42, 0x00,
];
/// Characters of Base64 in a line of PEM (RFC 7468).
const PEM_LINE_CHARS: usize = 64;

/// The permissions that a key file must not have.
#[derive(Clone, Copy)]
struct Mode {
    refused: u32,
    deed: &'static str,
    remedy: &'static str,
}

const PRIVATE_MODE: Mode = Mode { refused: 0o077, deed: "read or change", remedy: "chmod 600" };
/// A group may share a work tree, and with it a public key.
const PUBLIC_MODE: Mode = Mode { refused: 0o002, deed: "change", remedy: "chmod o-w" };

const PRIVATE_LABEL: &str = "PRIVATE KEY";
const PUBLIC_LABEL: &str = "PUBLIC KEY";

pub fn generate() -> Result<SigningKey, EvidenceError> {
    let mut seed = [0; 32];
    getrandom::fill(&mut seed).map_err(|error| EvidenceError::Random(error.to_string()))?;
    Ok(SigningKey::from_bytes(&seed))
}

/// Writes a pair of keys to new files; only the owner can read the private one.
pub fn write_pair(key: &SigningKey, private: &Path, public: &Path) -> Result<(), EvidenceError> {
    holdpoint_store::write_new(public, &public_pem(&key.verifying_key()), 0o644)?;
    if let Err(error) = holdpoint_store::write_new(private, &private_pem(key), 0o600) {
        // A public key whose private one does not exist is of no use.
        holdpoint_store::remove(public)?;
        return Err(error.into());
    }
    Ok(())
}

/// A public key that signatures are verified with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PublicKey {
    Ed25519(VerifyingKey),
    /// ECDSA over P-256 with SHA-256: its uncompressed point.
    P256([u8; 65]),
}

impl From<VerifyingKey> for PublicKey {
    fn from(key: VerifyingKey) -> Self {
        Self::Ed25519(key)
    }
}

impl PublicKey {
    /// Whether this key has signed the message. A signature of ECDSA is in DER; one of Ed25519 may be of the message, as ours are, or of
    /// its SHA-512 (Ed25519ph), as those of cosign 3.
    pub(crate) fn has_signed(&self, message: &[u8], signature: &[u8]) -> bool {
        match self {
            Self::Ed25519(key) => Signature::from_slice(signature).is_ok_and(|signature| {
                let hashed = Sha512::new_with_prefix(message);
                key.verify_strict(message, &signature).is_ok()
                    || key.verify_prehashed_strict(hashed, None, &signature).is_ok()
            }),
            Self::P256(point) => {
                let key = UnparsedPublicKey::new(&ECDSA_P256_SHA256_ASN1, point);
                key.verify(message, signature).is_ok()
            }
        }
    }

    /// The key's name, as securesystemslib computes it: SHA-256 of its description in canonical JSON.
    pub fn key_id(&self) -> String {
        let (kind, scheme, public) = match self {
            Self::Ed25519(key) => ("ed25519", "ed25519", hash::hex(key.as_bytes())),
            Self::P256(point) => ("ecdsa", "ecdsa-sha2-nistp256", pem(PUBLIC_LABEL, &P256_PREFIX, point)),
        };
        // That form of JSON escapes quotes and backslashes only; there are none in these texts, and line ends stay as they are.
        let described =
            format!(r#"{{"keytype":"{kind}","keyval":{{"public":"{public}"}},"scheme":"{scheme}"}}"#);
        hash::bytes(described.as_bytes())
    }
}

/// The name of a key that we sign with.
pub fn key_id(key: &VerifyingKey) -> String {
    PublicKey::Ed25519(*key).key_id()
}

/// The private key from a file, or from [`PRIVATE_VARIABLE`]'s value.
pub fn private(file: Option<&Path>, variable: Option<&str>) -> Result<SigningKey, EvidenceError> {
    let (place, text) = source(file, variable, PRIVATE_VARIABLE, "--key FILE", PRIVATE_MODE)?;
    read_private(place, &text)
}

/// The key that seals measurements, from a file or from [`SEAL_VARIABLE`]'s value; absent where neither is given.
pub fn seal(file: Option<&Path>, variable: Option<&str>) -> Result<Option<SigningKey>, EvidenceError> {
    if file.is_none() && variable.is_none() {
        return Ok(None);
    }
    let (place, text) = source(file, variable, SEAL_VARIABLE, "--seal-key FILE", PRIVATE_MODE)?;
    read_private(place, &text).map(Some)
}

fn read_private(place: String, text: &str) -> Result<SigningKey, EvidenceError> {
    let der = read_der(&place, text, PRIVATE_LABEL)?;
    strip(&der, &PRIVATE_PREFIX)
        .map(|bytes| SigningKey::from_bytes(&bytes))
        .ok_or_else(|| EvidenceError::Key { place, what: "not an Ed25519 private key".to_owned() })
}

/// The public key from a file, or from [`PUBLIC_VARIABLE`]'s value.
pub fn public(file: Option<&Path>, variable: Option<&str>) -> Result<PublicKey, EvidenceError> {
    let (place, text) = source(file, variable, PUBLIC_VARIABLE, "--public-key FILE", PUBLIC_MODE)?;
    let der = read_der(&place, &text, PUBLIC_LABEL)?;
    let ed25519 = || VerifyingKey::from_bytes(&strip(&der, &PUBLIC_PREFIX)?).ok();
    let p256 = || strip(&der, &P256_PREFIX).filter(|point: &[u8; 65]| point[0] == 0x04);
    ed25519()
        .map(PublicKey::Ed25519)
        .or_else(|| p256().map(PublicKey::P256))
        .ok_or_else(|| EvidenceError::Key { place, what: "not an Ed25519 or P-256 public key".to_owned() })
}

fn strip<const N: usize>(der: &[u8], prefix: &[u8]) -> Option<[u8; N]> {
    der.strip_prefix(prefix)?.try_into().ok()
}

fn source(
    file: Option<&Path>,
    variable: Option<&str>,
    name: &str,
    flag: &str,
    mode: Mode,
) -> Result<(String, String), EvidenceError> {
    let (place, text) = match (file, variable) {
        (Some(file), _) => {
            mode.check(file)?;
            (file.display().to_string(), holdpoint_store::read_text(file)?)
        }
        (None, Some(text)) => (name.to_owned(), text.to_owned()),
        (None, None) => {
            let what = format!("give {flag}, or set {name}; \"holdpoint attest keygen\" makes a pair");
            return Err(EvidenceError::Key { place: "no key".to_owned(), what });
        }
    };
    // A secret that CI does not have comes as an empty variable: that is a mistake, not a wish for no key.
    if text.trim().is_empty() {
        let what = format!("it is empty; give {flag}, or set {name} to a key");
        return Err(EvidenceError::Key { place, what });
    }
    Ok((place, text))
}

impl Mode {
    /// Refuses a key file that is open to others. A missing one is left to the reader's error.
    fn check(self, file: &Path) -> Result<(), EvidenceError> {
        let mode = std::fs::metadata(file).map_or(0, |metadata| metadata.permissions().mode());
        if mode & self.refused == 0 {
            return Ok(());
        }
        let (place, mode, remedy) = (file.display().to_string(), mode & 0o777, self.remedy);
        let what = format!("others may {} it (mode {mode:04o}); run \"{remedy} {place}\"", self.deed);
        Err(EvidenceError::Key { place, what })
    }
}

/// The DER between the two lines. Nothing of the text is ever part of an error.
fn read_der(place: &str, text: &str, label: &str) -> Result<Vec<u8>, EvidenceError> {
    let problem = |what: &str| EvidenceError::Key { place: place.to_owned(), what: what.to_owned() };
    let (begin, end) = (format!("-----BEGIN {label}-----"), format!("-----END {label}-----"));
    // Some CI systems hand line ends over as two characters.
    let text = text.replace("\\n", "\n");
    let body = match text.trim().strip_prefix(&begin) {
        Some(rest) => {
            rest.trim_end().strip_suffix(&end).ok_or_else(|| problem("its last line is missing"))?
        }
        None if text.contains("-----BEGIN") => {
            return Err(problem(&format!("not a {} in PEM", label.to_lowercase())));
        }
        None => text.trim(),
    };
    let body: String = body.split_whitespace().collect();
    STANDARD.decode(body).map_err(|_| problem("not Base64"))
}

pub(crate) fn private_pem(key: &SigningKey) -> String {
    pem(PRIVATE_LABEL, &PRIVATE_PREFIX, &key.to_bytes())
}

pub(crate) fn public_pem(key: &VerifyingKey) -> String {
    pem(PUBLIC_LABEL, &PUBLIC_PREFIX, key.as_bytes())
}

fn pem(label: &str, prefix: &[u8], key: &[u8]) -> String {
    let body = STANDARD.encode([prefix, key].concat());
    let lines = body.as_bytes().chunks(PEM_LINE_CHARS).map(String::from_utf8_lossy);
    let body: String = lines.map(|line| format!("{line}\n")).collect();
    format!("-----BEGIN {label}-----\n{body}-----END {label}-----\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The key pair of RFC 8410, section 10.
    const RFC_PRIVATE: &str = "-----BEGIN PRIVATE KEY-----\nMC4CAQAwBQYDK2VwBCIEINTuctv5E1hK1bbY8fdp+K06/nwoy/HU++CXqI9EdVhC\n-----END PRIVATE KEY-----\n";
    const RFC_PUBLIC: &str = "-----BEGIN PUBLIC KEY-----\nMCowBQYDK2VwAyEAGb9ECWmEzf6FQbrBZ9w7lshQhqowtrbLDFw4rXAxZuE=\n-----END PUBLIC KEY-----\n";

    #[test]
    fn the_keys_of_the_standard_belong_together_and_are_written_the_same() {
        let key = private(None, Some(RFC_PRIVATE)).unwrap();
        assert_eq!(private_pem(&key), RFC_PRIVATE);
        assert_eq!(public_pem(&key.verifying_key()), RFC_PUBLIC);
        assert_eq!(public(None, Some(RFC_PUBLIC)).unwrap(), key.verifying_key().into());
    }

    /// The point of the private key 7, as cryptography 50.0.2 writes it.
    const P256_PUBLIC: &str = "-----BEGIN PUBLIC KEY-----\nMFkwEwYHKoZIzj0CAQYIKoZIzj0DAQcDQgAEjlM7b6C/e0YluzBmfAH7YH75+Lio\nD+9bMAYocDGHsqNz6x294DMYNm0Gn4Om9ZAAU8c2M8sEGyHFXhqGwfQAtA==\n-----END PUBLIC KEY-----\n";

    #[test]
    fn key_ids_are_those_of_securesystemslib() {
        let id = |text| public(None, Some(text)).unwrap().key_id();
        // SSlibKey.from_crypto(load_pem_public_key(…)).keyid of securesystemslib 1.6.0.
        assert_eq!(id(RFC_PUBLIC), "946bbfb4fd58b1aeac3ddb00f68fd8c8dea7e9a84e6c149b1c10b36b707c38fd");
        assert_eq!(id(P256_PUBLIC), "2b295981fe4f7f65f7ea622bc720720aff3da878049ac8fcfd4635fb10c7e7b1");
    }

    #[test]
    fn a_signature_of_p256_is_verified() {
        let key = public(None, Some(P256_PUBLIC)).unwrap();
        let message = b"DSSEv1 28 application/vnd.in-toto+json 7 {\"a\":1}";
        // securesystemslib 1.6.0, with the private key 7.
        let sig = "MEYCIQDpEbVWzsLsTJ7mbOPgNWAs75Y5ttfxDf5z5ZrcR1vH9QIhAOgVWp04MbXk7tSnWbQpVNyCFwHndhAkZ4FUARu3JI8Q";
        let mut sig = STANDARD.decode(sig).unwrap();
        assert!(key.has_signed(message, &sig));
        assert!(!key.has_signed(b"another", &sig));
        sig[10] ^= 1;
        assert!(!key.has_signed(message, &sig));
    }

    #[test]
    fn an_empty_key_is_an_error_and_not_no_key() {
        let dir = tempfile::tempdir().unwrap();
        let empty = dir.path().join("empty.pub");
        std::fs::write(&empty, "\n").unwrap();
        for (file, variable) in
            [(None, Some("")), (None, Some(" \n")), (Some(empty.as_path()), Some(RFC_PUBLIC))]
        {
            let error = public(file, variable).unwrap_err().to_string();
            assert!(error.contains("it is empty"), "{error}");
        }
    }

    #[test]
    fn one_line_and_escaped_line_ends_are_read_from_the_environment() {
        let key = private(None, Some(RFC_PRIVATE)).unwrap();
        let body = RFC_PRIVATE.lines().nth(1).unwrap();
        assert_eq!(private(None, Some(body)).unwrap(), key);
        assert_eq!(private(None, Some(&RFC_PRIVATE.replace('\n', "\\n"))).unwrap(), key);
    }

    #[test]
    fn what_is_no_key_is_refused_and_not_quoted() {
        let secret = "c2VjcmV0IHNlY3JldCBzZWNyZXQgc2VjcmV0IHNlY3JldA==";
        for text in [secret, "-----BEGIN RSA PRIVATE KEY-----\nAAAA\n", "!!!!", RFC_PUBLIC] {
            let error = private(None, Some(text)).unwrap_err().to_string();
            assert!(error.starts_with(PRIVATE_VARIABLE) && !error.contains("c2Vj"), "{error}");
        }
        assert!(private(None, None).unwrap_err().to_string().contains("keygen"));
        assert!(public(None, Some(RFC_PRIVATE)).is_err());
    }

    #[test]
    fn a_key_file_that_is_open_to_others_is_refused_with_the_remedy() {
        let dir = tempfile::tempdir().unwrap();
        let (private_file, public_file) = (dir.path().join("a.key"), dir.path().join("a.pub"));
        write_pair(&generate().unwrap(), &private_file, &public_file).unwrap();
        let set = |file: &Path, mode| {
            std::fs::set_permissions(file, std::fs::Permissions::from_mode(mode)).unwrap();
        };
        for mode in [0o666, 0o640, 0o604, 0o620] {
            set(&private_file, mode);
            for error in [private(Some(&private_file), None).err(), seal(Some(&private_file), None).err()] {
                let error = error.unwrap().to_string();
                assert!(error.contains("chmod 600"), "{mode:o}: {error}");
            }
        }
        set(&private_file, 0o400);
        assert!(private(Some(&private_file), None).is_ok());
        set(&public_file, 0o666);
        let error = public(Some(&public_file), None).unwrap_err().to_string();
        assert!(error.contains("chmod o-w"), "{error}");
        set(&public_file, 0o664);
        assert!(public(Some(&public_file), None).is_ok());
    }

    #[test]
    fn a_pair_is_private_new_and_never_overwritten() {
        let dir = tempfile::tempdir().unwrap();
        let (private_file, public_file) = (dir.path().join("a.key"), dir.path().join("a.pub"));
        let key = generate().unwrap();
        write_pair(&key, &private_file, &public_file).unwrap();
        assert_eq!(std::fs::metadata(&private_file).unwrap().permissions().mode() & 0o777, 0o600);
        assert_eq!(private(Some(&private_file), None).unwrap(), key);
        let before = std::fs::read(&private_file).unwrap();
        let other = generate().unwrap();
        let error = write_pair(&other, &private_file, &public_file).unwrap_err().to_string();
        assert!(error.contains("never overwritten"), "{error}");
        let elsewhere = dir.path().join("b.pub");
        assert!(write_pair(&other, &private_file, &elsewhere).is_err());
        assert!(!elsewhere.exists(), "no public key without its private one");
        assert_eq!(std::fs::read(&private_file).unwrap(), before);
    }
}
