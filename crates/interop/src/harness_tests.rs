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
    metrics
        .map(|(name, metric)| {
            (name.clone(), metric.value_ms, imported.samples_ms.get(name).map_or(1, Vec::len))
        })
        .collect()
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
fn files_of_further_harnesses_are_read_with_what_they_have() {
    for (name, metric, ms, samples) in [
        ("vitest.json", "sort_bench_ts > sort > native_p50_ms", 0.075_001_999_999_983_58, 1),
        ("pyperf.json", "count_p50_ms", 0.298_960_492_187_916_3, 6),
        ("divan.txt", "words::count::200_p50_ms", 1.561e-3, 1),
        ("divan.txt", "words::longest_p50_ms", 15.99e-3, 1),
        ("catch2-2.xml", "longest/inner, section/longest_p50_ms", 8432.1e-6, 1),
        ("catch2-2.xml", "words, counted/count 2000_p50_ms", 69_768.8e-6, 1),
        ("nvbench.json", "copy/T=F64/Elements=16777216_p50_ms", 0.105_792_000_889_778_14, 1),
        // nvbench gives a benchmark of the host the number of any device.
        ("nvbench.json", "sum_on_host/Values=200000_p50_ms", 0.145_249, 1),
    ] {
        let found = metrics(&file(name));
        let one = found.iter().find(|found| found.0 == metric).unwrap_or_else(|| panic!("{found:?}"));
        assert!((one.1 / ms - 1.0).abs() < 1e-9 && one.2 == samples, "{one:?} should be {ms} ms");
    }
    let names = |name: &str| metrics(&file(name)).into_iter().map(|found| found.0).collect::<Vec<_>>();
    assert_eq!(names("pyperf.json"), ["count_p50_ms", "longest_p50_ms"]);
    assert_eq!(names("divan.txt").len(), 3);
    assert_eq!(names("catch2-2.xml").len(), 4);
    let expected = ["words, counted/count 2000_p50_ms", "words, counted/count 200_p50_ms"];
    assert_eq!(names("catch2-3.xml"), expected);
    assert_eq!(names("hyperfine-scan.json"), ["nap (n = 1)_p50_ms", "nap (n = 2)_p50_ms"]);
    assert_eq!(names("nvbench.json").len(), 5, "what was skipped has no time");
}

#[test]
fn scores_of_jmh_become_times_in_every_mode() {
    let found = jmh::read(&text("jmh.json")).unwrap();
    let name = |method: &str| format!("org.sample.Words.{method}:kind=x,words=200");
    let names: Vec<&str> = found.iter().map(|series| series.name.as_str()).collect();
    let expected = [name("longest"), name("count"), name("sampled"), format!("{}:ss", name("sampled"))];
    assert_eq!(names, expected);
    assert!(found.iter().all(|series| series.times_ms.len() == 3), "{found:?}");
    // 0.0106 operations per microsecond.
    assert!((found[0].times_ms[0] - 1e-3 / 0.010_615_754_136_127_977).abs() < 1e-12);
    assert_eq!(metrics(&file("jmh.json")).len(), 4);
}

#[test]
fn broken_files_of_further_harnesses_are_named_by_place_and_cause() {
    let (pyperf, jmh, catch2) = (text("pyperf.json"), text("jmh.json"), text("catch2-2.xml"));
    let nvbench = text("nvbench/turn.json");
    for (text, expected) in [
        (pyperf.replace("\"second\"", "\"byte\""), "count: unit must be second"),
        (pyperf.replace("\"name\"", "\"title\""), "benchmarks: one has no name"),
        (pyperf.replace("\"values\"", "\"valued\""), "count: has no times"),
        (jmh.replace("ops/us", "ops/fortnight"), "scoreUnit must be a time/op or ops/time"),
        (jmh.replace("\"mode\"", "\"node\""), "missing field `mode`"),
        (jmh.replace("0.010615754136127977", "0.0"), "beyond reason"),
        (
            catch2.replace("value=\"10667.2\"", "value=\"much\""),
            "words, counted/count 200: its mean is missing",
        ),
        (
            catch2.replace("<mean value=\"10667.2\"", "<failed message=\"no heap\"/><mean value=\"1\""),
            "no heap",
        ),
        (catch2[..catch2.len() / 2].to_owned(), "a file of Catch2"),
        (text("divan.txt").replace("1.561 µs", "1.561 jiffies"), "words::count::200: its time must be"),
        (text("divan.txt").replace("1.561 µs", "-1 µs"), "not a time"),
        (
            nvbench.replace("time/gpu/me", "time/gpu/no"),
            "copy/T=F32/Elements=16777216: has no median or mean",
        ),
        (nvbench.replace("4.867200180888176e-05", "1e300"), "beyond reason"),
    ] {
        let error = import(&Source::File(text)).unwrap_err().to_string();
        assert!(error.contains(expected), "{error} should contain {expected:?}");
    }
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
