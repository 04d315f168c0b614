//! Benchmarks of the words of a text.

use criterion::{Criterion, criterion_group, criterion_main};
use std::hint::black_box;

fn bench(c: &mut Criterion) {
    let text: String = (0..2_000).map(|i| format!("word{} ", i * i % 211)).collect();
    let mut group = c.benchmark_group("words");
    group.bench_function("count", |b| b.iter(|| words::count(black_box(&text))));
    group.bench_function("longest", |b| b.iter(|| words::longest(black_box(&text))));
    group.finish();
}

criterion_group!(benches, bench);
criterion_main!(benches);
