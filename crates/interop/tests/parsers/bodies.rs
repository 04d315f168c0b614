//! What must hold for every input of every parser. The proptests beside this file and the targets in `fuzz/`
//! both call these: no panic, an accepted document survives being written and read again, and an error is one
//! line that a terminal can show.

use holdpoint_interop::ncu::ncu_page;
use holdpoint_interop::{read_baseline, read_current, sanitizer};
use holdpoint_model::notify::NotifyConfig;
use holdpoint_model::protocol::{Message, Request, Response};
use holdpoint_model::toml_file::TomlError;
use holdpoint_model::{
    AbReport, Attestation, Baseline, Calibration, Current, FileError, Profile, ReleasePolicy, ReplayManifest,
    Report, Stated, Suite, Trend, Waivers, document, json,
};
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::fmt::{Debug, Display};

/// A parser and what must hold for it.
pub type Body = fn(&[u8]);

/// A suite file.
pub fn suite_toml(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    match Suite::parse(text) {
        Ok(suite) => {
            let written = serde_json::to_string(&suite).expect("a suite can be written");
            assert_eq!(serde_json::from_str::<Suite>(&written).expect("and read again"), suite);
        }
        Err(error @ TomlError::Invalid { .. }) => assert_one_line(&error),
        Err(error @ (TomlError::Syntax(_) | TomlError::Shown { .. })) => {
            assert!(
                error.to_string().starts_with("TOML parse error"),
                "{error:?} should begin with the place"
            );
            assert_one_line(&error);
        }
    }
}

/// A waiver file.
pub fn waivers_toml(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    match Waivers::parse(text) {
        Ok(read) => assert!(read.waivers.iter().all(|waiver| waiver.limit.share() > 0.0)),
        Err(error) => assert_one_line(&error),
    }
}

/// A release policy.
pub fn release_policy_toml(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    match ReleasePolicy::parse(text) {
        Ok(policy) => {
            let written = serde_json::to_string(&policy).expect("a policy can be written");
            assert_eq!(serde_json::from_str::<ReleasePolicy>(&written).expect("and read again"), policy);
        }
        Err(error) => assert_one_line(&error),
    }
}

/// A configuration of notifications.
pub fn notify_toml(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    match NotifyConfig::parse(text) {
        Ok(config) => {
            let written = serde_json::to_string(&config).expect("a configuration can be written");
            assert_eq!(serde_json::from_str::<NotifyConfig>(&written).expect("and read again"), config);
        }
        Err(error) => assert_one_line(&error),
    }
}

/// A report, as itself and as the side under test.
pub fn report_json(data: &[u8]) {
    file(data, document::read::<Report>);
    if let Some(Err(error)) = std::str::from_utf8(data).ok().map(current) {
        assert_one_line(&error);
    }
}

/// A baseline, or a file that becomes one.
pub fn baseline_json(data: &[u8]) {
    file(data, baseline);
}

/// A judged comparison.
pub fn comparison_json(data: &[u8]) {
    file(data, document::read::<Stated>);
}

/// A side-by-side comparison.
pub fn ab_json(data: &[u8]) {
    file(data, document::read::<AbReport>);
}

/// A calibration.
pub fn calibration_json(data: &[u8]) {
    file(data, document::read::<Calibration>);
}

/// A trend point.
pub fn trend_json(data: &[u8]) {
    file(data, document::read::<Trend>);
}

/// A profile.
pub fn profile_json(data: &[u8]) {
    file(data, document::read::<Profile>);
}

/// A replay manifest.
pub fn replay_json(data: &[u8]) {
    file(data, document::read::<ReplayManifest>);
}

/// A release attestation.
pub fn attestation_json(data: &[u8]) {
    file(data, document::read::<Attestation>);
}

/// A DSSE envelope.
pub fn envelope_json(data: &[u8]) {
    file(data, document::read_envelope);
}

/// A profiler's table: whatever it holds, a counter that is kept is a number.
pub fn ncu_csv(data: &[u8]) {
    match ncu_page(&String::from_utf8_lossy(data)) {
        Ok(launches) => {
            assert!(
                launches.iter().flat_map(|launch| launch.metrics.values()).all(|value| value.is_finite())
            );
        }
        Err(error) => assert_one_line(&error),
    }
}

/// A sanitizer's log: whatever it holds, what is kept of it fits a terminal.
pub fn sanitizer_log(data: &[u8]) {
    let log = sanitizer::sanitizer_log(&String::from_utf8_lossy(data));
    log.errors.iter().for_each(|error| assert_one_line(&error.what));
    log.troubles.iter().for_each(assert_one_line);
}

/// What a worker reads.
pub fn protocol_request(data: &[u8]) {
    line::<Message<Request>>(data);
}

/// What a worker writes.
pub fn protocol_response(data: &[u8]) {
    line::<Message<Response>>(data);
}

fn file<T, E>(data: &[u8], parse: fn(&str) -> Result<T, E>)
where
    T: Serialize + PartialEq + Debug,
    E: Display + Debug,
{
    let Ok(text) = std::str::from_utf8(data) else { return };
    match parse(text) {
        Ok(value) => {
            let written = json::to_pretty(&value).expect("what was read can be written");
            assert_eq!(parse(&written).expect("and read again"), value);
        }
        Err(error) => assert_one_line(&error),
    }
}

fn line<T: Serialize + DeserializeOwned + PartialEq + Debug>(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    match json::parse::<T>(text) {
        Ok(value) => {
            let written = serde_json::to_string(&value).expect("what was read can be written");
            assert!(!written.contains('\n'));
            assert_eq!(json::parse::<T>(&written).expect("and read again"), value);
        }
        Err(error) => assert_one_line(&error),
    }
}

fn assert_one_line(error: &impl Display) {
    let text = error.to_string();
    let is_clean = !text.contains(|c: char| c.is_control() && c != '\t');
    assert!(!text.is_empty() && is_clean, "{text:?} should be one line");
}

pub fn current(text: &str) -> Result<Current, FileError> {
    read_current(&text.into())
}

pub fn baseline(text: &str) -> Result<Baseline, FileError> {
    read_baseline(&text.into())
}
