//! Compiles on all cores, before anything is prepared, what a suite's kernels need and was never compiled here.

use super::program::{ORACLE_COST_MAX, Program};
use crate::device::{COMPARE, DRAW, Gpu};
use crate::request::Request;
use holdpoint_cuda::compile::Unit;
use holdpoint_cuda::{Dtype, trace};
use std::sync::Mutex;

/// Each pass finds the next unit of every request; an op has fewer than this.
const PASSES_MAX: usize = 16;

impl Gpu {
    /// Whether something had to be compiled so far: then much else may be missing in the cache, too.
    pub fn has_compiled(&self) -> bool {
        self.compiler.compiled_count() > 0
    }

    /// Fills the cache with the units that these requests need. What does not compile shows when it is prepared.
    pub fn compile_ahead(&mut self, requests: &[Request]) {
        let mut tried = Vec::new();
        for _ in 0..PASSES_MAX {
            let mut units = trace::step("missing units", "", || self.missing_units(requests));
            units.retain(|unit| !tried.contains(&unit.key()));
            if units.is_empty() {
                break;
            }
            tried.extend(units.iter().map(Unit::key));
            self.compile_all(units);
        }
    }

    /// The first unit of each request that is not in the cache.
    fn missing_units(&mut self, requests: &[Request]) -> Vec<Unit> {
        self.missing = Some(Vec::new());
        for request in requests {
            if let Some(dtype) = Dtype::parse(&request.dtype) {
                for source in [&DRAW, &COMPARE] {
                    let _ = self.kernel(&Unit::new(source, dtype), source.name);
                }
            }
            // An error says that a unit is missing, which was noted, or comes again when the request is prepared.
            let Ok(program) = Program::new(self, request, None) else { continue };
            if program.oracle_rows(ORACLE_COST_MAX) >= program.rows {
                continue;
            }
            match program.op.device_oracle() {
                Some(oracle) => {
                    let _ = self.kernel(&Unit::new(oracle.source, program.dtype), oracle.kernel);
                }
                None => {
                    let _ = Program::new(self, &request.plain(), None);
                }
            }
        }
        let mut units = self.missing.take().unwrap_or_default();
        units.sort_by_key(Unit::key);
        units.dedup_by_key(|unit| unit.key());
        units
    }

    fn compile_all(&self, units: Vec<Unit>) {
        let threads_count = std::thread::available_parallelism().map_or(1, usize::from).min(units.len());
        let (compiler, arch, left) = (&self.compiler, &self.device.arch, &Mutex::new(units));
        let next = || left.lock().ok().and_then(|mut units| units.pop());
        std::thread::scope(|scope| {
            for _ in 0..threads_count {
                scope.spawn(move || {
                    while let Some(unit) = next() {
                        let _ = trace::step("compile", &unit.key(), || compiler.cubin(&unit, arch));
                    }
                });
            }
        });
    }
}
