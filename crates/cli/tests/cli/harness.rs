//! Benchmarks of a harness as workloads: a program with the documented options and output of Google Benchmark.

use crate::common::Here;
use crate::program::write_program;
use crate::scripted_worker::outcome;

/// Everything a suite needs; its name is the file's.
const SUITE: &str = "[harness]\nkind = \"google-benchmark\"\ncommand = [\"./bench.sh\"]\n";

/// A harness whose benchmarks take the nanoseconds given, some more from one repetition to the next.
fn bench(benchmarks: &[(&str, u32)]) -> String {
    let list: Vec<&str> = benchmarks.iter().map(|(name, _)| *name).collect();
    let times: String = benchmarks.iter().map(|(name, ns)| format!("  '^{name}$') ns={ns} ;;\n")).collect();
    format!(
        r#"#!/bin/sh
for word; do case $word in
  --benchmark_list_tests=true) printf '%s\n' {}; exit ;;
  --benchmark_filter=*) filter=${{word#*=}} ;;
  --benchmark_repetitions=*) count=${{word#*=}} ;;
  --benchmark_out=*) out=${{word#*=}} ;;
esac; done
case $filter in
{times}  *) echo "no benchmark $filter" >&2; exit 1 ;;
esac
name=${{filter#^}}; name=${{name%?}}
{{ printf '{{"context": {{"library_build_type": "release"}}, "benchmarks": ['
for i in $(seq $count); do
  printf '%s{{"name": "%s", "run_name": "%s", "run_type": "iteration", "real_time": %s.%s, "time_unit": "ns"}}' \
    "$comma" "$name" "$name" "$ns" "$i$$"; comma=,
done; printf ']}}'; }} > "$out"
"#,
        list.join(" ")
    )
}

fn commit(here: &Here, subject: &str, benchmarks: &[(&str, u32)]) {
    write_program(&here.path("bench.sh"), bench(benchmarks));
    here.git(&["add", "--all", "--", "bench.sh"]);
    here.git(&["commit", "--quiet", "--message", subject]);
}

fn repository() -> Here {
    let here = Here::repository();
    here.write("perf.toml", SUITE);
    here
}

#[test]
fn every_benchmark_of_a_harness_is_compared_between_revisions() {
    let here = repository();
    commit(&here, "first", &[("parse/10", 1000), ("print", 2000), ("gone", 10)]);
    commit(&here, "second", &[("parse/10", 1500), ("print", 2000), ("new", 10)]);
    let ran = here.run(&["gate", "--against", "HEAD~1", "--suite", "perf.toml", "--tolerance", "10%"]);
    ran.ends(1).prints(&["perf · ", "regressed", "parse_10", "+50", "new is new in head", "was it removed"]);
    let report = here.ab();
    assert_eq!(outcome(&report, "parse_10")[..2], ["regressed", "decided"]);
    assert_eq!(outcome(&report, "print")[..2], ["pass", "decided"]);
    assert_eq!(report["workloads"]["parse_10"]["identity"]["params"]["benchmark"], "parse/10");
}

#[test]
fn a_harness_is_measured_and_calibrated_like_any_other_suite() {
    let here = repository();
    commit(&here, "first", &[("a", 1000), ("b", 100)]);
    let quick = "[measure]\nrounds_min = 6\nrounds_max = 6\nwarmup_ms_max = 20.0\n";
    here.write("perf.toml", &format!("{SUITE}only = [\"a\"]\n{quick}"));
    here.run(&["run", "--suite", "perf.toml"]).ends(0).prints(&["a", "1.0"]);
    let report = here.json("artifacts/report.json");
    assert_eq!(report["benchmarks"].as_object().unwrap().keys().collect::<Vec<_>>(), ["a"]);
    let ran = here.run(&["calibrate", "--suite", "perf.toml", "--trials", "1", "--tolerance", "50%"]);
    ran.ends(0).prints(&["0/1"]);
}

#[test]
fn the_commit_that_made_a_benchmark_slower_is_found() {
    let here = repository();
    commit(&here, "first", &[("a", 1000), ("b", 100)]);
    commit(&here, "second", &[("a", 1010), ("b", 100)]);
    commit(&here, "third", &[("a", 2000), ("b", 100)]);
    commit(&here, "fourth", &[("a", 2010), ("b", 101)]);
    let ran = here.run(&["bisect", "--suite", "perf.toml", "--good", "HEAD~3", "--tolerance", "10%"]);
    ran.prints(&["third"]);
    let bisection = here.json("artifacts/bisect.json");
    assert_eq!(
        (&bisection["workload"], &bisection["culprits"][0]["subject"]),
        (&"a".into(), &"third".into())
    );
}

#[test]
fn a_commit_whose_harness_does_not_work_is_passed_over_in_a_search() {
    let here = repository();
    commit(&here, "first", &[("a", 1000)]);
    commit(&here, "second", &[("b", 1000)]);
    write_program(&here.path("bench.sh"), "#!/bin/sh\necho no library >&2; exit 1\n");
    here.git(&["commit", "--quiet", "--all", "--message", "third"]);
    commit(&here, "fourth", &[("a", 2000)]);
    commit(&here, "fifth", &[("a", 2010)]);
    here.run(&["bisect", "--suite", "perf.toml", "--good", "HEAD~4", "--tolerance", "10%"]);
    let bisection = here.json("artifacts/bisect.json");
    let step = bisection["steps"].as_array().unwrap().iter().find(|step| step["outcome"] == "not_built");
    assert!(step.unwrap()["reason"].as_str().unwrap().contains("google-benchmark"), "{step:?}");
    let culprits = bisection["culprits"].as_array().unwrap();
    assert!(culprits.iter().any(|commit| commit["subject"] == "fourth"), "{culprits:?}");
}

#[test]
fn benchmarks_that_are_newer_than_base_are_taken_from_head() {
    let here = repository();
    here.write("code", "1000");
    here.git(&["add", "code"]);
    here.git(&["commit", "--quiet", "--message", "without benchmarks"]);
    here.write("code", "1500");
    write_program(&here.path("bench.sh"), bench(&[("a", 0)]).replace("ns=0", "ns=$(cat code)"));
    here.git(&["add", "code", "bench.sh"]);
    here.git(&["commit", "--quiet", "--message", "with"]);
    let gate = ["gate", "--against", "HEAD~1", "--suite", "perf.toml", "--tolerance", "10%"];
    here.run(&gate).refuses(64, &["base: ", "harness_from = \"head\""]);
    here.write("perf.toml", &format!("{SUITE}harness_from = \"head\"\n"));
    here.run(&gate).refuses(64, &["harness_from` needs `harness_files"]);
    here.write("perf.toml", &format!("{SUITE}harness_from = \"head\"\nharness_files = [\"bench.sh\"]\n"));
    here.run(&gate).ends(1).prints(&["regressed", "+50"]);
}

#[test]
fn a_benchmark_that_is_set_to_few_repetitions_is_compared_by_those() {
    let here = repository();
    let few = |ns: u32| bench(&[("a", ns)]).replace("case $filter in", "count=3\ncase $filter in");
    for (subject, ns) in [("first", 1000), ("second", 1500)] {
        write_program(&here.path("bench.sh"), few(ns));
        here.git(&["add", "bench.sh"]);
        here.git(&["commit", "--quiet", "--message", subject]);
    }
    let ran = here.run(&["gate", "--against", "HEAD~1", "--suite", "perf.toml", "--tolerance", "10%"]);
    ran.ends(1).prints(&["regressed", "+50"]);
    let unit = &here.ab()["workloads"]["a"]["units"][1]["rounds"][0];
    assert_eq!([&unit["base_ns"], &unit["head_ns"]].map(|times| times.as_array().unwrap().len()), [3, 3]);
}

#[test]
fn two_suites_with_a_harness_are_compared() {
    let here = Here::new();
    for (file, ns) in [("base", 1000), ("head", 1500)] {
        write_program(&here.path(&format!("{file}.sh")), bench(&[("a", ns)]));
        here.write(&format!("{file}.toml"), &SUITE.replace("bench.sh", &format!("{file}.sh")));
    }
    let suites = ["ab", "--base-suite", "base.toml", "--head-suite", "head.toml", "--tolerance", "10%"];
    here.run(&suites).ends(1).prints(&["regressed", "+50"]);
}

#[test]
fn a_command_that_is_a_harness_is_pointed_out() {
    let here = Here::repository();
    // Ends at once, whatever its arguments.
    write_program(&here.path("cargo"), "#!/bin/sh\n");
    let command = ["ab", "--base", "./cargo bench", "--head", "./cargo bench", "--budget", "1"];
    here.run(&command)
        .notes(&["./cargo bench looks like benchmarks of criterion", "[harness] kind = \"criterion\""]);
}

#[test]
fn a_harness_that_cannot_be_driven_is_named_with_its_cause() {
    let here = repository();
    commit(&here, "first", &[("a", 1000)]);
    here.write("perf.toml", &format!("{SUITE}only = [\"x\", \"y\"]\n"));
    here.run(&["run", "--suite", "perf.toml"])
        .refuses(64, &["google-benchmark: it has no benchmark whose name contains x or y"]);
    here.write("perf.toml", "[harness]\nkind = \"google-benchmark\"\n");
    here.run(&["run", "--suite", "perf.toml"]).refuses(64, &["harness: needs `command`"]);
    here.write("perf.toml", "[harness]\nkind = \"stopwatch\"\n");
    let why = "kind \"stopwatch\" is not known; choose from criterion";
    here.run(&["run", "--suite", "perf.toml"]).refuses(64, &[why]);
    here.write("perf.toml", "[harness]\nkind = \"google-benchmark\"\ncommand = [\"./no-such\"]\n");
    here.run(&["run", "--suite", "perf.toml"]).refuses(64, &["google-benchmark: cannot start", "no-such"]);
}
