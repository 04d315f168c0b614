//! Every type writes the name that its readers look for.

use super::*;
use crate::attest::SignOff;
use crate::caps::RuntimeCaps;
use crate::notice::Notice;
use crate::{
    Attestation, Baseline, FuzzFile, FuzzReport, Profile, ProfileComparison, ReplayManifest,
    ReplayVerification, Roofline, SanitizeReport, Seal, Trend,
};
use serde::de::value::Error;
use serde::de::{Deserializer, Error as _, Visitor};
use serde::forward_to_deserialize_any;

/// Tells the name of the struct that is read from it, which is what the struct writes as its `kind`.
struct Name<'a>(&'a mut String);

impl<'de> Deserializer<'de> for Name<'_> {
    type Error = Error;

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        name: &'static str,
        _: &'static [&'static str],
        _: V,
    ) -> Result<V::Value, Error> {
        name.clone_into(self.0);
        Err(Error::custom("seen"))
    }

    fn deserialize_any<V: Visitor<'de>>(self, _: V) -> Result<V::Value, Error> {
        Err(Error::custom("no struct"))
    }

    forward_to_deserialize_any! {
        bool i8 i16 i32 i64 u8 u16 u32 u64 f32 f64 char str string bytes byte_buf option unit unit_struct
        newtype_struct seq tuple tuple_struct map enum identifier ignored_any
    }
}

fn written_name<T: Document>() -> (String, &'static str) {
    let mut name = String::new();
    let _ = T::deserialize(Name(&mut name));
    (name, T::KIND.as_str())
}

#[test]
fn the_kind_that_is_written_is_the_kind_that_is_read() {
    for (written, read) in [
        written_name::<AbReport>(),
        written_name::<Attestation>(),
        written_name::<Baseline>(),
        written_name::<Bisection>(),
        written_name::<Calibration>(),
        written_name::<FuzzFile>(),
        written_name::<FuzzReport>(),
        written_name::<Notice>(),
        written_name::<Profile>(),
        written_name::<ProfileComparison>(),
        written_name::<ReplayManifest>(),
        written_name::<ReplayVerification>(),
        written_name::<Report>(),
        written_name::<Roofline>(),
        written_name::<RuntimeCaps>(),
        written_name::<SanitizeReport>(),
    ] {
        assert_eq!(written, read);
    }
}

fn data(name: &str) -> String {
    let path = format!("{}/tests/data/{name}", env!("CARGO_MANIFEST_DIR"));
    std::fs::read_to_string(&path).unwrap_or_else(|e| panic!("{path}: {e}"))
}

fn rewritten<T: Document>(name: &str) -> String {
    json::to_pretty(&read::<T>(&data(name)).unwrap()).unwrap()
}

#[test]
fn a_file_from_before_kind_is_known_by_its_keys_and_gets_its_kind_when_it_is_written() {
    for (text, kind) in [
        (rewritten::<Report>("report-v1.json"), Kind::Report),
        (rewritten::<Baseline>("baseline-v1.json"), Kind::Baseline),
        (rewritten::<Stated>("comparison-v1.json"), Kind::Comparison),
        (rewritten::<AbReport>("ab-v1.json"), Kind::Ab),
        (rewritten::<Calibration>("calibration-v1.json"), Kind::Calibration),
        (rewritten::<Profile>("profile-v1.json"), Kind::Profile),
        (rewritten::<ReplayManifest>("replay-v1.json"), Kind::ReplayManifest),
        (rewritten::<Attestation>("attestation-v1.json"), Kind::Attestation),
    ] {
        assert!(text.starts_with(&format!("{{\n  \"kind\": \"{}\",\n", kind.as_str())), "{text}");
        assert_eq!(super::kind(&text).unwrap(), Some(kind));
    }
    // Its keys are Apex-X's and no others.
    assert!(!rewritten::<Trend>("trend-v1.json").contains("\"kind\""));
}

#[test]
fn a_summary_that_its_samples_do_not_give_is_refused() {
    let report: serde_json::Value = serde_json::from_str(&data("report-outcomes.json")).unwrap();
    let refused = |change: &dyn Fn(&mut serde_json::Value)| {
        let mut report = report.clone();
        change(&mut report);
        read::<Report>(&report.to_string()).unwrap_err().to_string()
    };
    assert!(read::<Report>(&report.to_string()).is_ok());
    for key in ["p50_ms", "p95_ms", "p99_ms", "mean_ms", "min_ms", "cpu_p50_ms", "slow_stretches"] {
        let said = refused(&|report| report["benchmarks"]["tile_pack"][key] = 0.1.into());
        assert!(said.starts_with(&format!("benchmarks.tile_pack: {key} is 0.1, ")), "{said}");
        assert!(said.ends_with(": it was edited") && !said.contains('\n'), "{said}");
    }
    let said = refused(&|report| report["metrics"]["tile_pack_p50_ms"] = 0.1.into());
    assert!(said.starts_with("metrics.tile_pack_p50_ms: is 0.1, which its workload does not say"), "{said}");
    // Another tool's own number may be any statistic of its samples.
    let imported = |key: &str, value_ms: f64| {
        let mut report = report.clone();
        report["toolchain"]["holdpoint"] = "".into();
        report["metrics"] = serde_json::json!({});
        report["benchmarks"]["tile_pack"][key] = value_ms.into();
        read::<Report>(&report.to_string()).map(|_| ()).map_err(|error| error.to_string())
    };
    assert_eq!(imported("p50_ms", 0.2207), Ok(()));
    assert!(
        imported("p50_ms", 0.1).unwrap_err().contains("p50_ms is 0.1, its samples lie between 0.2205 and")
    );
    for key in ["p95_ms", "p99_ms", "mean_ms", "min_ms", "cpu_p50_ms", "slow_stretches"] {
        let said = imported(key, 0.1).unwrap_err();
        assert!(said.contains(&format!("tile_pack: {key} is 0.1, ")), "{said}");
    }
}

#[test]
fn a_baselines_value_is_the_median_of_its_runs() {
    let with = |runs_ms: &str| {
        let metric = format!(r#"{{"value_ms": 2.0, "runs_ms": {runs_ms}}}"#);
        let text = format!(r#"{{"schema_version": 1, "suite": "s", "metrics": {{"a_ms": {metric}}}}}"#);
        read::<Baseline>(&text).map(|_| ()).map_err(|error| error.to_string())
    };
    for runs_ms in ["[]", "[2.0]", "[3.0, 1.0, 2.0]", "[1.0, 3.0]"] {
        assert_eq!(with(runs_ms), Ok(()), "{runs_ms}");
    }
    let said = with("[1.0, 1.1, 0.9]").unwrap_err();
    assert!(said.contains("metrics.a_ms.value_ms: is 2, the median of its runs_ms 1"), "{said}");
}

#[test]
fn a_kind_is_known_by_its_own_keys_alone() {
    for kind in Kind::ALL.iter().filter(|kind| !kind.keys().is_empty()) {
        let keys: Vec<String> = kind.keys().iter().map(|key| format!("{key:?}: {{}}")).collect();
        assert_eq!(super::kind(&format!("{{{}}}", keys.join(", "))).unwrap(), Some(*kind), "{kind:?}");
    }
    assert_eq!(super::kind("[{\"correctness\": null}, 1]").unwrap(), Some(Kind::Check));
    assert_eq!(super::kind("[]").unwrap(), None);
}

#[test]
fn a_document_of_another_kind_or_version_is_refused() {
    let refused = |text: &str| read::<Seal>(text).unwrap_err().to_string();
    let found = refused(r#"{"kind": "sign_off", "schema_version": 1}"#);
    assert_eq!(found, "it is a sign-off, not a seal; holdpoint gate writes one");
    assert!(refused(r#"{"kind": "seal", "schema_version": 2}"#).contains("update holdpoint"));
    assert!(refused(r#"{"kind": "x", "schema_version": 1}"#).contains("its kind is \"x\""));
    let text = r#"{"schema_version": 1, "gate": "g", "status": "PASS", "signed_off_by": "a", "commit_sha": "c", "evidence": "e"}"#;
    assert_eq!(read::<SignOff>(text).unwrap().signed_off_by, "a");
}
