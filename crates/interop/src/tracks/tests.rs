use super::*;
use holdpoint_model::metric::Better;

fn read(text: &str) -> Vec<Track> {
    read_tracks(text, "file").unwrap()
}

fn shapes(text: &str) -> Vec<(String, Vec<f64>)> {
    read(text).into_iter().map(|track| (track.name.clone(), track.values())).collect()
}

#[test]
fn json_is_an_array_an_object_of_arrays_or_of_described_series() {
    assert_eq!(shapes("[1, 2.5]"), [("file".to_owned(), vec![1.0, 2.5])]);
    assert_eq!(
        shapes(r#"{"b": [1], "a": [2, 3]}"#),
        [("a".to_owned(), vec![2.0, 3.0]), ("b".to_owned(), vec![1.0])]
    );
    let text = r#"{"a": {"values": [1, null], "timestamps": ["2026-01-02T03:04:05", 5], "revisions": ["abc", null],
        "lower_is_better": false, "other": 3}}"#;
    let track = &read(text)[0];
    assert_eq!((track.better, track.points.len()), (Better::Higher, 2));
    assert!(track.points[1].value.is_nan(), "null is a run without a value");
    assert_eq!(track.points[0].at.unwrap().to_string(), "2026-01-02T03:04:05.000Z");
    assert_eq!(track.points[1].at.unwrap().millis(), 5_000);
    assert_eq!(track.points[0].commit.as_deref(), Some("abc"));
}

#[test]
fn a_table_has_a_row_for_each_point_or_a_column_for_each_series() {
    assert_eq!(shapes("1\n2\n"), [("file".to_owned(), vec![1.0, 2.0])]);
    assert_eq!(shapes("1,5\n2,6\n")[1], ("file[2]".to_owned(), vec![5.0, 6.0]));
    let wide = read("date,commit,a,b\n2026-01-02,c1,1,5\n2026-01-03,c2,2,\n");
    assert_eq!((wide.len(), wide[0].name.as_str(), wide[0].values()), (2, "a", vec![1.0, 2.0]));
    assert_eq!(wide[1].points[0].commit.as_deref(), Some("c1"));
    assert!(wide[1].points[1].value.is_nan(), "an empty cell is a run without a value");
    let long = read(
        "suite,workload,metric,machine,timestamp_utc,commit,value\ns,w,p50_ms,m,2026-01-02T00:00:00Z,c1,1\ns,x,p50_ms,m,2026-01-02T00:00:00Z,c1,7\ns,w,p50_ms,m,2026-01-03T00:00:00Z,c2,2\n",
    );
    assert_eq!((long.len(), long[0].name.as_str(), long[0].values()), (2, "w_p50_ms", vec![1.0, 2.0]));
    assert_eq!((long[0].suite.as_str(), long[0].machine.as_deref()), ("s", Some("m")));
}

#[test]
fn bad_files_are_refused_with_their_place() {
    let error = |text: &str| read_tracks(text, "file").unwrap_err().to_string();
    assert!(error("{\"a\": \"x\"}").contains("is no series"), "{}", error("{\"a\": \"x\"}"));
    assert!(error("[1, 2").contains("line 1"), "{}", error("[1, 2"));
    assert!(
        error(r#"{"a": {"values": [1], "revisions": ["x", "y"]}}"#).contains("a.revisions: has 2 entries")
    );
    assert!(
        error("value\nx\n").starts_with("line 2: value: \"x\" is not a number"),
        "{}",
        error("value\nx\n")
    );
    assert!(error("name,value\na\n").starts_with("line 2: has 1 cells"), "{}", error("name,value\na\n"));
    assert!(error("").contains("empty") && error("value\n").contains("no rows"));
}
