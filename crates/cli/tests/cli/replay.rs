//! Answers kept with their hashes, and computed again.

use crate::common::{Here, Ran};
use holdpoint_evidence::{hash, replay};
use serde_json::{Value, json};

fn golden(name: &str) -> String {
    format!("{}/tests/replay/{name}", env!("CARGO_MANIFEST_DIR"))
}

/// A folder in which the tiny suite's answers are recorded.
fn recorded() -> Here {
    let here = Here::new();
    let ran = here.run(&["replay", "record", "--suite", "suite.toml"]);
    ran.ends(0).prints(&[
        "pack.packed",
        "builtin",
        "skipped",
        "a command has no tensors",
        "recorded: 1 answer in artifacts/replay.json",
    ]);
    here
}

impl Here {
    fn replay(&self, arguments: &[&str]) -> Ran {
        self.run(&[&["replay", "verify"], arguments].concat())
    }

    /// Changes what was recorded, with all hashes made right again: as if the code had changed since.
    fn record_otherwise(&self, change: impl FnOnce(&mut Vec<u8>)) {
        let name = "artifacts/replay.outputs/pack.packed.f32";
        let mut bytes = std::fs::read(self.path(name)).unwrap();
        change(&mut bytes);
        std::fs::write(self.path(name), &bytes).unwrap();
        self.edit("artifacts/replay.json", |manifest| {
            let sha256 = hash::bytes(&bytes);
            manifest["artifact_hashes"]["pack.packed"]["sha256"] = json!(sha256);
            manifest["artifact_sha256"]["pack.packed"] = json!(sha256);
            let seed = manifest["seed"].as_u64().unwrap();
            let config_sha256 = manifest["config_sha256"].as_str().unwrap();
            let alone = [("pack.packed".to_owned(), sha256)].into();
            manifest["manifest_sha256"] =
                json!(replay::manifest_sha256(seed, config_sha256, &alone).unwrap());
        });
    }
}

#[test]
fn the_same_code_gives_the_same_answers_and_another_seed_others() {
    let here = recorded();
    here.replay(&["-o", "found.json"])
        .ends(0)
        .prints(&["same: 1 answer with 768 values compared bit by bit"]);
    assert_eq!(
        (&here.json("found.json")["same"], &here.json("found.json")["compared"]),
        (&json!(true), &json!("exact"))
    );
    let first = here.json("artifacts/replay.json");
    here.run(&["replay", "record", "--suite", "suite.toml"]).ends(0);
    let again = here.json("artifacts/replay.json");
    assert_eq!(again["manifest_sha256"], first["manifest_sha256"], "neither the time nor the machine counts");
    here.run(&["replay", "record", "--suite", "suite.toml", "--seed", "9"]).ends(0);
    let other = here.json("artifacts/replay.json");
    assert_eq!((&other["seed"], &other["config"]["workloads"][0]["seed"]), (&json!(9), &json!(9)));
    assert_ne!(other["artifact_sha256"], first["artifact_sha256"]);
    here.replay(&[]).ends(0);
}

#[test]
fn what_differs_is_named_by_workload_output_index_and_both_values() {
    let here = recorded();
    here.record_otherwise(|bytes| {
        // Tiles of 4 x 8 x 8 values: the second value of the third row of the first tile's second plane.
        let at = 4 * (64 + 2 * 8 + 1);
        bytes[at..at + 4].copy_from_slice(&1234.5_f32.to_le_bytes());
    });
    let ran = here.replay(&["--format", "json"]);
    let found: Value = serde_json::from_str(&ran.ends(5).stdout).unwrap();
    let first = found["differences"][0].as_str().unwrap();
    assert!(first.starts_with("pack.packed[0,0,1,2,1]: was 1234.5, is "), "{first}");
    assert!(first.ends_with("1 of 768 values differ"), "{first}");
    here.replay(&["--compare", "tolerance"]).ends(5).prints(&["differs first", "pack.packed[0,0,1,2,1]"]);
}

#[test]
fn a_last_bit_differs_bit_by_bit_and_not_by_tolerance() {
    let here = recorded();
    here.record_otherwise(|bytes| bytes[0] ^= 1);
    here.replay(&[]).ends(5).prints(&["pack.packed[0,0,0,0,0]", "bit by bit"]);
    here.replay(&["--compare", "tolerance"]).ends(0).prints(&["by the tolerance of the element type"]);
    // Recorded on another CPU, bits are not asked for.
    here.edit("artifacts/replay.json", |manifest| manifest["environment"]["cpu_features"] = json!(["other"]));
    here.replay(&[]).ends(0).prints(&["by the tolerance of the element type"]);
    here.replay(&["--compare", "exact"]).ends(5);
}

#[test]
fn a_record_that_was_changed_is_refused_before_anything_is_computed() {
    let here = recorded();
    let whole = here.read("artifacts/replay.json");
    here.edit("artifacts/replay.json", |manifest| manifest["seed"] = json!(9));
    here.replay(&[]).ends(5).prints(&["differs first", "manifest_sha256 is", "nothing was computed"]);
    here.write("artifacts/replay.json", &whole);
    here.edit("artifacts/replay.json", |m| m["config"]["workloads"][0]["shape"] = json!([1, 4, 64, 64]));
    here.replay(&[]).ends(5).prints(&["config_sha256 is"]);
    here.write("artifacts/replay.json", &whole);
    let output = here.path("artifacts/replay.outputs/pack.packed.f32");
    let bytes = std::fs::read(&output).unwrap();
    std::fs::write(&output, &bytes[1..]).unwrap();
    here.replay(&[]).ends(5).prints(&["pack.packed.f32 is not the file that was recorded"]);
    std::fs::remove_file(&output).unwrap();
    here.replay(&[]).ends(0);
    here.replay(&["--compare", "tolerance"]).ends(0).prints(&["same"]);
}

#[test]
fn a_manifest_that_names_another_suite_starts_none_of_its_programs() {
    let here = recorded();
    let suite = "schema_version = 1\nname = \"evil\"\n[workers.x]\ncommand = [\"touch\", \"pwned\"]\n\
         [[workload]]\nname = \"x\"\nworker = \"x\"\nop = \"attention\"\nshape = [1, 1, 8, 32]\ndtype = \"f32\"\n";
    here.write("evil.toml", suite);
    here.edit("artifacts/replay.json", |manifest| {
        manifest["suite"] = json!("evil.toml");
        manifest["workloads"]["pack"]["worker"] = json!("x");
    });
    here.replay(&[]).refuses(64, &["suite \"evil.toml\"", "starts programs of its own (workers x)"]);
    assert!(!here.path("pwned").exists());
}

#[test]
fn hashes_that_no_workload_stands_for_are_a_contradiction() {
    let here = recorded();
    here.edit("artifacts/replay.json", |m| m["workloads"]["pack"]["outputs"] = json!([]));
    here.replay(&[]).ends(5).prints(&["is the output of none of its workloads"]);
}

#[test]
fn a_manifest_of_the_seeds_is_checked_and_not_computed() {
    let here = Here::new();
    let config = json!({"kmax": 32}).as_object().unwrap().clone();
    let mut manifest =
        serde_json::to_value(replay::manifest(11, config, Default::default()).unwrap()).unwrap();
    manifest.as_object_mut().unwrap().remove("schema_version");
    here.write("seeds.json", &manifest.to_string());
    here.replay(&["seeds.json"]).ends(2).prints(&["its hashes are right", "not decided"]);
    here.write("none.json", "{\"a\": 1}");
    here.replay(&["none.json"]).ends(5).prints(&[
        "none.json",
        "not a replay manifest",
        "nothing was computed",
    ]);
    std::fs::write(here.path("bytes.json"), [0xff]).unwrap();
    here.replay(&["bytes.json"]).ends(5).prints(&["not UTF-8 text"]);
    recorded().replay(&["--worker", "mine"]).refuses(64, &["no such worker", "builtin and cuda"]);
    here.replay(&["--suite", "cpu", "gone.json"]).refuses(64, &["gone.json", "no such file"]);
}

fn worker(here: &Here, planted: Option<&str>) {
    let root = env!("CARGO_MANIFEST_DIR");
    let program = match planted {
        Some(bug) => format!("\"{root}/tests/fuzz/planted.py\", \"{root}/../../examples\", \"{bug}\""),
        None => format!("\"{root}/../../examples/kernel_worker.py\""),
    };
    let suite = format!(
        "schema_version = 1\nname = \"mine\"\n[workers.mine]\ncommand = [\"python3\", {program}]\n\
         [[workload]]\nname = \"it\"\nworker = \"mine\"\nop = \"attention\"\nshape = [1, 1, 8, 32]\ndtype = \"f32\"\n"
    );
    here.write("mine.toml", &suite);
}

#[test]
fn a_worker_in_another_language_is_recorded_and_asked_again() {
    let here = Here::new();
    worker(&here, None);
    here.run(&["replay", "record", "--suite", "mine.toml"]).ends(0).prints(&["it.out", "mine"]);
    // The name of the suite is not under the hash, and this one starts a program.
    here.replay(&[]).refuses(64, &["starts programs of its own (workers mine)", "--suite mine.toml"]);
    let mine = ["--suite", "mine.toml"];
    here.replay(&mine).ends(0).prints(&["same: 1 answer with 256 values compared bit by bit"]);
    // One that did not give the same bits twice is compared by tolerance, and that is said.
    let whole = here.read("artifacts/replay.json");
    here.edit("artifacts/replay.json", |m| m["workloads"]["it"]["deterministic"] = json!(false));
    here.replay(&mine).ends(0).prints(&["compared by the tolerance"]);
    here.write("artifacts/replay.json", &whole);
    // The built-in op computes the same, by tolerance.
    here.replay(&["--suite", "mine.toml", "--worker", "builtin"]).ends(0).prints(&["by the tolerance"]);
    worker(&here, Some("wrong_scale"));
    here.replay(&mine).ends(5).prints(&["differs first", "it: wrong_answer"]);
    let recorded = here.run(&["replay", "record", "--suite", "mine.toml", "-o", "wrong.json"]);
    recorded.ends(4).notes(&["wrong_answer", "nothing was recorded"]);
    assert!(!here.files().contains(&"wrong.json".to_owned()));
}

#[test]
fn where_there_is_no_device_nothing_is_claimed() {
    let here = recorded();
    let ran = here.replay(&["--worker", "cuda"]);
    if ran.code == 0 {
        eprintln!("a device is there: the tile was packed by it");
        return;
    }
    ran.ends(2).prints(&["not replayed"]);
}

#[test]
fn the_golden_answers_are_still_given() {
    let here = Here::new();
    for name in ["small", "medium"] {
        let (manifest, suite) = (golden(&format!("{name}.json")), golden(&format!("{name}.toml")));
        here.replay(&[&manifest, "--suite", &suite, "-o", "found.json"]).ends(0);
        let there: Value = serde_json::from_str(&std::fs::read_to_string(&manifest).unwrap()).unwrap();
        let found = here.json("found.json");
        assert_eq!(found["outputs_count"], there["artifact_hashes"].as_object().unwrap().len());
        let here_features = holdpoint_measure::doctor::cpu_features();
        let is_same_cpu = there["environment"]["cpu_features"] == json!(here_features)
            && there["environment"]["machine"]["arch"] == std::env::consts::ARCH;
        // Other vectors may round otherwise.
        assert_eq!(found["compared"], if is_same_cpu { "exact" } else { "tolerance" });
    }
}
