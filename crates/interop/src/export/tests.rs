use super::*;
use crate::{Source, import};
use holdpoint_model::document;

fn data(name: &str) -> String {
    let path = format!("{}/../model/tests/data/{name}", env!("CARGO_MANIFEST_DIR"));
    std::fs::read_to_string(&path).unwrap_or_else(|e| panic!("{path}: {e}"))
}

fn report() -> Report {
    document::read(&data("report-v1.json")).unwrap()
}

#[test]
fn what_is_exported_is_read_back_with_the_same_medians() {
    let report = report();
    let export = Export::from(&report);
    assert!(export.values.len() > 1 && export.samples.len() > export.values.len());
    let medians: Vec<f64> = export.values.iter().map(|value| value.p50_ms).collect();
    let texts = [csv(&export), bmf(&export).to_string(), github_action_benchmark(&export).to_string()];
    for text in texts {
        let imported = import(&Source::from(text.as_str())).unwrap();
        for value in &export.values {
            let prefix = value.name.replace('.', "_");
            let found = imported.current.metrics.iter().find(|(key, metric)| {
                key.starts_with(&prefix) && (metric.value_ms / value.p50_ms - 1.0).abs() < 1e-9
            });
            assert!(found.is_some(), "{} of {medians:?} in {text:.300}", value.name);
        }
    }
}

#[test]
fn labels_and_cells_are_quoted() {
    let name = "a \"b\", \\c\nd";
    let value =
        Value { name, p50_ms: 1.5, others: Vec::new(), p50_interval_ms: Some([1.0, 1.75]), samples_count: 1 };
    let sample =
        Sample { name, metric: "time", value_ns: 1.5e6, side: "", process: 0, round: 2, position: 3 };
    let export = Export { suite: "s", values: vec![value], samples: vec![sample] };
    assert_eq!(csv(&export).lines().count(), 2);
    assert!(csv(&export).ends_with("\"a \"\"b\"\", \\c d\",time,1500000,ns,,0,2,3\n"));
    let expected =
        "holdpoint_time_seconds{suite=\"s\",workload=\"a \\\"b\\\", \\\\c d\",statistic=\"p50\"} 1.5e-3\n";
    assert!(openmetrics(&export).contains(expected), "{}", openmetrics(&export));
    assert!(openmetrics(&export).ends_with("# EOF\n"));
    assert_eq!(bmf(&export)[name]["latency"]["upper_value"], 1.75e6);
    assert_eq!(github_action_benchmark(&export)[0]["range"], "± 0.500000");
}

#[test]
fn no_cell_is_a_formula_and_no_text_paints() {
    for (name, cell) in [
        ("=1+1", "'=1+1"),
        ("+cmd", "'+cmd"),
        ("-x", "'-x"),
        ("@sum(a)", "'@sum(a)"),
        ("\t=1", "' =1"),
        ("\r=1", "'=1"),
        ("=a,b", "\"'=a,b\""),
        ("-1.5", "-1.5"),
        ("+1e3", "+1e3"),
        ("plain", "plain"),
        ("\u{1b}[31mred", "\\u{1b}[31mred"),
    ] {
        let sample =
            Sample { name, metric: "time", value_ns: 1.0, side: "", process: 0, round: 0, position: 0 };
        let value = Value { name, p50_ms: 1.0, others: Vec::new(), p50_interval_ms: None, samples_count: 1 };
        let export = Export { suite: name, values: vec![value], samples: vec![sample] };
        assert_eq!(csv(&export).lines().nth(1).unwrap(), format!("{cell},time,1,ns,,0,0,0"));
        for text in [csv(&export), openmetrics(&export), bmf(&export).to_string()] {
            assert!(!text.contains(|c: char| c.is_control() && c != '\n'), "{text:?}");
        }
    }
}

#[test]
fn two_sides_have_both_sides_samples_and_heads_values() {
    let sides: AbReport = document::read(&data("ab-v1.json")).unwrap();
    let export = Export::from(&sides);
    let count = |side: &str| export.samples.iter().filter(|sample| sample.side == side).count();
    assert!(count("base") > 0 && count("head") > 0 && count("") == 0);
    assert!(!export.values.is_empty());
}

#[test]
fn a_parquet_file_begins_and_ends_as_it_should() {
    let report = report();
    let export = Export::from(&report);
    let file = parquet(&export);
    assert!(file.starts_with(b"PAR1") && file.ends_with(b"PAR1"));
    let length = u32::from_le_bytes(file[file.len() - 8..file.len() - 4].try_into().unwrap()) as usize;
    let metadata = &file[file.len() - 8 - length..file.len() - 8];
    // Version 1, then the schema: a root and eight columns.
    assert_eq!(metadata[..3], [0x15, 2, 0x19]);
    assert_eq!(metadata[3], 9 << 4 | thrift::STRUCT);
    assert!(parquet(&Export::default()).len() > 100, "no rows are a file too");
}
