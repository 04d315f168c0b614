//! Measurements of `torch.utils.benchmark` as JSON. PyTorch pickles them, which is a program and not read here; they are
//! dataclasses, so a line of Python writes them: `json.dump([dataclasses.asdict(m) for m in measurements], file)`.

use crate::Format;
use crate::series::{self, ByName, Series};
use holdpoint_model::document::{Head, value_error};
use holdpoint_model::{FileError, json};
use serde::Deserialize;

pub(crate) const FORMAT: Format = Format {
    words: "measurements of torch.utils.benchmark",
    matches: |probe| probe.any_head(matches),
    read: |source| source.read_each(matches, |text| series::import("torch_benchmark", read(text)?)),
};

fn matches(head: &Head<'_>) -> bool {
    ["number_per_run", "raw_times", "task_spec"].iter().all(|key| head.has(key))
}

#[derive(Deserialize)]
struct Measurement {
    number_per_run: u64,
    /// Seconds of so many runs each.
    raw_times: Vec<f64>,
    task_spec: TaskSpec,
}

#[derive(Deserialize)]
struct TaskSpec {
    stmt: String,
    label: Option<String>,
    sub_label: Option<String>,
    description: Option<String>,
    num_threads: Option<u32>,
}

impl TaskSpec {
    /// The words by which `Compare` tells measurements apart.
    fn name(&self) -> String {
        let threads = self.num_threads.filter(|count| *count > 1).map(|count| format!("{count} threads"));
        let label = self.label.as_ref().unwrap_or(&self.stmt);
        let rest = [&self.sub_label, &self.description, &threads].into_iter().flatten();
        std::iter::once(label).chain(rest).map(String::as_str).collect::<Vec<_>>().join("/")
    }
}

fn read(text: &str) -> Result<Vec<Series>, FileError> {
    let all: Vec<Measurement> = json::parse(text)?;
    // Several measurements of the same task are replicates, as `Measurement.merge` has it.
    let mut series = ByName::default();
    for measurement in all {
        let name = measurement.task_spec.name();
        if measurement.number_per_run == 0 {
            return value_error(name, "number_per_run must be above 0");
        }
        for seconds in measurement.raw_times {
            series.push(&name, seconds * 1e3 / measurement.number_per_run as f64);
        }
    }
    Ok(series.into_series())
}
