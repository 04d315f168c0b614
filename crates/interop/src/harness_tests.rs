//! Files of benchmark harnesses, as the tools wrote them.

use super::*;
use std::collections::BTreeMap;
use std::path::Path;

fn file(name: &str) -> Source {
    Source::File(text(name))
}

fn text(name: &str) -> String {
    let path = format!("{}/../model/tests/data/tools/{name}", env!("CARGO_MANIFEST_DIR"));
    std::fs::read_to_string(Path::new(&path)).unwrap_or_else(|e| panic!("{path}: {e}"))
}

/// Criterion's folder, by the paths below it.
fn criterion_folder() -> BTreeMap<String, String> {
    let paths = ["count", "longest"]
        .into_iter()
        .flat_map(|name| ["sample", "benchmark"].map(|file| format!("words/{name}/new/{file}.json")));
    paths.map(|path| (path.clone(), text(&format!("criterion/{path}")))).collect()
}

/// Metrics with their medians and numbers of samples.
fn metrics(source: &Source) -> Vec<(String, f64, usize)> {
    let imported = import(source).unwrap();
    let metrics = imported.current.metrics.iter();
    metrics.map(|(name, metric)| (name.clone(), metric.value_ms, imported.samples_ms[name].len())).collect()
}

#[test]
fn files_of_harnesses_are_read_with_their_samples() {
    let found = metrics(&file("google-benchmark.json"));
    assert_eq!(found[1], ("BM_count/200_p50_ms".to_owned(), 0.008_123_223_536_057_825, 3));
    assert_eq!(found.len(), 2);
    let found = metrics(&file("pytest-benchmark.json"));
    assert_eq!(found[0].0, "test_words_py::test_count[2000]_p50_ms");
    assert_eq!(found.iter().map(|(_, _, samples)| *samples).collect::<Vec<_>>(), [4, 4]);
    let found = metrics(&file("go-bench.txt"));
    assert_eq!(found[1], ("BenchmarkCount/words=200_p50_ms".to_owned(), 0.039_777, 3));
    assert_eq!(found[0], ("BenchmarkCount/words=2000_p50_ms".to_owned(), 0.092_679, 3));
    let found = metrics(&file("hyperfine.json"));
    assert_eq!(found, [("true_p50_ms".to_owned(), 7.593_754_000_000_001, 3)]);
    let found = metrics(&Source::Folder(criterion_folder()));
    assert_eq!(
        found.iter().map(|(name, ..)| name.as_str()).collect::<Vec<_>>(),
        ["words/count_p50_ms", "words/longest_p50_ms"]
    );
    assert!(found.iter().all(|(_, ms, samples)| (1e-3..1.0).contains(ms) && *samples == 10), "{found:?}");
}

#[test]
fn broken_files_of_harnesses_are_named_by_place_and_cause() {
    let google = text("google-benchmark.json");
    for (text, expected) in [
        (google.replace("\"time_unit\": \"ns\"", "\"time_unit\": \"fortnights\""), "time_unit must be"),
        (google.replace("\"real_time\"", "\"unreal_time\""), "BM_count/200: real_time is missing"),
        (google.replace("\"threads\": 1", "\"error_message\": \"no device\""), "BM_count/200: no device"),
        (google[..google.len() / 2].to_owned(), "EOF while parsing"),
        (text("hyperfine.json").replace("0.02022798,", "1e300,"), "beyond reason"),
        (text("hyperfine.json").replace("0.02022798,", "-1,"), "not a time"),
        (text("pytest-benchmark.json").replace("\"fullname\"", "\"name2\""), "missing field `fullname`"),
        ("Benchmark of nothing\n".to_owned(), "expected value"),
    ] {
        let error = import(&Source::File(text)).unwrap_err().to_string();
        assert!(error.contains(expected), "{error} should contain {expected:?}");
    }
    let mut folder = criterion_folder();
    folder.remove("words/count/new/benchmark.json");
    let error = import(&Source::Folder(folder)).unwrap_err().to_string();
    assert_eq!(error, "words/count/new/sample.json: has no benchmark.json beside it");
    let mut folder = criterion_folder();
    folder.insert("words/count/new/sample.json".to_owned(), "{\"iters\": [0], \"times\": [1]}".to_owned());
    assert!(import(&Source::Folder(folder)).unwrap_err().to_string().contains("needs as many `iters`"));
}
