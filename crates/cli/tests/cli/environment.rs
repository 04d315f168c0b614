//! What must be as it was for a comparison, beside the machine.

use crate::common::{Here, ran};

#[test]
fn a_run_with_another_environment_is_not_compared_unless_that_is_allowed() {
    let here = Here::new();
    let gate = |threads: &str, more: &[&str]| {
        let arguments =
            [&["gate", "--suite", "suite.toml", "--runs", "1", "--policy", "allowed-max"], more].concat();
        ran(here.command(&arguments).env("OMP_NUM_THREADS", threads).output().unwrap())
    };
    gate("1", &[]).ends(0);
    // However busy the machine is.
    here.edit(&here.baseline(), |baseline| {
        for metric in baseline["metrics"].as_object_mut().unwrap().values_mut() {
            metric["max_regression_ratio"] = 1000.0.into();
        }
    });
    gate("1", &[]).ends(0);
    gate("2", &[]).ends(3).prints(&["OMP_NUM_THREADS was \"1\", is \"2\"", "--allow environment"]);
    gate("2", &["--allow", "environment"]).ends(0).prints(&["compared across environments, as allowed"]);
}

#[test]
fn a_report_keeps_what_a_worker_says_of_itself() {
    let here = Here::new();
    let worker = "
import json, sys
for line in sys.stdin:
    ask = json.loads(line)
    answers = {
        'hello': {'type': 'hello', 'protocol': 2, 'name': 'w', 'version': '1', 'timer': 'host_monotonic',
                  'clock_resolution_ns': 1, 'environment_lock': {'tf32': 'off', 'torch': '2.11'}},
        'list': {'type': 'workloads', 'workloads': [{'name': 'w', 'op': 'w', 'shape': [1], 'dtype': 'f32'}]},
        'prepare': {'type': 'skipped', 'workload': 'w', 'reason': 'not today'},
        'bye': {'type': 'bye'},
    }
    print(json.dumps({'id': ask['id'], **answers[ask['type']]}), flush=True)
";
    here.write("worker.py", worker);
    let suite = "
schema_version = 1
name = \"mine\"
seed = 5
[workers.py]
command = [\"python3\", \"worker.py\"]
[[workload]]
name = \"w\"
worker = \"py\"
op = \"w\"
shape = [1]
dtype = \"f32\"
";
    here.write("mine.toml", suite);
    here.run(&["run", "--suite", "mine.toml", "-o", "r.json"]).ends(2);
    let lock = &here.json("r.json")["environment_lock"];
    assert_eq!(
        (&lock["py.tf32"], &lock["py.torch"], &lock["seed"]),
        (&"off".into(), &"2.11".into(), &"5".into())
    );
}

#[test]
fn measured_programs_and_builds_see_the_variables_of_tools_and_those_that_the_suite_names() {
    let here = Here::new();
    let seen = |pass_env: &str, name: &str| {
        let suite = format!(
            "schema_version = 1\nname = \"seen\"\npass_env = [{pass_env}]\n[measure]\nrounds_min = 1\nrounds_max = 1\n[[workload]]\n\
             name = \"w\"\ncommand = [\"sh\", \"-c\", \"env > seen.txt\"]\n"
        );
        here.write("seen.toml", &suite);
        let mut command = here.command(&["run", "--suite", "seen.toml"]);
        ran(command.env("SECRET_TOKEN", "s3cret").env("CFLAGS", "-O2").output().unwrap()).ends(0);
        std::fs::read_to_string(here.path("seen.txt")).unwrap().contains(name)
    };
    assert!(!seen("", "s3cret"));
    assert!(seen("", "CFLAGS=-O2"));
    assert!(seen("\"SECRET_TOKEN\"", "SECRET_TOKEN=s3cret"));
    here.write("seen.toml", "schema_version = 1\nname = \"seen\"\npass_env = [\"GITHUB_TOKEN\"]\n[[workload]]\nname = \"w\"\ncommand = [\"true\"]\n");
    here.run(&["run", "--suite", "seen.toml"]).refuses(64, &["pass_env names GITHUB_TOKEN", "remove it"]);
}
