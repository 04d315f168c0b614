//! The roofline as a part of a page: a picture beside the page, a table, and what to do.

use super::escape;
use super::tables::{left, right, table};
use crate::units::{self, MISSING};
use holdpoint_model::Roofline;
use holdpoint_model::roofline::Placement;

/// The part, with a picture that lies in this place.
#[must_use]
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
    let columns = [
        left("workload"),
        right("FLOP/byte"),
        right("arithmetic"),
        right("bandwidth"),
        left("bound by"),
        right("of the roof"),
        left("what to do"),
    ];
    let rows: Vec<Vec<String>> = r.workloads.iter().map(|(name, placement)| row(name, placement)).collect();
    out += &table(&columns, &rows);
    let notes: String = r.notes.iter().map(|note| format!("- {}\n", escape::prose(note))).collect();
    if notes.is_empty() { out } else { out + "\n" + &notes }
}

fn row(name: &str, placement: &Placement) -> Vec<String> {
    let missing = || MISSING.to_owned();
    let placed = match placement {
        Placement::Placed(placed) => placed,
        Placement::Unplaced { reason } => {
            let mut cells = vec![escape::name(name)];
            cells.extend((0..5).map(|_| missing()));
            cells.push(format!("not placed: {}", escape::prose(reason)));
            return cells;
        }
    };
    let rate = |key: &str, rate: Option<f64>| rate.map_or_else(missing, |rate| units::throughput(key, rate));
    let advice: Vec<String> = placed.recommendations.iter().map(|text| escape::prose(text)).collect();
    vec![
        escape::name(name),
        placed.arithmetic_intensity.map_or_else(missing, units::intensity),
        rate("gflops", placed.throughput_gflops),
        rate("gb_per_s", placed.bandwidth_gb_s),
        placed.bottleneck.as_str().to_owned(),
        placed.efficiency_pct.map_or_else(missing, |pct| units::share(pct / 100.0)),
        advice.join("; "),
    ]
}
