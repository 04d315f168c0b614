//! How fast the fast versions are against what the machine can do: memcpy for the ops that move bytes, the
//! `gemm` crate for the one that multiplies. Prints one Markdown table and asserts nothing.
//!
//! Op and yardstick run in turns, so that whatever else the machine does hits both; medians over all rounds. Where an
//! op takes several copies of its tensors in turn, so does its memcpy.

#![allow(clippy::print_stdout)]

use std::hint::black_box;
use std::time::Instant;

use holdpoint_ops::buffer::Buffer;
use holdpoint_ops::shape::{Nchw, TileSpec};
use holdpoint_ops::tile_pack::cpu as pack;
use holdpoint_ops::{Prepared, Request, Variant};
use serde_json::{Map, Value, json};

const TILES: [u32; 10] = [0, 5, 9, 12, 18, 27, 33, 40, 50, 63];

fn main() {
    println!("| op | fast µs | reference µs | speed-up | measured | target |");
    println!("|---|---:|---:|---:|---|---|");
    let tiles = json!({"tile_size": 16, "indices": TILES, "order_mode": "hilbert"});
    let dims = Nchw { batch: 1, channels: 64, height: 128, width: 128 };
    let spec = TileSpec::new(dims, 16, TILES.len()).expect("tiles that fit");
    against_memcpy("tile_pack", &dims.dims(), &tiles, pack::copies(&spec), 0.60);
    let tiles = json!({"tile_size": 16, "indices": TILES, "level_priority": 2});
    against_memcpy("tile_unpack", &dims.dims(), &tiles, 1, 0.60);
    against_memcpy("fusion_gate", &dims.dims(), &json!({}), 1, 0.50);
    let fused = json!({"tile_size": 16, "indices": TILES});
    against_memcpy("fused_pack_op_unpack", &dims.dims(), &fused, 1, 0.0);
    let both = json!({"direction": "bidirectional", "merge_mode": "gated"});
    against_memcpy("tile_ssm", &[1, 256, 128], &both, 1, 0.0);
    infer();
    against_gemm("ff_path", &[1, 128, 128, 128], &[(256, 20 * 256, 128), (256, 32 * 64, 128)], 0.50);
    against_gemm("attention", &[1, 8, 512, 64], &[(512, 512, 64), (512, 64, 512)], 0.0);
}

/// Whether the command line asks for this op; it asks for all when it names none.
fn wanted(op: &str) -> bool {
    let names: Vec<String> = std::env::args().skip(1).filter(|arg| !arg.starts_with('-')).collect();
    names.is_empty() || names.iter().any(|name| name == op)
}

fn prepare(op: &str, shape: &[usize], params: &Value, variant: Variant) -> Prepared {
    let params: &Map<String, Value> = params.as_object().expect("parameters are an object");
    let request = Request { variant, seed: 123, ..Request::new(op, shape, "f32", params) };
    let mut prepared = Prepared::new(&request).expect("a valid request");
    prepared.call();
    assert!(prepared.check().passed, "{op}: {:?}", prepared.check());
    prepared
}

fn time_us(body: impl FnOnce()) -> f64 {
    let start = Instant::now();
    body();
    start.elapsed().as_secs_f64() * 1e6
}

fn median(mut samples: Vec<f64>) -> f64 {
    samples.sort_by(f64::total_cmp);
    samples[samples.len() / 2]
}

/// Medians of both, taken in turns: each finds the caches as the other left them.
fn in_turns(rounds: usize, mut op: impl FnMut(), mut yardstick: impl FnMut()) -> (f64, f64) {
    let (mut ops, mut yardsticks) = (Vec::new(), Vec::new());
    for round in 0..rounds + 5 {
        let (a, b) = (time_us(&mut op), time_us(&mut yardstick));
        if round >= 5 {
            ops.push(a);
            yardsticks.push(b);
        }
    }
    (median(ops), median(yardsticks))
}

fn reference_us(op: &str, shape: &[usize], params: &Value) -> f64 {
    let mut prepared = prepare(op, shape, params, Variant::Reference);
    median((0..5).map(|_| time_us(|| prepared.call())).collect())
}

fn row(op: &str, fast_us: f64, reference_us: f64, measured: &str, target: &str) {
    let ratio = reference_us / fast_us;
    println!("| {op} | {fast_us:.1} | {reference_us:.0} | {ratio:.1}x | {measured} | {target} |");
}

fn target(share: f64, of: &str) -> String {
    if share > 0.0 { format!(">= {:.0} % of {of}", share * 100.0) } else { "none".to_owned() }
}

fn against_memcpy(op: &str, shape: &[usize], params: &Value, copies: usize, share: f64) {
    if !wanted(op) {
        return;
    }
    let mut prepared = prepare(op, shape, params, Variant::Fast);
    let bytes = prepared.work().bytes as usize;
    // The same bytes in all: half of them read, half written.
    let mut pairs = vec![[Buffer::filled(1.0, bytes / 8), Buffer::filled(0.0, bytes / 8)]; copies];
    let mut turn = 0;
    let memcpy = || {
        turn = (turn + 1) % copies;
        let [source, sink] = &mut pairs[turn];
        black_box(&mut sink[..]).copy_from_slice(black_box(&source[..]));
    };
    let (fast, copy) = in_turns(400, || prepared.call(), memcpy);
    let rate = |us: f64| bytes as f64 / us / 1e3;
    let mut measured =
        format!("{:.0} % ({:.1} of {:.1} GB/s memcpy)", 100.0 * copy / fast, rate(fast), rate(copy));
    if copies > 1 {
        measured += &format!(", both over {copies} copies in turn");
    }
    row(op, fast, reference_us(op, shape, params), &measured, &target(share, "memcpy"));
}

fn infer() {
    if !wanted("infer") {
        return;
    }
    let mut prepared = prepare("infer", &[1, 3, 128, 128], &json!({}), Variant::Fast);
    let (fast, _) = in_turns(2000, || prepared.call(), || ());
    let reference = reference_us("infer", &[1, 3, 128, 128], &json!({}));
    row("infer", fast, reference, &format!("{fast:.1} µs"), "< 60 µs");
}

/// Flops per second against the `gemm` crate on products of the given (m, n, k).
fn against_gemm(op: &str, shape: &[usize], products: &[(usize, usize, usize)], share: f64) {
    if !wanted(op) {
        return;
    }
    let mut prepared = prepare(op, shape, &json!({}), Variant::Fast);
    let flops = prepared.work().flops as f64;
    let mut buffers: Vec<yardstick::Product> =
        products.iter().map(|&(m, n, k)| yardstick::Product::new(m, n, k)).collect();
    let gemm_flops: f64 = products.iter().map(|&(m, n, k)| 2.0 * (m * n * k) as f64).sum();
    let (fast, gemm) =
        in_turns(60, || prepared.call(), || buffers.iter_mut().for_each(yardstick::Product::run));
    let (ours, theirs) = (flops / fast / 1e3, gemm_flops / gemm / 1e3);
    let measured = format!("{:.0} % ({ours:.1} of {theirs:.1} GFLOP/s gemm)", 100.0 * ours / theirs);
    row(op, fast, reference_us(op, shape, &json!({})), &measured, &target(share, "gemm"));
}

mod yardstick {
    //! The `gemm` crate behind a safe call; only the bench uses it.
    #![allow(unsafe_code)]

    use gemm_common::Parallelism;

    /// A product of column-major matrices, the layout that `gemm` is quickest with, and its operands.
    pub struct Product {
        size: (usize, usize, usize),
        lhs: Vec<f32>,
        rhs: Vec<f32>,
        dst: Vec<f32>,
    }

    impl Product {
        pub fn new(m: usize, n: usize, k: usize) -> Self {
            Self { size: (m, n, k), lhs: vec![0.5; m * k], rhs: vec![0.25; k * n], dst: vec![0.0; m * n] }
        }

        pub fn run(&mut self) {
            let (m, n, k) = self.size;
            assert!(self.dst.len() == m * n && self.lhs.len() == m * k && self.rhs.len() == k * n);
            let (dst, lhs, rhs) = (self.dst.as_mut_ptr(), self.lhs.as_ptr(), self.rhs.as_ptr());
            let column = |rows: usize| rows as isize;
            // SAFETY: the three buffers hold exactly m*n, m*k and k*n floats (asserted), are column-major with
            // the strides given, and `dst` is borrowed mutably, so it overlaps neither operand.
            unsafe {
                gemm_f32::gemm::f32::get_gemm_fn()(
                    m,
                    n,
                    k,
                    dst,
                    column(m),
                    1,
                    false,
                    lhs,
                    column(m),
                    1,
                    rhs,
                    column(k),
                    1,
                    0.0,
                    1.0,
                    false,
                    false,
                    false,
                    Parallelism::None,
                );
            }
        }
    }
}
