use super::*;

/// Names, values and numbers of samples.
fn metrics(text: &str) -> Vec<(String, f64, usize)> {
    assert!(matches(text), "{text}");
    let imported = read(text, "csv").unwrap();
    let metrics = imported.current.metrics.iter();
    metrics
        .map(|(name, metric)| {
            (name.clone(), metric.value_ms, imported.samples_ms.get(name).map_or(1, Vec::len))
        })
        .collect()
}

fn refused(text: &str) -> String {
    read(text, "csv").unwrap_err().to_string()
}

#[test]
fn a_row_for_each_sample_and_a_unit_for_each_row() {
    let text = "name,value,unit\nparse,1,ms\nparse,3000,us\n\"a,b\",2,tokens/s\nsize,7,bytes\n";
    let expected = [("a,b_time_per_token_p50_ms".to_owned(), 500.0, 1), ("parse_p50_ms".to_owned(), 2.0, 2)];
    assert_eq!(metrics(text), expected);
    assert_eq!(read(text, "csv").unwrap().left_out, ["size (bytes)"]);
    assert_eq!(metrics("name;value\nx;1\nx;2\nx;9\n"), [("x_p50_ms".to_owned(), 2.0, 3)]);
    assert!(read("name,value\nx,1\n", "csv").unwrap().current.notes[0].contains("read as milliseconds"));
}

#[test]
fn wide_tables_have_their_units_in_their_columns() {
    let found = metrics("iteration,latency_ms,compute_us\n0,2,1000\n1,4,3000\n");
    assert_eq!(found, [("compute_p50_ms".to_owned(), 2.0, 2), ("latency_p50_ms".to_owned(), 4.0 - 1.0, 2)]);
    let found = metrics("op,size,time_ns\nsort,128.000,1e6\nsort,256,\n");
    assert_eq!(found, [("op=sort/size=128_p50_ms".to_owned(), 1.0, 1)]);
    let found = metrics("model,tokens_per_s\nm,100\n");
    assert_eq!(found, [("model=m_time_per_token_p50_ms".to_owned(), 10.0, 1)]);
    let found =
        metrics("name,metric,value,unit,process,round,position\na,time,5,ns,0,0,0\na,time,7,ns,0,1,0\n");
    assert_eq!(found, [("a_p50_ms".to_owned(), 6e-6, 2)]);
}

#[test]
fn broken_tables_are_refused_by_line() {
    for (text, expected) in [
        ("name,value\nx,one\n", "line 2: value: \"one\" is not a number"),
        ("name,value\nx,nan\n", "line 2: value: \"nan\" is not a number"),
        ("name,value\nx,1e999\n", "line 2: value: \"1e999\" is not a number"),
        ("name,value\nx\n", "line 2: has 1 cells, the first line 2"),
        ("name,value\n,1\n", "line 2: has no name"),
        ("name,value\nx,-1\n", "x: -1.0 is not a time"),
        ("name,value,unit\nx,0,ops/s\n", "line 2: a rate must be above 0"),
        ("name,value\n", "line 1: has no rows below it"),
        ("a,b\n1,2\n", "line 1: no column is a time"),
    ] {
        assert!(refused(text).starts_with(expected), "{text:?}: {}", refused(text));
    }
    for text in ["no JSON", "a,b\n1,2", "", "{\"name\": 1, \"value\": 2}", "one, two and a value"] {
        assert!(!matches(text), "{text}");
    }
}
