//! Envelopes and statements exchanged with other projects: securesystemslib and in-toto-attestation, which are run, and cosign, whose
//! files were recorded.

use super::{attested, complete, verified};
use ed25519_dalek::SigningKey;
use holdpoint_evidence::attest::{Signed, read_statement, statement};
use holdpoint_evidence::canonical::to_canonical;
use holdpoint_evidence::keys::{self, PublicKey};
use holdpoint_evidence::{dsse, hash};
use holdpoint_model::document;
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::Command;

const SCRIPT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/attest/interop/exchange.py");
const REQUIREMENTS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/attest/interop/requirements.txt");
/// Set by `.ci/run`: without the packages the tests fail instead of being skipped.
const REQUIRED: &str = "HOLDPOINT_REQUIRE_INTEROP";

fn run(program: &Path, arguments: &[&str]) -> Result<String, String> {
    let name = program.display();
    let output =
        Command::new(program).args(arguments).output().map_err(|error| format!("{name}: {error}"))?;
    let errors = String::from_utf8_lossy(&output.stderr);
    let last = errors.trim().lines().last().unwrap_or_default();
    if !output.status.success() {
        return Err(format!("{name} {}: {last}", arguments.join(" ")));
    }
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

/// The packages in an environment of their own, which is kept between runs.
fn python() -> Result<PathBuf, String> {
    let name = format!("interop-{}", &hash::bytes(&std::fs::read(REQUIREMENTS).unwrap())[..12]);
    let dir = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    let (python, done) = (dir.join("bin/python"), dir.join("installed"));
    if !done.exists() {
        run(Path::new("python3"), &["-m", "venv", &dir.display().to_string()])?;
        let install = ["-m", "pip", "install", "--quiet", "--only-binary", ":all:", "--require-hashes", "-r"];
        run(&python, &[&install[..], &[REQUIREMENTS]].concat())?;
        std::fs::write(done, "").unwrap();
    }
    Ok(python)
}

fn read(dir: &Path, name: &str) -> String {
    std::fs::read_to_string(dir.join(name)).unwrap()
}

fn public(dir: &Path, name: &str) -> PublicKey {
    keys::public(Some(&dir.join(name)), None).unwrap()
}

#[test]
fn securesystemslib_reads_what_we_sign_and_we_read_what_it_signs() {
    let python = match python() {
        Ok(python) => python,
        Err(why) if std::env::var_os(REQUIRED).is_none() => return eprintln!("skipped: {why}"),
        Err(why) => panic!("{REQUIRED} is set: {why}"),
    };
    let (artifacts, dir) = (complete(), tempfile::tempdir().unwrap());
    let (key, dir) = (SigningKey::from_bytes(&[3; 32]), dir.path());
    keys::write_pair(&key, &dir.join("ours.key"), &dir.join("ours.pub")).unwrap();
    let statement = statement(attested(artifacts.path()));
    let envelope = dsse::sign(to_canonical(&statement).unwrap().as_bytes(), &key);
    holdpoint_store::write_json(&dir.join("ours.dsse.json"), &envelope).unwrap();
    let told = run(&python, &[SCRIPT, &dir.display().to_string()]).unwrap();
    let told: Value = serde_json::from_str(&told).unwrap();
    assert_eq!(told["subjects"], statement.subject.len());
    let [ours, p256] = ["ours.pub", "p256.pub"].map(|name| public(dir, name));
    assert_eq!(told["keyids"][0], ours.key_id());
    assert_eq!(told["keyids"][1], p256.key_id());
    for (name, key) in
        [("ed25519", &ours), ("p256", &p256), ("both", &p256), ("both", &ours), ("rewritten", &ours)]
    {
        let theirs = document::read_envelope(&read(dir, &format!("theirs-{name}.dsse.json"))).unwrap();
        let (problems, found) = verified(Signed::Envelope(theirs, key), artifacts.path());
        assert_eq!(problems, Vec::<String>::new(), "{name}");
        assert_eq!(found.unwrap(), statement.predicate, "{name}");
    }
    let other = document::read_envelope(&read(dir, "theirs-p256.dsse.json")).unwrap();
    assert!(dsse::open(&other, &ours).unwrap_err().to_string().contains("not by the key given"));
}

/// A file of cosign's, by what `README.md` beside it says.
fn recorded(name: &str, key: &str) -> Result<String, String> {
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/cosign");
    let envelope = document::read_envelope(&read(&dir, name)).unwrap();
    let payload = dsse::open(&envelope, &public(&dir, key)).map_err(|problem| problem.to_string())?;
    let statement = read_statement(&String::from_utf8(payload).unwrap());
    statement.map(|statement| statement.subject[0].name.clone()).map_err(|problem| problem.to_string())
}

#[test]
fn bundles_that_cosign_has_signed_are_read() {
    assert_eq!(recorded("p256.bundle.json", "p256.pub").unwrap(), "check.json");
    assert_eq!(recorded("ed25519ph.bundle.json", "ed25519.pub").unwrap(), "check.json");
    assert!(recorded("p256.bundle.json", "ed25519.pub").unwrap_err().contains("a key without a name"));
    // Made of the predicate alone, it names one file and is a statement of an old version.
    assert!(recorded("predicate-only.dsse.json", "p256.pub").unwrap_err().contains("Statement/v0.1"));
}
