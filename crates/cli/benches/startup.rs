//! What holdpoint itself costs before it measures: from starting the process to its first sample.
//! `cargo bench -p holdpoint --bench startup`; asserts nothing.
#![allow(clippy::print_stdout)]

use std::io::{BufRead, BufReader, Write};
use std::process::{Command, Stdio};
use std::time::Instant;

const STARTS: usize = 41;

fn main() -> std::io::Result<()> {
    println!("| start-up to first sample of | median ms | worst ms | bar ms |\n|---|--:|--:|--:|");
    let workloads =
        ["infer", "tile_pack", "tile_unpack", "fusion_gate", "tile_ssm", "fused_pack_op_unpack", "ff_path"];
    for workload in workloads {
        let mut times_ms = (0..STARTS).map(|_| first_sample_ms(workload)).collect::<Result<Vec<_>, _>>()?;
        times_ms.sort_by(f64::total_cmp);
        println!("| `{workload}` | {:.1} | {:.1} | 50 |", times_ms[STARTS / 2], times_ms[STARTS - 1]);
    }
    Ok(())
}

/// Starts the worker, prepares one workload and waits for one sample of one call.
fn first_sample_ms(workload: &str) -> std::io::Result<f64> {
    let start = Instant::now();
    let mut child = Command::new(env!("CARGO_BIN_EXE_holdpoint"))
        .args(["worker", "--suite", "cpu"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()?;
    if let Some(stdin) = &mut child.stdin {
        writeln!(stdin, r#"{{"type":"hello","protocol":2}}"#)?;
        writeln!(stdin, r#"{{"type":"prepare","workload":"{workload}","seed":123}}"#)?;
        writeln!(
            stdin,
            r#"{{"type":"run","workload":"{workload}","seed":123,"samples_count":1,"calls_per_sample":1}}"#
        )?;
    }
    let samples = child.stdout.take().and_then(|out| BufReader::new(out).lines().nth(2)).transpose()?;
    let elapsed_ms = start.elapsed().as_secs_f64() * 1e3;
    child.kill()?;
    child.wait()?;
    match samples {
        Some(line) if line.contains("\"samples\"") => Ok(elapsed_ms),
        other => Err(std::io::Error::other(format!("no sample: {other:?}"))),
    }
}
