//! The table of `holdpoint roofline`.

use super::{last_line, paragraphs};
use crate::paint::{Ink, Style};
use crate::table::{Cell, Column, Grid, names, numbers, words};
use crate::text::{self, entry, plural};
use crate::units::{self, MISSING};
use holdpoint_model::Roofline;
use holdpoint_model::roofline::{Bottleneck, Ceilings, Placed, Placement};

const COLUMNS: &[Column] = &[
    names("workload"),
    numbers("time").drop(3),
    numbers("FLOP/byte").drop(2),
    numbers("arithmetic").drop(1),
    numbers("bandwidth").drop(1),
    words("bound by"),
    numbers("of the roof"),
    words("roof").drop(4),
];

pub fn roofline(r: &Roofline, style: Style) -> String {
    let mut grid = Grid::new(COLUMNS);
    let mut notes = String::new();
    for (name, placement) in &r.workloads {
        match placement {
            Placement::Placed(placed) => {
                grid.push(row(name, placed));
                let body = format!("{name}: {}", placed.recommendations.join("; "));
                notes += &entry(style, ink(placed.bottleneck), placed.bottleneck.as_str(), &body);
            }
            Placement::Unplaced { reason } => {
                notes += &entry(style, Ink::Doubt, "not placed", &format!("{name}: {reason}"));
            }
        }
    }
    for note in &r.notes {
        notes += &entry(style, Ink::Doubt, "note", note);
    }
    let began = Some(format!("ceilings of {}", r.ceilings.timestamp_utc));
    let head = text::heading(style, &r.suite, &[Some(r.device.clone()), began]);
    paragraphs(&[head, roofs(r, style), grid.render(style), notes, end(r, style)])
}

/// The ceilings alone, after they were measured.
pub fn ceilings(c: &Ceilings, style: Style) -> String {
    let head = text::heading(style, &c.device, &[Some(format!("measured {}", c.timestamp_utc))]);
    paragraphs(&[head, table(c, None, style)])
}

fn roofs(r: &Roofline, style: Style) -> String {
    table(&r.ceilings, r.public_peaks.as_ref(), style)
}

fn table(c: &Ceilings, public: Option<&holdpoint_model::roofline::PublicPeaks>, style: Style) -> String {
    let mut grid = Grid::new(&[
        words("roof"),
        words("by").drop(1),
        numbers("measured"),
        numbers("data sheet"),
        numbers("reached"),
    ]);
    let mut push = |what: &str, by: &str, key: &str, rate: f64, public: Option<f64>| {
        let show = |rate: f64| units::throughput(key, rate);
        grid.push([
            Cell::new(what),
            Cell::new(by),
            Cell::new(&show(rate)).with(Ink::Strong),
            Cell::new(&public.map_or_else(|| MISSING.to_owned(), show)),
            Cell::number(public.map(|public| rate / public), units::share),
        ]);
    };
    let memory = &c.memory;
    push("memory", &memory.workload, "gb_per_s", memory.gb_per_s, public.map(|peaks| peaks.gb_per_s));
    for cache in c.caches.iter().rev() {
        let size = units::memory(cache.working_set_bytes / 1e6);
        push(&format!("cache, {size}"), &cache.workload, "gb_per_s", cache.gb_per_s, None);
    }
    for (unit, compute) in &c.compute {
        let peak = public.and_then(|peaks| peaks.tflops.get(unit)).map(|tflops| tflops * 1e3);
        push(unit, &compute.workload, "gflops", compute.gflops, peak);
    }
    for (timer, ms) in &c.launch_ms {
        let what = if c.is_gpu { format!("launch, {timer}") } else { "process".to_owned() };
        let by = if c.is_gpu { "launch" } else { "process" };
        let missing = || Cell::new(MISSING);
        grid.push([
            Cell::new(&what),
            Cell::new(by),
            Cell::number(Some(*ms), units::time).with(Ink::Strong),
            missing(),
            missing(),
        ]);
    }
    grid.render(style)
}

fn ink(bottleneck: Bottleneck) -> Ink {
    match bottleneck {
        Bottleneck::AboveCeiling => Ink::Bad,
        Bottleneck::Launch => Ink::Doubt,
        _ => Ink::Calm,
    }
}

fn row(name: &str, placed: &Placed) -> [Cell; 8] {
    let rate = |key: &str, rate: Option<f64>| {
        Cell::new(&rate.map_or_else(|| MISSING.to_owned(), |rate| units::throughput(key, rate)))
    };
    [
        Cell::new(name),
        Cell::number(Some(placed.time_ms), units::time),
        Cell::number(placed.arithmetic_intensity, units::intensity),
        rate("gflops", placed.throughput_gflops),
        rate("gb_per_s", placed.bandwidth_gb_s),
        Cell::inked(ink(placed.bottleneck), placed.bottleneck.as_str()),
        Cell::number(placed.efficiency_pct.map(|pct| pct / 100.0), units::share).with(Ink::Strong),
        Cell::new(&placed.ceiling.workload),
    ]
}

fn end(r: &Roofline, style: Style) -> String {
    let placed = || {
        r.workloads.values().filter_map(|placement| match placement {
            Placement::Placed(placed) => Some(placed),
            Placement::Unplaced { .. } => None,
        })
    };
    let above = placed().filter(|placed| placed.bottleneck == Bottleneck::AboveCeiling).count();
    let near = placed().filter(|placed| placed.efficiency_pct.is_some_and(|pct| pct >= 80.0)).count();
    let mut sentence = format!(
        "{} placed, {near} of them at 80 % of their roof or more",
        plural(placed().count(), "workload")
    );
    if above > 0 {
        sentence += &format!(", {above} above a ceiling: a count or the ceiling is wrong");
    }
    last_line(style, if above > 0 { Ink::Bad } else { Ink::Calm }, "roofline", &sentence)
}
