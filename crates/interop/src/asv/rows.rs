//! The values of one benchmark: one for each combination of its parameters.

use holdpoint_model::FileError;
use holdpoint_model::document::value_error;
use serde_json::Value as Json;

/// Most combinations of parameters of a benchmark.
const COMBINATIONS_MAX: usize = 1_000_000;

pub(super) struct Benchmark {
    /// With its parameters: `words.Words.time_count(200, 'plain')`.
    pub name: String,
    pub value: Value,
    /// Seconds per call, where they were kept.
    pub samples: Vec<f64>,
}

pub(super) enum Value {
    Number(f64),
    /// Its set-up said that it does not apply.
    NotApplicable,
    Failed,
}

impl Benchmark {
    pub fn all(name: &str, columns: &[String], cells: &Json) -> Result<Vec<Self>, FileError> {
        let cell = |column: &str| {
            let index = columns.iter().position(|known| known == column)?;
            cells.as_array()?.get(index)
        };
        let Some(results) = cell("result") else { return Ok(Vec::new()) };
        // A benchmark that failed as a whole has null in place of its list.
        let one = [results.clone()];
        let results = results.as_array().map_or(one.as_slice(), Vec::as_slice);
        let names = names(name, cell("params"))?;
        if results.len() != names.len() && !results.iter().all(Json::is_null) {
            return value_error(
                name.to_owned(),
                "has another number of results than its parameters have values",
            );
        }
        let samples = |index: usize| cell("samples")?.as_array()?.get(index)?.as_array();
        let row = |(index, (name, result)): (usize, (String, &Json))| {
            let samples = samples(index).into_iter().flatten().filter_map(Json::as_f64).collect();
            Ok(Self { value: value(&name, result)?, name, samples })
        };
        let results = results.iter().chain(std::iter::repeat(&Json::Null));
        names.into_iter().zip(results).enumerate().map(row).collect()
    }
}

fn value(name: &str, result: &Json) -> Result<Value, FileError> {
    match result {
        Json::Null => Ok(Value::Failed),
        // As `loose` writes it.
        Json::String(word) if word == "NaN" => Ok(Value::NotApplicable),
        number => match number.as_f64() {
            Some(number) => Ok(Value::Number(number)),
            None => value_error(name.to_owned(), "its result is not a number"),
        },
    }
}

/// The names of all combinations, the last parameter changing first.
fn names(name: &str, params: Option<&Json>) -> Result<Vec<String>, FileError> {
    let params: Vec<&Vec<Json>> =
        params.and_then(Json::as_array).into_iter().flatten().filter_map(Json::as_array).collect();
    if params.is_empty() {
        return Ok(vec![name.to_owned()]);
    }
    let count = params.iter().try_fold(1_usize, |count, values| count.checked_mul(values.len()));
    if count.is_none_or(|count| count > COMBINATIONS_MAX) {
        return value_error(name.to_owned(), "has too many combinations of parameters");
    }
    let mut all = vec![String::new()];
    for values in params {
        let text = |value: &Json| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
        let add = |start: &String| {
            let comma = if start.is_empty() { "" } else { ", " };
            let start = format!("{start}{comma}");
            values.iter().map(move |value| format!("{start}{}", text(value))).collect::<Vec<_>>()
        };
        all = all.iter().flat_map(add).collect();
    }
    Ok(all.into_iter().map(|values| format!("{name}({values})")).collect())
}
