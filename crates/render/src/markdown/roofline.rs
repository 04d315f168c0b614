//! The roofline section of a page: a picture, a table and advice.

use super::escape;
use crate::table::{Cell, EmptyColumns, Grid, names, numbers, words};
use crate::units::{self, MISSING};
use holdpoint_model::Roofline;
use holdpoint_model::roofline::Placement;

/// The section; `picture` is the path of an image beside the page.
pub fn roofline(r: &Roofline, picture: Option<&str>) -> String {
    let mut out = String::from("## Roofline\n\n");
    if let Some(picture) = picture.filter(|picture| escape::is_command_word(picture)) {
        out += &format!("![All workloads under the roofs of the device]({picture})\n\n");
    }
    let memory = &r.ceilings.memory;
    out += &format!(
        "{}: {} copying ({}), measured {}.\n\n",
        escape::prose(&r.device),
        units::throughput("gb_per_s", memory.gb_per_s),
        escape::name(&memory.workload),
        escape::prose(&r.ceilings.timestamp_utc)
    );
    let mut grid = Grid::new(&[
        names("workload"),
        numbers("FLOP/byte"),
        numbers("arithmetic"),
        numbers("bandwidth"),
        words("bound by"),
        numbers("of the roof"),
        words("what to do"),
    ]);
    r.workloads.iter().for_each(|(name, placement)| grid.push(row(name, placement)));
    out += &grid.markdown(EmptyColumns::Drop);
    let notes: String = r.notes.iter().map(|note| format!("- {}\n", escape::prose(note))).collect();
    if notes.is_empty() { out } else { out + "\n" + &notes }
}

fn row(name: &str, placement: &Placement) -> [Cell; 7] {
    let missing = || Cell::new(MISSING);
    let placed = match placement {
        Placement::Placed(placed) => placed,
        Placement::Unplaced { reason } => {
            let reason = Cell::new(&format!("not placed: {reason}"));
            return [Cell::name(name), missing(), missing(), missing(), missing(), missing(), reason];
        }
    };
    let rate = |key: &str, rate: Option<f64>| {
        rate.map_or_else(missing, |rate| Cell::new(&units::throughput(key, rate)))
    };
    [
        Cell::name(name),
        Cell::number(placed.arithmetic_intensity, units::intensity),
        rate("gflops", placed.throughput_gflops),
        rate("gb_per_s", placed.bandwidth_gb_s),
        Cell::new(placed.bottleneck.as_str()),
        Cell::number(placed.efficiency_pct.map(|pct| pct / 100.0), units::share),
        Cell::new(&placed.recommendations.join("; ")),
    ]
}
