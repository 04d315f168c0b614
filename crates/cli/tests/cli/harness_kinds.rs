//! Further harnesses, each as a script that takes the real tool's options and writes its form of file. Times are read from a file
//! named `code`, in nanoseconds.

use crate::common::Here;
use crate::program::write_program;
use crate::scripted_worker::outcome;

/// Two revisions of a harness, of which the second is slower by half.
fn slower_by_half(suite: &str, programs: &[(&str, &str)]) -> Here {
    let here = Here::repository();
    here.write("perf.toml", suite);
    for (name, text) in programs {
        write_program(&here.path(name), text);
        here.git(&["add", "--", name]);
    }
    for (revision, ns) in [("first", "1000"), ("second", "1500")] {
        here.write("code", ns);
        here.git(&["add", "code"]);
        here.git(&["commit", "--quiet", "--message", revision]);
    }
    here
}

/// Compares the two, and expects this workload to be slower.
fn is_found(here: &Here, workload: &str, benchmark: &str) {
    let ran = here.run(&["gate", "--against", "HEAD~1", "--suite", "perf.toml", "--tolerance", "10%"]);
    ran.ends(1).prints(&["regressed", workload, "+50"]);
    let report = here.ab();
    assert_eq!(outcome(&report, workload)[..2], ["regressed", "decided"]);
    assert_eq!(report["workloads"][workload]["identity"]["params"]["benchmark"], benchmark);
}

/// Two benchmarks, of which a worker runs one by its number, with the loops that were found before.
const PYPERF: &str = r#"#!/bin/sh
ns=$(cat code) task=-1
while [ $# -gt 0 ]; do case $1 in
  --output) out=$2; shift ;;
  --values) values=$2; shift ;;
  --loops) loops=$2; shift ;;
  --worker-task) task=$2; shift ;;
esac; shift; done
values() { for i in $(seq $values); do printf '%s%s.%s%se-9' "$comma" "$ns" "$i" "$$"; comma=,; done; }
meta='"perf_version": "2.10.0", "unit": "second"'
case $task:$loops in
  -1:) printf '{"benchmarks": [{"metadata": {"name": "idle", "loops": 4}, "runs": [{"values": [1e-9]}]},
    {"metadata": {"name": "parse all", "loops": 8}, "runs": [{"warmups": [[8, 1e-6]]}, {"values": [1e-6]}]}],
    "metadata": {%s}}' "$meta" ;;
  1:8) printf '{"benchmarks": [{"runs": [{"values": [%s], "warmups": [[8, 1e-6]]}]}],
    "metadata": {"name": "parse all", "loops": 8, %s}}' "$(values)" "$meta" ;;
  *) echo "no task $task with $loops loops" >&2; exit 1 ;;
esac > "$out"
"#;

#[test]
fn benchmarks_of_pyperf_are_run_by_its_workers() {
    let suite = "[harness]\nkind = \"pyperf\"\ncommand = [\"./bench.sh\"]\nonly = [\"parse\"]\n";
    is_found(&slower_by_half(suite, &[("bench.sh", PYPERF)]), "parse_all", "parse all");
}

/// Builds nothing, and names the program that `cargo bench` would have built.
const CARGO: &str = r#"#!/bin/sh
case "$*" in *--no-run*--message-format=json*)
  printf '{"reason":"compiler-artifact","manifest_path":"%s/Cargo.toml","target":{"kind":["bench"],"name":"words"},"executable":"%s/divan.sh"}\n' "$PWD" "$PWD"
esac
"#;
const DIVAN: &str = r#"#!/bin/sh
case "$*" in
  '--bench --test') printf 'words\n├─ count\n│  ╰─ 200\n╰─ slow     (ignored)\n\n' ;;
  '--bench '*--sample-count*--max-time*'--exact words::count::200')
    echo 'words      fastest       │ slowest       │ median        │ mean          │ samples │ iters'
    echo '╰─ count                 │               │               │               │         │'
    echo "   ╰─ 200  $(cat code).$$ ns   │ 1.612 ms      │ 1.562 ms      │ 1.573 ms      │ 5       │ 10" ;;
  *) echo "unexpected: $*" >&2; exit 1 ;;
esac
"#;

#[test]
fn benchmarks_of_divan_give_their_fastest_time() {
    let suite = "[harness]\nkind = \"divan\"\ncommand = [\"./cargo.sh\", \"bench\"]\n";
    let here = slower_by_half(suite, &[("cargo.sh", CARGO), ("divan.sh", DIVAN)]);
    is_found(&here, "words__count__200", "words::count::200");
    let report = here.ab();
    let round = &report["workloads"]["words__count__200"]["units"][0]["rounds"][0];
    assert_eq!(round["base_ns"].as_array().unwrap().len(), 1, "a process gives one sample");
}

const CATCH2: &str = r#"#!/bin/sh
while [ $# -gt 0 ]; do case $1 in
  --out) out=$2; shift ;;
  --section) section=$2; shift ;;
  --reporter|--benchmark-samples|--benchmark-warmup-time) shift ;;
  --benchmark-no-analysis) ;;
  *) spec=$1 ;;
esac; shift; done
case $spec:$section in '*,[!benchmark]:'|'words\, all:inner') ;; *) echo "no test $spec" >&2; exit 1 ;; esac
cat > "$out" <<END
<?xml version="1.0" encoding="UTF-8"?>
<Catch2TestRun name="bench" catch2-version="3.7.1"><TestCase name="words, all"><Section name="inner">
<BenchmarkResults name="count" samples="50"><mean value="$(cat code).$$"/></BenchmarkResults>
</Section></TestCase></Catch2TestRun>
END
"#;

#[test]
fn benchmarks_of_catch2_are_chosen_by_test_case_and_section() {
    let suite = "[harness]\nkind = \"catch2\"\ncommand = [\"./bench.sh\"]\n";
    is_found(
        &slower_by_half(suite, &[("bench.sh", CATCH2)]),
        "words__all_inner_count",
        "words, all/inner/count",
    );
}

const HYPERFINE: &str = r#"#!/bin/sh
while [ $# -gt 0 ]; do case $1 in
  --export-json) out=$2; shift ;;
  --runs) runs=$2; shift ;;
  --warmup) [ "$2" = 1 ] || exit 1; shift ;;
  -L|--parameter-list) list=$3; shift 2 ;;
  --shell=none) shell=none ;;
  *) command=$1 ;;
esac; shift; done
[ "$shell" = none ] && [ "$command" = 'sort {n}' ] || { echo "unexpected: $command" >&2; exit 1; }
{ printf '{"results": ['
for n in $(echo "$list" | tr , ' '); do
  printf '%s{"command": "sort %s", "mean": 1, "parameters": {"n": "%s"}, "times": [' "$next" "$n" "$n"
  comma=; for i in $(seq $runs); do printf '%s%s.%s%se-8' "$comma" "$(cat code)" "$i" "$$"; comma=,; done
  printf ']}'; next=,
done; printf ']}'; } > "$out"
"#;

#[test]
fn commands_of_hyperfine_are_benchmarks_each() {
    let suite = "[harness]\nkind = \"hyperfine\"\nonly = [\"sort 2\"]\ncommand = [\"./hyperfine.sh\", \"--shell=none\", \"--warmup\", \"9\", \"-L\", \"n\", \"1,2\", \"sort {n}\"]\n";
    is_found(&slower_by_half(suite, &[("hyperfine.sh", HYPERFINE)]), "sort_2__n___2_", "sort 2 (n = 2)");
}

const JMH: &str = r#"#!/bin/sh
while [ $# -gt 0 ]; do case $1 in
  -lp) printf 'Benchmarks: \norg.Words.count\n  param "size" = {10, 20}\n'; exit ;;
  -rff) out=$2; shift ;;
  -i) count=$2; shift ;;
  -p) param=$2; shift ;;
  -f|-wi|-w|-r|-foe|-rf) shift ;;
  *) name=$1 ;;
esac; shift; done
[ "$name" = '^org\.Words\.count$' ] || { echo "no benchmark $name" >&2; exit 1; }
{ printf '[{"benchmark": "org.Words.count", "mode": "avgt", "params": {"size": "%s"}, "primaryMetric": {"scoreUnit": "ns/op", "rawData": [[' "${param#size=}"
for i in $(seq $count); do printf '%s%s.%s%s' "$comma" "$(cat code)" "$i" "$$"; comma=,; done; printf ']]}}]'; } > "$out"
"#;

#[test]
fn benchmarks_of_jmh_have_one_value_of_each_parameter() {
    let suite = "[harness]\nkind = \"jmh\"\ncommand = [\"./java.sh\"]\nonly = [\"size=20\"]\n";
    is_found(
        &slower_by_half(suite, &[("java.sh", JMH)]),
        "org_Words_count_size_20",
        "org.Words.count:size=20",
    );
}

/// Its samples are ten microseconds, or fifteen, as `f32`: together less than the script takes.
const NVBENCH: &str = r#"#!/bin/sh
while [ $# -gt 0 ]; do case $1 in
  --json|--jsonbin) out=$2; shift ;;
  --min-samples) count=$2; shift ;;
  --benchmark|--devices|--axis) chosen="$chosen $2"; shift ;;
esac; shift; done
case $chosen in ''|' copy 0 Elements=256') ;; *) echo "unexpected:$chosen" >&2; exit 1 ;; esac
[ "$(cat code)" = 1000 ] && bytes='\254\305\047\067' || bytes='\202\250\173\067'
mkdir "$out-bin" && for i in $(seq ${count:-1}); do printf "$bytes"; done > "$out-bin/0.bin"
cat > "$out" <<END
{"meta": {"version": {"nvbench": {}}}, "devices": [], "benchmarks": [{"name": "copy", "states": [{"device": 0,
 "axis_values": [{"name": "Elements", "type": "int64", "value": "256"}], "is_skipped": false, "summaries": [
 {"tag": "nv/json/bin:nv/cold/sample_times", "data": [{"name": "filename", "type": "string", "value": "turn.json-bin/0.bin"}]}]}]}]}
END
"#;

#[test]
fn benchmarks_of_nvbench_are_read_from_their_files_of_samples() {
    let suite = "[harness]\nkind = \"nvbench\"\ncommand = [\"./bench.sh\"]\n";
    is_found(&slower_by_half(suite, &[("bench.sh", NVBENCH)]), "copy_Elements_256", "copy/Elements=256");
}

#[test]
fn a_suite_of_a_further_harness_that_cannot_be_driven_is_named_with_its_cause() {
    let here = Here::repository();
    for kind in ["pyperf", "catch2", "hyperfine", "nvbench"] {
        here.write("perf.toml", &format!("[harness]\nkind = \"{kind}\"\n"));
        here.run(&["run", "--suite", "perf.toml"]).refuses(64, &["harness: needs `command`"]);
    }
    here.write("perf.toml", "[harness]\nkind = \"catch2\"\ncommand = [\"true\"]\n");
    here.run(&["run", "--suite", "perf.toml"]).refuses(64, &["catch2: ", "turn.xml"]);
}

/// Three tests, of which `test_single` fails in a process that also runs another. Each process writes down which ones it was given.
const PYTEST: &str = r#"#!/bin/sh
for word in "$@"; do case $word in
  --benchmark-json=*) out=${word#*=} ;;
  --benchmark-min-rounds=*) rounds=${word#*=} ;;
  *::*) given="$given $word" ;;
esac; done
echo "$given" >> GIVEN
case $given in *single*::*|*::*::*single) echo 'assert False' >&2; exit 1 ;; esac
{ printf '{"machine_info": {}, "version": "5.3.1", "benchmarks": ['
for id in ${given:-a.py::test_a a.py::test_b a.py::test_single}; do
  printf '%s{"fullname": "%s", "stats": {"median": 1, "data": [' "$next" "$id"
  comma=; for i in $(seq $rounds); do printf '%s%s.%s%se-9' "$comma" "$(cat code)" "$i" "$$"; comma=,; done
  printf ']}}'; next=,
done; printf ']}'; } > "$out"
"#;

/// The tests that each process was given.
fn given_to_pytest(only: &str) -> Vec<String> {
    let notes = tempfile::tempdir().unwrap();
    let given = notes.path().join("given");
    let suite = format!("[harness]\nkind = \"pytest-benchmark\"\ncommand = [\"./pytest\"]\nonly = {only}\n");
    let pytest = PYTEST.replace("GIVEN", given.to_str().unwrap());
    is_found(&slower_by_half(&suite, &[("pytest", &pytest)]), "a_py__test_a", "a.py::test_a");
    std::fs::read_to_string(given).unwrap().lines().map(|line| line.trim().to_owned()).collect()
}

#[test]
fn tests_of_pytest_share_processes() {
    let given = given_to_pytest(r#"["test_a", "test_b"]"#);
    let counted = |ids: &str| given.iter().filter(|line| *line == ids).count();
    let both = counted("a.py::test_a a.py::test_b") + counted("a.py::test_b a.py::test_a");
    assert!(both >= 10, "{given:?}");
    let alone = counted("a.py::test_a") + counted("a.py::test_b");
    assert!(alone <= 4, "only the first turns, which show how long a call is: {given:?}");
}

#[test]
fn tests_of_pytest_that_fail_together_are_run_one_by_one() {
    let given = given_to_pytest(r#"["test_a", "test_single"]"#);
    assert!(given.iter().filter(|line| *line == "a.py::test_single").count() >= 10, "{given:?}");
    assert_eq!(
        given.iter().filter(|line| line.contains(' ')).count(),
        1,
        "they are not tried again: {given:?}"
    );
}

/// Of a version that takes whole seconds only.
const CRITERION: &str = r#"#!/bin/sh
while [ $# -gt 0 ]; do case $1 in
  --list) echo 'words: bench'; exit ;;
  --warm-up-time|--measurement-time)
    case $2 in *.*) echo "error: Invalid value: The argument '$2' isn't a valid value" >&2; exit 1 ;; esac; shift ;;
  --sample-size) count=$2; shift ;;
esac; shift; done
mkdir -p "$CRITERION_HOME/words/new"; cd "$CRITERION_HOME/words/new"
echo '{"group_id": "words", "function_id": null, "value_str": null, "throughput": null, "full_id": "words"}' > benchmark.json
{ printf '{"sampling_mode": "Flat", "iters": ['; for i in $(seq $count); do printf '%s1.0' "$comma"; comma=,; done
comma=; printf '], "times": ['; for i in $(seq $count); do printf '%s%s.%s' "$comma" "$CODE" "$i$$"; comma=,; done; printf ']}'; } > sample.json
"#;

#[test]
fn benchmarks_of_an_old_criterion_take_whole_seconds() {
    let suite = "[harness]\nkind = \"criterion\"\ncommand = [\"./cargo.sh\", \"bench\"]\n";
    let criterion = CRITERION.replacen("\n", "\nCODE=$(cat code)\n", 1);
    let cargo = CARGO.replace("divan.sh", "criterion.sh");
    let programs = [("cargo.sh", cargo.as_str()), ("criterion.sh", criterion.as_str())];
    is_found(&slower_by_half(suite, &programs), "words", "words");
}
