//! Pages of HTML: what our Markdown says, and nothing that a name brings along.

use crate::apex::h200;
use holdpoint_render::{html, markdown};

#[test]
fn names_stay_text() {
    let mut report = h200();
    let measurement = report.benchmarks.values().next().unwrap().clone();
    for name in [
        "<script>alert(1)</script>",
        "[x](javascript:alert(1))",
        "![i](http://a/b.png)",
        "a|b\n# c",
        "</pre><b>",
    ] {
        report.benchmarks.insert(name.to_owned(), measurement.clone());
    }
    report.suite = "<img src=x onerror=alert(1)> & co".to_owned();
    let page = html::page(&markdown::report(&report, None), None);
    for active in ["<script", "href=", "<img", "<b>", "onerror=alert(1)>"] {
        assert!(!page.contains(active), "{active}: {page}");
    }
    assert!(page.contains("&lt;script"), "{page}");
    assert_eq!(page.matches("<h1>").count(), 1);
}

#[test]
fn a_picture_is_put_where_it_is_named_and_no_other_is() {
    let page = html::page(
        "# a\n\n![words](p.svg)\n\n![words](q.svg)\n",
        Some(("p.svg", "<?xml?>\n<svg id=\"p\"></svg>")),
    );
    assert_eq!(page.matches("<svg id=\"p\"></svg>").count(), 1);
    assert!(!page.contains("<?xml") && page.contains("q.svg"), "{page}");
}
