//! Files of other tools: compared, shown, kept and exported; hostile ones refused.

use crate::common::{Here, data};

/// Files of other tools; whether half of one is refused.
const FILES: &[(&str, bool)] = &[
    ("asv/runner/8578dec4-existing-py_python3.json", true),
    ("benchmark-tools.json", true),
    ("bmf.json", true),
    ("github-action-benchmark-data.js", true),
    ("github-action-benchmark.json", true),
    ("go-bench.txt", false),
    ("google-benchmark.json", true),
    ("hyperfine.json", true),
    ("pytest-benchmark.json", true),
    ("samples.csv", false),
    ("sglang-serving.jsonl", false),
    ("torch-benchmark.json", true),
    ("triton-testing/builtins.csv", false),
    ("tritonbench.csv", false),
    ("trtexec-profile.json", true),
    ("trtexec-times.json", true),
    ("vitest.json", true),
    ("vllm-latency.json", true),
    ("vllm-serve-detailed.json", true),
    ("vllm-serve.json", true),
    ("vllm-throughput.json", true),
];

fn tool(name: &str) -> String {
    data(&format!("tools/{name}"))
}

#[test]
fn every_file_of_another_tool_can_be_compared_shown_and_kept() {
    let here = Here::new();
    let folders = ["asv", "criterion", "triton-testing"].map(|name| (name, false));
    for (index, (name, _)) in FILES.iter().chain(&folders).enumerate() {
        let (path, history) = (tool(name), format!("history-{index}"));
        let compared = here.run(&["compare", &path, "--baseline", &path]);
        // A benchmark of tritonbench's file failed.
        compared.prints(&["the baseline names no machine"]);
        here.run(&["report", &path, "--markdown", "page.md", "--html", "page.html"]).ends(0);
        assert!(!here.read("page.md").contains("## Reproduce"), "{name}");
        here.run(&["trend", "append", &path, "--dir", &history]).ends(0).notes(&["appended to"]);
        here.run(&["trend", "append", &path, "--dir", &history]).ends(0).notes(&["already in"]);
    }
    let shown = ["trend", "show", "--suite", "bmf", "--dir", "history-2"];
    here.run(&shown).ends(0).prints(&["1 run, 1 not judged"]);
}

#[test]
fn a_comparison_says_what_the_files_do_not() {
    let here = Here::new();
    let path = tool("github-action-benchmark.json");
    here.run(&["compare", &path, "--baseline", &path]).ends(3).prints(&[
        "left out, as only times and rates are compared: binary (bytes)",
        "2 of 2 metrics are one number without samples: their noise is not known",
    ]);
    let other = std::fs::read_to_string(tool("vllm-serve.json")).unwrap();
    here.write("other.json", &other.replace("\"request_rate\": \"inf\"", "\"request_rate\": 8.0"));
    let arguments = ["compare", "other.json", "--baseline", &tool("vllm-serve.json")];
    here.run(&arguments).ends(3).prints(&["parameter \"request_rate\" differs"]);
    here.write("slower.csv", "\u{feff}name,value,unit\nparse,90,us\nprint,0.5,ms\nserve,1250,requests/s\n");
    let arguments = ["compare", "slower.csv", "--baseline", &tool("samples.csv"), "--policy", "allowed-max"];
    here.run(&arguments).ends(1).prints(&["1 of 3 metrics is slower than allowed (parse_p50_ms +118 %)"]);
}

#[test]
fn reports_are_exported_for_other_programs() {
    let here = Here::new();
    let report = data("report-v1.json");
    for (form, words) in [
        ("bmf", "\"latency\""),
        ("github-action-benchmark", "\"unit\": \"ms\""),
        ("openmetrics", "# EOF"),
        ("csv", "name,metric,value,unit,side,process,round,position"),
    ] {
        here.run(&["report", &report, "--as", form]).ends(0).prints(&[words]);
        here.run(&["report", &report, "--as", form, "--output", "file"]).ends(0);
        assert!(here.read("file").contains(words), "{form}");
        here.run(&["report", &tool("hyperfine.json"), "--as", form]).ends(0).prints(&["true"]);
    }
    here.run(&["report", &report, "--as", "parquet"]).refuses(64, &["--output FILE"]);
    here.run(&["report", &data("ab-v1.json"), "--as", "parquet", "-o", "ab.parquet"]).ends(0);
    assert!(std::fs::read(here.path("ab.parquet")).unwrap().ends_with(b"PAR1"));
    here.run(&["report", &data("comparison-v1.json"), "--as", "csv"]).refuses(64, &["has no samples"]);
    here.run(&["report", &data("comparison-v1.json"), "--as", "bmf"]).ends(0).prints(&["latency"]);
}

/// A mutation of a file, and whether the file is then refused.
fn hostile(text: &str, is_closed: bool) -> Vec<(&'static str, Vec<u8>, bool)> {
    let deep = format!("{}{}", "[".repeat(1_000_000), "]".repeat(1_000_000));
    let utf16 = |bytes: fn(u16) -> [u8; 2]| text.encode_utf16().flat_map(bytes).collect::<Vec<u8>>();
    let is_json = is_closed || text.starts_with('{');
    vec![
        ("empty", Vec::new(), true),
        ("half", text.as_bytes()[..text.len() / 2].to_vec(), is_closed),
        ("UTF-16", [&[0xff, 0xfe][..], &utf16(u16::to_le_bytes)].concat(), true),
        ("UTF-16 without a mark", utf16(u16::to_be_bytes), true),
        ("Latin-1", [text.as_bytes(), &[b'\n', 0xe9]].concat(), true),
        ("NUL", text.replacen(['{', ',', ';'], "\0", 1).into_bytes(), is_json),
        ("deep", deep.clone().into_bytes(), true),
        ("a deep value", text.replacen('{', &format!("{{\"deep\": {deep}, "), 1).into_bytes(), false),
        ("a huge number", text.replacen(": 1", ": 1e999, \"x\": 1", 1).into_bytes(), false),
        ("NaN", text.replacen(": 1", ": NaN, \"x\": 1", 1).into_bytes(), false),
    ]
}

#[test]
fn hostile_files_are_refused_in_one_line() {
    let here = Here::new();
    for (name, is_closed) in FILES {
        let text = std::fs::read_to_string(tool(name)).unwrap();
        for (what, bytes, is_refused) in hostile(&text, *is_closed) {
            std::fs::write(here.path("bad"), &bytes).unwrap();
            let ran = here.run(&["compare", "bad", "--baseline", &tool(name)]);
            let code = ran.code;
            assert!(
                is_refused && code == 64 || !is_refused && [0, 1, 3, 4, 64].contains(&code),
                "{what} {name}: {code}"
            );
            if code == 64 {
                ran.refuses(64, &["bad: "]);
            }
        }
    }
}
