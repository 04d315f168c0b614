//! SGLang's benchmark results: `python -m sglang.bench_serving --output-file`, a JSON object on each line, one for each run; those of
//! `sglang.bench_offline_throughput --result-filename` too.

use crate::{Format, serving};
use holdpoint_model::document::Head;

pub(crate) const FORMAT: Format = Format {
    words: "a benchmark result of SGLang",
    matches: |probe| probe.any_head(matches),
    read: |source| source.read_each(matches, |text| serving::read(text, "sglang")),
};

fn matches(head: &Head<'_>) -> bool {
    ["backend", "request_throughput", "output_throughput"].iter().all(|key| head.has(key))
}
