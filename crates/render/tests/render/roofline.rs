//! The roofline as a table, a part of a page, and a picture.

use crate::values::HOSTILE;
use holdpoint_gate::roofline::{analyse, ceilings_from};
use holdpoint_model::{Report, Roofline};
use holdpoint_render::{Style, markdown, svg, terminal};
use insta::assert_snapshot;

const PLAIN: Style = Style { color: false, width: Some(120), ascii: false };

fn read(name: &str) -> Report {
    let path = format!("{}/../../docs/results/h200/{name}", env!("CARGO_MANIFEST_DIR"));
    serde_json::from_str(&std::fs::read_to_string(path).expect("a file")).expect("a report")
}

/// The GPU suite under the ceilings of the same device.
fn gpu() -> Roofline {
    let ceilings = ceilings_from(&read("ceilings-gpu.json")).expect("ceilings");
    analyse(&read("gpu.json"), ceilings).expect("the same device")
}

#[test]
fn a_table_says_what_holds_each_workload_back_and_by_which_number() {
    assert_snapshot!(terminal::roofline(&gpu(), PLAIN));
    let text = terminal::roofline(&gpu(), Style { color: false, width: Some(70), ascii: false });
    assert!(text.lines().all(|line| line.chars().count() <= 70), "{text}");
    assert_snapshot!(terminal::ceilings(&gpu().ceilings, PLAIN));
}

#[test]
fn the_part_of_a_page_shows_the_picture_beside_it() {
    assert_snapshot!(markdown::roofline(&gpu(), Some("report.roofline.svg")));
    // A place that could end the link is not linked to.
    assert!(!markdown::roofline(&gpu(), Some("a) [b](c")).contains("!["));
}

#[test]
fn the_picture_has_every_workload_and_every_roof_over_it() {
    let picture = svg::roofline(&gpu());
    assert_snapshot!(picture);
    for name in gpu().workloads.keys() {
        assert_eq!(picture.matches(&format!(">{name}</text>")).count(), 1, "{name}");
    }
}

#[test]
fn without_a_point_there_is_nothing_to_draw_and_the_reason_reads_well() {
    let mut r = gpu();
    assert!(svg::has_points(&r));
    let reason = "it declares no bytes and no operations; give it work = { bytes, flops }";
    for placement in r.workloads.values_mut() {
        *placement = holdpoint_model::roofline::Placement::Unplaced { reason: reason.to_owned() };
    }
    assert!(!svg::has_points(&r));
    let page = holdpoint_render::html::page(&markdown::roofline(&r, None), None);
    assert!(page.contains(&format!("not placed: {reason}")) && !page.contains("<img"), "{page}");
}

/// The boxes that the names on a picture take, by where they stand and how they are anchored.
fn boxes(picture: &str) -> Vec<(String, [f64; 4])> {
    let mut all = Vec::new();
    for line in picture.lines().filter(|line| line.starts_with("<text")) {
        let attribute = |name: &str| {
            let (_, rest) = line.split_once(&format!(" {name}=\""))?;
            Some(rest.split_once('"')?.0.to_owned())
        };
        let number =
            |name: &str| attribute(name).and_then(|text| text.parse::<f64>().ok()).expect("a number");
        let text =
            line.split_once('>').and_then(|(_, rest)| rest.split_once('<')).expect("a text").0.to_owned();
        let (class, width) = (attribute("class").unwrap_or_default(), 6.1 * text.chars().count() as f64);
        let x = match number("x") {
            x if class.ends_with("end") => x - width,
            x if class.ends_with("middle") => x - width / 2.0,
            x => x,
        };
        all.push((text, [x, number("y") - 10.0, width, 11.0]));
    }
    all
}

#[test]
fn no_text_of_the_gpu_suites_picture_lies_over_another() {
    let boxes = boxes(&svg::roofline(&gpu()));
    assert!(boxes.len() > 25, "{boxes:?}");
    for (i, (name, [x, y, width, height])) in boxes.iter().enumerate() {
        for (other, [ox, oy, owidth, oheight]) in &boxes[i + 1..] {
            let apart = x + width <= *ox || ox + owidth <= *x || y + height <= *oy || oy + oheight <= *y;
            assert!(apart, "{name:?} and {other:?}");
        }
    }
}

#[test]
fn hostile_names_stay_text() {
    let mut roofline = gpu();
    let placement = roofline.workloads.values().next().expect("one").clone();
    roofline.workloads = [(HOSTILE.to_owned(), placement)].into_iter().collect();
    roofline.device = HOSTILE.to_owned();
    roofline.ceilings.memory.workload = HOSTILE.to_owned();
    let picture = svg::roofline(&roofline);
    assert!(!picture.contains("<script") && !picture.contains('\u{1b}'), "{picture}");
    assert!(!terminal::roofline(&roofline, PLAIN).contains('\u{1b}'));
    assert!(!markdown::roofline(&roofline, None).contains("<script"));
}

#[test]
fn a_report_without_workloads_is_still_a_picture() {
    let mut roofline = gpu();
    roofline.workloads.clear();
    let picture = svg::roofline(&roofline);
    assert!(picture.starts_with("<svg") && picture.ends_with("</svg>\n") && !picture.contains("NaN"));
}
