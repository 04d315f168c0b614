//! The roofline: roofs, and under them a point per workload. What counts no operations has a field of its own, beside.

use super::labels::Labels;
use super::panel::{Axis, Panel};
use super::{Area, Canvas, FONT_SIZE, text_width};
use crate::units;
use holdpoint_model::Roofline;
use holdpoint_model::roofline::{Bandwidth, Bottleneck, Placed, Placement};
use std::fmt::Write;

const WIDTH: f64 = 1000.0;
const HEIGHT: f64 = 600.0;
const TOP: f64 = 92.0;
const BOTTOM: f64 = 548.0;
const LEFT: f64 = 58.0;
const RIGHT: f64 = 986.0;
/// Width of the field of what only moves bytes, and of the room between it and the other.
const STRIP: f64 = 250.0;
const BETWEEN: f64 = 66.0;

/// Scoped to the picture, so that it may stand inside a page. The colours of points are told apart without colour by their legend.
const STYLE: &str = "\
.hp-roofline{--bg:#fff;--ink:#1f2328;--dim:#59636e;--grid:#e4e8ec;--roof:#1f2328;--memory:#0969da;--cache:#0f7b6c;\
--compute:#bc4c00;--launch:#8250df;--above:#cf222e;\
font:11px system-ui,-apple-system,'Segoe UI',Roboto,'DejaVu Sans',Arial,sans-serif}
@media (prefers-color-scheme:dark){.hp-roofline{--bg:#0d1117;--ink:#e6edf3;--dim:#9198a1;--grid:#242a32;--roof:#e6edf3;\
--memory:#58a6ff;--cache:#3fc1ad;--compute:#f0883e;--launch:#bc8cff;--above:#ff7b72}}
.hp-roofline .bg{fill:var(--bg)}.hp-roofline text{fill:var(--ink)}.hp-roofline .head{font-size:15px;font-weight:600}
.hp-roofline .tick,.hp-roofline .title,.hp-roofline .roofname,.hp-roofline .publicname{fill:var(--dim)}
.hp-roofline .end{text-anchor:end}.hp-roofline .middle{text-anchor:middle}
.hp-roofline .grid{stroke:var(--grid)}.hp-roofline .axis{stroke:var(--dim)}
.hp-roofline .roof{stroke:var(--roof);stroke-width:1.8}.hp-roofline .cacheroof{stroke:var(--cache);stroke-width:1.4}
.hp-roofline .public{stroke:var(--dim);stroke-width:1.2;stroke-dasharray:5 4}.hp-roofline .leader{stroke:var(--dim);stroke-width:.6}
.hp-roofline circle{stroke:var(--bg);stroke-width:1}
.hp-roofline .memory{fill:var(--memory)}.hp-roofline .cache{fill:var(--cache)}.hp-roofline .compute{fill:var(--compute)}
.hp-roofline .launch{fill:var(--launch)}.hp-roofline .above{fill:var(--above)}
";

/// The picture, as a document of its own that may also stand inside HTML.
#[must_use]
pub fn roofline(r: &Roofline) -> String {
    let points = points(r);
    let (bytes_only, others): (Vec<_>, Vec<_>) = points.into_iter().partition(|point| point.gflops.is_none());
    let mut canvas = Canvas::default();
    head(r, &mut canvas);
    let start = if bytes_only.is_empty() { LEFT } else { LEFT + STRIP + BETWEEN };
    let height = BOTTOM - TOP;
    if !bytes_only.is_empty() {
        let width = if others.is_empty() { RIGHT - LEFT } else { STRIP };
        strip(r, &bytes_only, Area { x: LEFT, y: TOP, width, height }, &mut canvas);
    }
    if !others.is_empty() || bytes_only.is_empty() {
        field(r, &others, Area { x: start, y: TOP, width: RIGHT - start, height }, &mut canvas);
    }
    let title = super::escaped(&format!("Roofline of {} on {}", r.suite, r.device));
    let mut out = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" class=\"hp-roofline\" viewBox=\"0 0 {WIDTH} {HEIGHT}\" role=\"img\">\n<title>{title}</title>\n"
    );
    let _ =
        write!(out, "<style>{STYLE}</style>\n<rect class=\"bg\" width=\"{WIDTH}\" height=\"{HEIGHT}\"/>\n");
    out + &canvas.0 + "</svg>\n"
}

/// A workload on the picture.
struct Point<'a> {
    name: &'a str,
    placed: &'a Placed,
    gb_per_s: Option<f64>,
    gflops: Option<f64>,
}

fn points(r: &Roofline) -> Vec<Point<'_>> {
    r.workloads
        .iter()
        .filter_map(|(name, placement)| {
            let Placement::Placed(placed) = placement else { return None };
            let usable = |rate: Option<f64>| rate.filter(|rate| rate.is_finite() && *rate > 0.0);
            let (gb_per_s, gflops) = (usable(placed.bandwidth_gb_s), usable(placed.throughput_gflops));
            (gb_per_s.is_some() || gflops.is_some()).then_some(Point { name, placed, gb_per_s, gflops })
        })
        .collect()
}

fn head(r: &Roofline, canvas: &mut Canvas) {
    canvas.text("head", [LEFT - 44.0, 26.0], &format!("{} on {}", r.suite, r.device));
    let mut x = LEFT - 38.0;
    let all = [
        (Bottleneck::Memory, "bound by memory"),
        (Bottleneck::Cache, "bound by a cache"),
        (Bottleneck::Compute, "bound by arithmetic"),
        (Bottleneck::Launch, "bound by its launch"),
        (Bottleneck::AboveCeiling, "above a ceiling: a count is wrong"),
    ];
    let is_there = |bottleneck: Bottleneck| {
        r.workloads
            .values()
            .any(|p| matches!(p, Placement::Placed(placed) if placed.bottleneck == bottleneck))
    };
    for (bottleneck, words) in all.into_iter().filter(|(bottleneck, _)| is_there(*bottleneck)) {
        canvas.circle(bottleneck.as_str(), [x, 46.0], 5.0, words);
        canvas.text("", [x + 10.0, 50.0], words);
        x += text_width(words) + 26.0;
    }
    for (class, words, there) in
        [("roof", "measured", true), ("public", "data sheet", r.public_peaks.is_some())]
    {
        if there {
            canvas.line(class, [x, 46.0], [x + 26.0, 46.0]);
            canvas.text("", [x + 32.0, 50.0], words);
            x += text_width(words) + 52.0;
        }
    }
}

/// The bandwidths to be drawn: memory, and the caches that some workload is held against.
fn bandwidths(r: &Roofline) -> Vec<(&Bandwidth, &'static str)> {
    let is_over = |cache: &Bandwidth, placement: &Placement| match placement {
        Placement::Placed(placed) => placed.ceiling.workload == cache.workload,
        Placement::Unplaced { .. } => false,
    };
    let is_used = |cache: &&Bandwidth| r.workloads.values().any(|placement| is_over(cache, placement));
    let caches = r.ceilings.caches.iter().filter(is_used).map(|cache| (cache, "cacheroof"));
    caches.chain([(&r.ceilings.memory, "roof")]).collect()
}

/// What only moves bytes: one point above the other by its bandwidth.
fn strip(r: &Roofline, points: &[Point<'_>], area: Area, canvas: &mut Canvas) {
    let roofs = bandwidths(r);
    let public = r.public_peaks.as_ref().map(|peaks| peaks.gb_per_s);
    let mut values: Vec<f64> = roofs.iter().map(|(roof, _)| roof.gb_per_s).chain(public).collect();
    values.extend(points.iter().filter_map(|point| point.gb_per_s));
    let panel = Panel { area, x: None, y: Axis::over(&values, 2.0, 2.0) };
    panel.draw(canvas, ["B/s", "no operations counted"]);
    let mut labels = Labels::new(area);
    for (roof, class) in roofs {
        let label = format!("{} {}", roof.workload, units::throughput("gb_per_s", roof.gb_per_s));
        level(&panel, roof.gb_per_s, class, &label, (0.0, canvas), &mut labels);
    }
    if let Some(gb_per_s) = public {
        let label = units::throughput("gb_per_s", gb_per_s);
        level(&panel, gb_per_s, "public", &label, (0.0, canvas), &mut labels);
    }
    let places = points.iter().map(|point| panel.at(0.06, point.gb_per_s.unwrap_or_default())).collect();
    named(points, places, &mut labels, canvas);
}

/// What counts operations: by how many per byte, and how many per second.
fn field(r: &Roofline, points: &[Point<'_>], area: Area, canvas: &mut Canvas) {
    let roofs = bandwidths(r);
    let levels = levels(r, points);
    let highest = levels.iter().map(|level| level.gflops).fold(0.0, f64::max);
    let intensity = |point: &Point<'_>| Some(point.gflops? / point.gb_per_s?);
    let mut xs: Vec<f64> = points.iter().filter_map(intensity).collect();
    let mut ys: Vec<f64> = points.iter().filter_map(|point| point.gflops).collect();
    if highest > 0.0 {
        xs.push(highest / r.ceilings.memory.gb_per_s);
        ys.push(highest);
    }
    let (x, y) = (Axis::over(&xs, 3.0, 4.0), Axis::over(&ys, 4.0, 2.5));
    let panel = Panel { area, x: Some(x), y };
    panel.draw(canvas, ["FLOP/s", "FLOP per byte"]);
    let mut labels = Labels::new(area);
    for Level { name, gflops, class } in &levels {
        let label = format!("{name} {}", units::throughput("gflops", *gflops));
        // Flat from where the quickest memory could feed it.
        let from = roofs.iter().map(|(roof, _)| roof.gb_per_s).fold(0.0, f64::max);
        let [start, end] = x.ends();
        let from = ((gflops / from).max(start).log10() - start.log10()) / (end.log10() - start.log10());
        level(&panel, *gflops, class, &label, (from, canvas), &mut labels);
    }
    let public = r.public_peaks.as_ref().map(|peaks| (peaks.gb_per_s, "data sheet", "public"));
    let slopes = roofs.iter().map(|(roof, class)| (roof.gb_per_s, roof.workload.as_str(), *class));
    for (at, (gb_per_s, name, class)) in slopes.chain(public).enumerate() {
        let label = format!("{name} {}", units::throughput("gb_per_s", gb_per_s));
        slope(&panel, gb_per_s, highest, class, (at, &label), canvas, &mut labels);
    }
    let place = |point: &Point<'_>| {
        // Nothing but operations: as far to the right as it goes.
        panel.at(intensity(point).unwrap_or(x.ends()[1] * 0.9), point.gflops.unwrap_or_default())
    };
    let places = points.iter().map(place).collect();
    named(points, places, &mut labels, canvas);
}

/// A flat roof.
struct Level {
    name: String,
    gflops: f64,
    class: &'static str,
}

/// Arithmetic of the element types that there are points of.
fn levels(r: &Roofline, points: &[Point<'_>]) -> Vec<Level> {
    let by_point = |unit: &str| points.iter().any(|point| point.placed.dtype == unit);
    let is_shown = |unit: &str| unit == "f32" || by_point(unit) || (unit == "tf32" && by_point("f32"));
    let measured = r.ceilings.compute.iter().filter(|(unit, _)| is_shown(unit));
    let mut all: Vec<Level> = measured
        .map(|(unit, compute)| Level { name: unit.clone(), gflops: compute.gflops, class: "roof" })
        .collect();
    let public = r.public_peaks.iter().flat_map(|peaks| &peaks.tflops);
    let is_measured = |unit: &str| r.ceilings.compute.contains_key(unit);
    all.extend(public.filter(|(unit, _)| is_shown(unit) && is_measured(unit)).map(|(unit, tflops)| Level {
        name: format!("{unit} data sheet"),
        gflops: tflops * 1e3,
        class: "public",
    }));
    all
}

/// A flat line with its name above it at the right end, or below where that is taken.
fn level(
    panel: &Panel,
    value: f64,
    class: &str,
    label: &str,
    (from, canvas): (f64, &mut Canvas),
    labels: &mut Labels,
) {
    let area = panel.area;
    let [_, y] = panel.at(1.0, value);
    canvas.line(class, [area.x + from * area.width, y], [area.right(), y]);
    let width = text_width(label);
    let at = |below: bool| Area {
        x: area.right() - width - 4.0,
        y: if below { y + 2.0 } else { y - FONT_SIZE - 4.0 },
        width,
        height: FONT_SIZE + 2.0,
    };
    let place = if labels.is_free(&at(false)) { at(false) } else { at(true) };
    canvas.text("roofname end", [area.right() - 4.0, place.y + FONT_SIZE], label);
    labels.take(place);
    labels.take(Area { x: area.x, y: y - 1.0, width: area.width, height: 2.0 });
}

/// A line along which bytes are what limits, up to the highest flat roof; its name along it, each further along than the one before.
fn slope(
    panel: &Panel,
    gb_per_s: f64,
    highest: f64,
    class: &str,
    (at, label): (usize, &str),
    canvas: &mut Canvas,
    labels: &mut Labels,
) {
    let Some(axis) = panel.x else { return };
    let ([x_low, x_high], [y_low, _]) = (axis.ends(), panel.y.ends());
    let from = x_low.max(y_low / gb_per_s);
    let to = if highest > 0.0 { x_high.min(highest / gb_per_s) } else { x_high };
    if from >= to {
        return;
    }
    let (start, end) = (panel.at(from, from * gb_per_s), panel.at(to, to * gb_per_s));
    canvas.line(class, start, end);
    let degrees = panel.diagonal_degrees();
    let (sin, cos) = degrees.to_radians().sin_cos();
    let along = 14.0 + at as f64 * 34.0;
    let below = if class == "public" { -5.0 } else { FONT_SIZE + 2.0 };
    let [x, y] = [start[0] + along * cos - below * sin, start[1] + along * sin + below * cos];
    canvas.turned("roofname", [x, y], degrees, label);
    // A turned text as a row of small squares.
    let steps = (text_width(label) / FONT_SIZE).ceil() as usize;
    for step in 0..steps {
        let along = step as f64 * FONT_SIZE;
        labels.take(Area {
            x: x + along * cos,
            y: y + along * sin - FONT_SIZE,
            width: FONT_SIZE,
            height: FONT_SIZE,
        });
    }
}

/// Points with their names; all points first, so that no name hides one.
fn named(points: &[Point<'_>], places: Vec<[f64; 2]>, labels: &mut Labels, canvas: &mut Canvas) {
    const RADIUS: f64 = 5.0;
    for [x, y] in &places {
        labels.take(Area { x: x - RADIUS, y: y - RADIUS, width: 2.0 * RADIUS, height: 2.0 * RADIUS });
    }
    let mut order: Vec<(&Point<'_>, [f64; 2])> = points.iter().zip(places).collect();
    order.sort_by(|(_, a), (_, b)| a[1].total_cmp(&b[1]));
    for (point, at) in order {
        let place = labels.place(at, point.name);
        let Area { x, y, width, height } = place.area;
        if place.is_far {
            let near = if x > at[0] { x - 1.0 } else { x + width + 1.0 };
            canvas.line("leader", at, [near, y + height / 2.0]);
        }
        let bottleneck = point.placed.bottleneck.as_str();
        let share = point.placed.efficiency_pct.map_or_else(String::new, |pct| format!(", {pct:.0} %"));
        canvas.circle(bottleneck, at, RADIUS, &format!("{}: {bottleneck}{share}", point.name));
        canvas.text("", [x, y + height - 3.5], point.name);
    }
}
