//! Pages and pictures: which documents have one, and where their links lead.

use crate::common::{Here, data};

const SELF_CONTAINED: &str = "default-src 'none'";

#[test]
fn every_document_has_a_page_with_charts() {
    let here = Here::new();
    for (file, words) in [
        ("ab-v1.json", "of what a decision needs"),
        ("calibration-v1.json", "Seconds to a verdict"),
        ("report-v1.json", "Distribution of"),
    ] {
        here.run(&["report", &data(file), "--html", "page.html"]).ends(0).notes(&["html: page.html"]);
        let page = here.read("page.html");
        assert!(page.starts_with("<!doctype html>") && page.contains(SELF_CONTAINED), "{file}");
        assert!(page.contains("<svg") && page.contains(words), "{file}: {page}");
    }
}

#[test]
fn a_trend_is_drawn_on_a_page_and_in_a_picture() {
    let here = Here::new();
    here.run(&["trend", "append", &data("trend-v1.json"), "--dir", "t"]).ends(0);
    let history = here.files().into_iter().find(|name| name.ends_with(".ndjson")).unwrap();
    let shown = here.run(&["trend", "show", &history, "--html", "t.html", "--svg", "t.svg"]);
    shown.ends(0).notes(&["picture: t.svg", "html: t.html"]);
    assert!(here.read("t.svg").starts_with("<svg xmlns=") && here.read("t.html").contains("<figure>"));
}

#[test]
fn a_baseline_is_drawn_with_its_runs() {
    let here = Here::new();
    here.run(&["baseline", "show", &data("baseline-v1.json"), "--html", "b.html"]).ends(0);
    let page = here.read("b.html");
    assert!(page.contains(SELF_CONTAINED) && page.contains("class=\"hp strip\""), "{page}");
}

#[test]
fn commits_lead_to_the_repository_that_is_named_and_to_no_other() {
    let here = Here::new();
    let report = data("../../../../docs/results/h200/ceilings-gpu.json");
    let url = "https://git.example.org/o/n";
    here.run(&["report", &report, "--html", "p.html", "--repository", url]).ends(0);
    assert!(here.read("p.html").contains("<a href=\"https://git.example.org/o/n/commit/"));
    here.run(&["report", &report, "--html", "p.html"]).ends(0);
    assert!(!here.read("p.html").contains("href="), "the repository here does not have the commit");
    let bad = here.run(&["report", &report, "--html", "q.html", "--repository", "javascript:alert(1)"]);
    bad.refuses(64, &["--repository javascript:alert(1) is no address such as https://host/owner/name"]);
    assert!(!here.files().contains(&"q.html".to_owned()));
}
