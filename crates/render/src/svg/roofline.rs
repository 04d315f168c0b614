//! The roofline: roofs, and under them a point per workload. Workloads without operations have a field of their own, beside.

use super::labels::{Labels, Side};
use super::panel::{Axis, Panel};
use super::{Area, Canvas, text_width};
use crate::units;
use holdpoint_model::Roofline;
use holdpoint_model::roofline::{Bandwidth, Bottleneck, Placed, Placement};
use std::fmt::Write;

const WIDTH: f64 = 1000.0;
const HEIGHT: f64 = 600.0;
const TOP: f64 = 108.0;
const BOTTOM: f64 = 548.0;
const LEFT: f64 = 58.0;
const RIGHT: f64 = 986.0;
/// Width of the field of what only moves bytes, and of the room between it and the other.
const STRIP: f64 = 250.0;
const BETWEEN: f64 = 66.0;

/// Scoped to the picture, so that it may stand inside a page. The legend names the colours of points.
const STYLE: &str = "\
.hp-roofline{--bg:#fff;--ink:#1f2328;--dim:#59636e;--grid:#e4e8ec;--roof:#1f2328;--memory:#0969da;--cache:#0f7b6c;\
--compute:#bc4c00;--launch:#8250df;--above:#cf222e;\
font:11px system-ui,-apple-system,'Segoe UI',Roboto,'DejaVu Sans',Arial,sans-serif}
@media (prefers-color-scheme:dark){.hp-roofline{--bg:#0d1117;--ink:#e6edf3;--dim:#9198a1;--grid:#242a32;--roof:#e6edf3;\
--memory:#58a6ff;--cache:#3fc1ad;--compute:#f0883e;--launch:#bc8cff;--above:#ff7b72}}
.hp-roofline .bg{fill:var(--bg)}.hp-roofline text{fill:var(--ink)}.hp-roofline .head{font-size:15px;font-weight:600}
.hp-roofline .tick,.hp-roofline .title,.hp-roofline .roofname{fill:var(--dim)}
.hp-roofline .end{text-anchor:end}.hp-roofline .middle{text-anchor:middle}
.hp-roofline .grid{stroke:var(--grid)}.hp-roofline .axis{stroke:var(--dim)}
.hp-roofline .roof{stroke:var(--roof);stroke-width:1.8}.hp-roofline .cacheroof{stroke:var(--cache);stroke-width:1.4}
.hp-roofline .public{stroke:var(--dim);stroke-width:1.2;stroke-dasharray:5 4}.hp-roofline .leader{stroke:var(--dim);stroke-width:.6}
.hp-roofline circle{stroke:var(--bg);stroke-width:1}
.hp-roofline .memory{fill:var(--memory)}.hp-roofline .cache{fill:var(--cache)}.hp-roofline .compute{fill:var(--compute)}
.hp-roofline .launch{fill:var(--launch)}.hp-roofline .above{fill:var(--above)}
";

/// Whether there is anything to draw under the roofs.
pub fn has_points(r: &Roofline) -> bool {
    !points(r).is_empty()
}

/// The picture, as a document of its own that may also stand inside HTML.
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
    out + &canvas.body + "</svg>\n"
}

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
    let mut x = LEFT - 43.0;
    for Roof { value, class, name } in bandwidths(r) {
        let label = format!("{name} {}", units::throughput("gb_per_s", value));
        canvas.line(class, [x, 66.0], [x + 26.0, 66.0]);
        canvas.text("roofname", [x + 32.0, 70.0], &label);
        x += text_width(&label) + 46.0;
    }
}

struct Roof {
    value: f64,
    class: &'static str,
    name: String,
}

/// The bandwidths to be drawn: memory, the caches that some workload is compared with, the maker's; the highest first.
fn bandwidths(r: &Roofline) -> Vec<Roof> {
    let is_over = |cache: &Bandwidth, placement: &Placement| match placement {
        Placement::Placed(placed) => placed.ceiling.workload == cache.workload,
        Placement::Unplaced { .. } => false,
    };
    let is_used = |cache: &&Bandwidth| r.workloads.values().any(|placement| is_over(cache, placement));
    let roof = |bandwidth: &Bandwidth, class: &'static str| Roof {
        value: bandwidth.gb_per_s,
        class,
        name: bandwidth.workload.clone(),
    };
    let mut all: Vec<Roof> =
        r.ceilings.caches.iter().filter(is_used).map(|cache| roof(cache, "cacheroof")).collect();
    all.push(roof(&r.ceilings.memory, "roof"));
    let public = r.public_peaks.as_ref().map(|peaks| peaks.gb_per_s);
    all.extend(public.map(|value| Roof { value, class: "public", name: "data sheet".to_owned() }));
    all.sort_by(|a, b| b.value.total_cmp(&a.value));
    all
}

/// Arithmetic of the element types that there are points of; the highest first.
fn levels(r: &Roofline, points: &[Point<'_>]) -> Vec<Roof> {
    let by_point = |unit: &str| points.iter().any(|point| point.placed.dtype == unit);
    let is_shown = |unit: &str| unit == "f32" || by_point(unit);
    let measured = r.ceilings.compute.iter().filter(|(unit, _)| is_shown(unit));
    let mut all: Vec<Roof> = measured
        .map(|(unit, compute)| Roof { value: compute.gflops, class: "roof", name: unit.clone() })
        .collect();
    let public = r.public_peaks.iter().flat_map(|peaks| &peaks.tflops);
    let is_drawn = |unit: &str| is_shown(unit) && r.ceilings.compute.contains_key(unit);
    all.extend(public.filter(|(unit, _)| is_drawn(unit)).map(|(unit, tflops)| Roof {
        value: tflops * 1e3,
        class: "public",
        name: format!("{unit} data sheet"),
    }));
    all.sort_by(|a, b| b.value.total_cmp(&a.value));
    all
}

/// Workloads that only move bytes: one point above the other by its bandwidth.
fn strip(r: &Roofline, points: &[Point<'_>], area: Area, canvas: &mut Canvas) {
    let roofs = bandwidths(r);
    let mut values: Vec<f64> = roofs.iter().map(|roof| roof.value).collect();
    values.extend(points.iter().filter_map(|point| point.gb_per_s));
    let panel = Panel { area, x: None, y: Axis::over(&values, 2.0, 2.0) };
    panel.draw(canvas, ["B/s", "no operations counted"]);
    let mut labels = Labels::new(area);
    flat(&panel, &roofs, &|_| 0.0, "gb_per_s", canvas, &mut labels);
    let places = points.iter().map(|point| panel.at(0.06, point.gb_per_s.unwrap_or_default())).collect();
    named(points, places, &mut labels, canvas);
}

/// Workloads that count operations: by operations per byte, and per second.
fn field(r: &Roofline, points: &[Point<'_>], area: Area, canvas: &mut Canvas) {
    let (roofs, levels) = (bandwidths(r), levels(r, points));
    let highest = levels.first().map_or(0.0, |level| level.value);
    let quickest = roofs.first().map_or(1.0, |roof| roof.value);
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
    for roof in &roofs {
        slope(&panel, x, roof, highest, canvas, &mut labels);
    }
    // Flat from where the quickest bandwidth could feed it.
    let from = |gflops: f64| x.share(gflops / quickest).max(0.0);
    flat(&panel, &levels, &from, "gflops", canvas, &mut labels);
    let place = |point: &Point<'_>| {
        // Nothing but operations: as far to the right as it goes.
        panel.at(intensity(point).unwrap_or(x.ends()[1] * 0.9), point.gflops.unwrap_or_default())
    };
    let places = points.iter().map(place).collect();
    named(points, places, &mut labels, canvas);
}

/// Flat lines from a share of the width on, then their names at the right end: no name on a line.
fn flat(
    panel: &Panel,
    roofs: &[Roof],
    from: &dyn Fn(f64) -> f64,
    key: &str,
    canvas: &mut Canvas,
    labels: &mut Labels,
) {
    let area = panel.area;
    let height = |roof: &Roof| panel.at(1.0, roof.value)[1];
    for roof in roofs {
        let (x, y) = (area.x + from(roof.value) * area.width, height(roof));
        canvas.line(roof.class, [x, y], [area.right(), y]);
        labels.take(Area { x, y: y - 1.5, width: area.right() - x, height: 3.0 });
    }
    for roof in roofs {
        let label = format!("{} {}", roof.name, units::throughput(key, roof.value));
        let place = labels.place_at_end(height(roof), &label);
        canvas.text("roofname end", [place.right(), place.bottom() - 3.5], &label);
    }
}

/// A line along which bytes are what limits, up to the highest flat roof. It is named in the head.
fn slope(panel: &Panel, x: Axis, roof: &Roof, highest: f64, canvas: &mut Canvas, labels: &mut Labels) {
    /// A turned line is taken as a row of squares of this size.
    const SQUARE: f64 = 4.0;
    let ([x_low, x_high], [y_low, _]) = (x.ends(), panel.y.ends());
    let from = x_low.max(y_low / roof.value);
    let to = if highest > 0.0 { x_high.min(highest / roof.value) } else { x_high };
    if from >= to {
        return;
    }
    let (start, end) = (panel.at(from, from * roof.value), panel.at(to, to * roof.value));
    canvas.line(roof.class, start, end);
    let (dx, dy) = (end[0] - start[0], end[1] - start[1]);
    let steps = (dx.hypot(dy) / SQUARE).ceil().max(1.0);
    for step in 0..steps as u32 {
        let share = f64::from(step) / steps;
        let (x, y) = (start[0] + share * dx - SQUARE / 2.0, start[1] + share * dy - SQUARE / 2.0);
        labels.take(Area { x, y, width: SQUARE, height: SQUARE });
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
        let (class, x) = match place.side {
            Side::Right => ("", x),
            Side::Left => ("end", x + width),
            Side::Over => ("middle", x + width / 2.0),
        };
        if place.is_far {
            let middle = if place.side == Side::Over && y > at[1] { y } else { y + height / 2.0 };
            canvas.line("leader", at, [x, middle]);
        }
        let bottleneck = point.placed.bottleneck.as_str();
        let share = point.placed.efficiency_pct.map_or_else(String::new, |pct| format!(", {pct:.0} %"));
        canvas.circle(bottleneck, at, RADIUS, &format!("{}: {bottleneck}{share}", point.name));
        canvas.text(class, [x, y + height - 3.5], point.name);
    }
}
