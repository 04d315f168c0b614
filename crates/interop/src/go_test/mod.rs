//! The text of `go test -bench`: a line for each run of a benchmark, as benchstat reads them.

use crate::series::{self, ByName, Series};
use crate::{Format, Source};

pub(crate) const FORMAT: Format = Format {
    words: "the output of go test -bench",
    matches: |source| {
        source.plain_text().is_some_and(|text| text.lines().any(|line| parse_line(line).is_some()))
    },
    read: |source| match source {
        Source::File(text) => series::import("go", read(text)),
        Source::Folder(_) => Ok(crate::Imported::default()),
    },
};

/// The runs of each benchmark. The number of CPUs behind a name, such as `-8`, is left out, as benchstat does.
pub fn read(text: &str) -> Vec<Series> {
    let mut all = ByName::default();
    for (name, ns) in text.lines().filter_map(parse_line) {
        all.push(name, ns / 1e6);
    }
    all.into_series()
}

/// `BenchmarkName-8   1000   1234 ns/op   …`
fn parse_line(line: &str) -> Option<(&str, f64)> {
    let mut words = line.split_whitespace();
    let name = words.next().filter(|name| name.starts_with("Benchmark"))?;
    words.next()?.parse::<u64>().ok()?;
    let (ns, unit) = (words.next()?, words.next()?);
    let ns: f64 = ns.parse().ok().filter(|_| unit == "ns/op")?;
    let cpus = name.rsplit_once('-').filter(|(_, cpus)| cpus.parse::<u32>().is_ok());
    Some((cpus.map_or(name, |(name, _)| name), ns))
}
