//! An open device with its compiler, timer and tuned configurations.

use super::oracle::{Proofs, open_proofs};
use super::{COMPARE, DRAW, Winners};
use crate::compare::{Leeway, Tally};
use crate::description::Distribution;
use crate::precision::{Precision, Tolerance};
use crate::values::Recipe;
use holdpoint_cuda::compile::{Compiler, Unit};
use holdpoint_cuda::{
    Arguments, Buffer, CudaError, Device, Dtype, Kernel, Launch, Library, Module, Timer, Unavailable, trace,
};
use holdpoint_model::FailureCause;
use holdpoint_model::machine::DeviceState;
use holdpoint_model::protocol::DeviceInfo;
use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::rc::Rc;

const THREADS: u32 = 256;
/// Numbers that each block of `tally` leaves, as in the kernel, and how many blocks there are at most.
const TALLY_NUMBERS: usize = 12;
const TALLY_BLOCKS_MAX: usize = 1024;

pub struct Gpu {
    pub(crate) device: Device,
    pub(crate) compiler: Compiler,
    pub(crate) timer: Timer,
    pub(crate) registry: Winners,
    pub(crate) proofs: Proofs,
    /// Units that were wanted and not in the cache, while they are only looked for.
    pub(crate) missing: Option<Vec<Unit>>,
    modules: HashMap<String, (Unit, Rc<Module>)>,
    /// Users' kernels by the machine code, and users' libraries by their path.
    user_modules: HashMap<Vec<u8>, Rc<Module>>,
    libraries: HashMap<PathBuf, Rc<Library>>,
}

impl Gpu {
    /// Opens a device; compiled kernels and tuned configurations are kept under `cache_dir`.
    pub fn open(ordinal: u32, cache_dir: &Path) -> Result<Self, Unavailable> {
        let mut device = trace::step("open device", "", || Device::open(ordinal))?;
        let compiler =
            trace::step("open compiler", "", || Compiler::new(cache_dir, &device.info.versions.driver));
        device.info.versions.nvrtc = compiler.version();
        let timer =
            trace::step("open timer", "", || Timer::new(&device, &compiler)).map_err(|error| match error
                .cause
            {
                FailureCause::NotStarted => Unavailable::new("nvrtc_not_found", error.detail),
                FailureCause::OutOfMemory => Unavailable::new("cuda_out_of_memory", error.detail),
                _ => Unavailable::new("cuda_query_failed", error.detail),
            })?;
        let registry = Winners::open(cache_dir, &device.info);
        let proofs = open_proofs(cache_dir, &device.info);
        Ok(Self {
            device,
            compiler,
            timer,
            registry,
            proofs,
            missing: None,
            modules: HashMap::new(),
            user_modules: HashMap::new(),
            libraries: HashMap::new(),
        })
    }

    pub fn info(&self) -> &DeviceInfo {
        &self.device.info
    }

    pub fn registry(&self) -> &Winners {
        &self.registry
    }

    pub fn state(&self) -> Option<DeviceState> {
        self.device.state()
    }

    /// The most power that the device may draw.
    pub fn power_limit_w(&self) -> Option<f64> {
        self.device.power_limit_w()
    }

    /// Millijoules since the driver was loaded.
    pub fn energy_mj(&self) -> Option<u64> {
        self.device.energy_mj()
    }

    /// Returns when all that is queued is done.
    pub fn synchronize(&self) -> Result<(), CudaError> {
        self.device.synchronize()
    }

    /// The units compiled for ops so far.
    pub fn units(&self) -> impl Iterator<Item = &Unit> {
        self.modules.values().map(|(unit, _)| unit)
    }

    pub(crate) fn kernel(&mut self, unit: &Unit, name: &str) -> Result<Kernel, CudaError> {
        let key = unit.key();
        if let Some((_, module)) = self.modules.get(&key) {
            return module.kernel(name);
        }
        if let Some(missing) = &mut self.missing
            && !self.compiler.has(unit, &self.device.arch)
        {
            missing.push(unit.clone());
            return Err(CudaError::new(FailureCause::NotStarted, format!("{key} is not compiled yet")));
        }
        let load = || Module::load(&self.device, &self.compiler, unit);
        let module = trace::step("load module", unit.source.name, load)?;
        self.modules.insert(key, (unit.clone(), module.clone()));
        module.kernel(name)
    }

    /// Notes all of these units that are missing, while units are only looked for: so they are compiled side by side. Else
    /// [`Gpu::kernel`] says one by one what is missing.
    pub(crate) fn look_for(&mut self, units: &[Unit]) -> Result<(), CudaError> {
        let Some(missing) = &mut self.missing else { return Ok(()) };
        let found = missing.len();
        missing.extend(units.iter().filter(|unit| !self.compiler.has(unit, &self.device.arch)).cloned());
        match missing[found..].first() {
            None => Ok(()),
            Some(unit) => {
                let detail = format!("{} is not compiled yet", unit.key());
                Err(CudaError::new(FailureCause::NotStarted, detail))
            }
        }
    }

    /// A kernel of the user's; its module is loaded once, as fuzzing asks for it hundreds of times.
    pub(crate) fn user_kernel(&mut self, cubin: Vec<u8>, name: &str) -> Result<Kernel, CudaError> {
        if let Some(module) = self.user_modules.get(&cubin) {
            return module.kernel(name);
        }
        let module = Module::from_cubin(&self.device, &cubin)?;
        self.user_modules.insert(cubin, module.clone());
        module.kernel(name)
    }

    /// A library of the user's, loaded once.
    pub(crate) fn library(&mut self, path: &Path) -> Result<Rc<Library>, CudaError> {
        if let Some(library) = self.libraries.get(path) {
            return Ok(library.clone());
        }
        let library = Library::open(path)?;
        self.libraries.insert(path.to_owned(), library.clone());
        Ok(library)
    }

    /// A launch over `count` elements, each thread taking several where there are very many.
    pub(crate) fn launch_over(
        &mut self,
        unit: &Unit,
        name: &str,
        count: usize,
        arguments: Arguments,
    ) -> Result<Launch, CudaError> {
        let kernel = self.kernel(unit, name)?;
        let blocks = count.div_ceil(THREADS as usize).clamp(1, 32 * self.device.multiprocessors as usize);
        Ok(kernel.launch(blocks as u32, THREADS, arguments))
    }

    pub(crate) fn draw(
        &mut self,
        buffer: &Buffer,
        dtype: Dtype,
        draw: &Distribution,
        seed: u64,
    ) -> Result<(), CudaError> {
        let launch = self.draw_launch(buffer, dtype, draw, seed)?;
        launch.map_or(Ok(()), |launch| launch.enqueue(&self.device))
    }

    /// A launch that draws; absent where the host draws.
    pub(crate) fn draw_launch(
        &mut self,
        buffer: &Buffer,
        dtype: Dtype,
        draw: &Distribution,
        seed: u64,
    ) -> Result<Option<Launch>, CudaError> {
        let (name, scale, shift) = match draw {
            Distribution::Normal { scale, shift } => ("draw_normal", *scale, *shift),
            Distribution::Uniform { scale, shift } => ("draw_uniform", *scale, *shift),
            Distribution::Host(_) => return Ok(None),
        };
        let count = buffer.bytes / dtype.bytes();
        let arguments =
            Arguments::new().buffer(buffer).int(count).int(seed as usize).float(scale).float(shift);
        self.launch_over(&Unit::new(&DRAW, dtype), name, count, arguments).map(Some)
    }

    /// Draws values of a kind, each from a hash of the seed and its place.
    pub(crate) fn draw_values(
        &mut self,
        buffer: &Buffer,
        dtype: Dtype,
        recipe: Recipe,
        seed: u64,
    ) -> Result<(), CudaError> {
        let draw = match recipe {
            Recipe::Normal { scale } => Distribution::Normal { scale, shift: 0.0 },
            Recipe::Uniform { scale, shift } => Distribution::Uniform { scale, shift },
            Recipe::Steps { low_below, low, high_from, high } => {
                let count = buffer.bytes / dtype.bytes();
                let arguments = Arguments::new().buffer(buffer).int(count).int(seed as usize);
                let arguments = arguments.float(low_below).float(low).float(high_from).float(high);
                let launch = self.launch_over(&Unit::new(&DRAW, dtype), "draw_steps", count, arguments)?;
                return launch.enqueue(&self.device);
            }
        };
        self.draw(buffer, dtype, &draw, seed)
    }

    /// Compares an output, from a byte on, with an oracle's 32-bit floats on the device, as the comparison would.
    pub(crate) fn tally(
        &mut self,
        (got, from, dtype): (&Buffer, usize, Dtype),
        want: &Buffer,
        Tolerance { atol, rtol }: Tolerance,
        leeway: Leeway,
    ) -> Result<Tally, CudaError> {
        let count = want.bytes / size_of::<f32>();
        let blocks = count.div_ceil(THREADS as usize).clamp(1, TALLY_BLOCKS_MAX);
        let out = Buffer::new(&self.device, blocks * TALLY_NUMBERS * size_of::<f64>(), 0)?;
        let overflow = dtype.overflow();
        let arguments = Arguments::new().ptr(got.ptr + from as u64).buffer(want).int(count);
        let arguments = arguments.double(atol).double(rtol);
        let arguments = arguments.double(overflow.from).double(overflow.largest.unwrap_or(0.0));
        let arguments = arguments.int(usize::from(leeway.planted)).buffer(&out);
        let kernel = self.kernel(&Unit::new(&COMPARE, dtype), "tally")?;
        kernel.launch(blocks as u32, THREADS, arguments).enqueue(&self.device)?;
        let bytes = out.download()?;
        let numbers: Vec<f64> = bytes.as_chunks().0.iter().map(|bytes| f64::from_le_bytes(*bytes)).collect();
        let mut tally = join_tallies(&numbers, count as u64);
        if let Some((at, got_there, want_there)) = &mut tally.first {
            let there = got.download_part(from + *at * dtype.bytes(), dtype.bytes())?;
            *got_there = dtype.decode(&there).first().copied().map_or(f64::NAN, f64::from);
            let there = want.download_part(*at * size_of::<f32>(), size_of::<f32>())?;
            *want_there = Dtype::F32.decode(&there).first().copied().map_or(f64::NAN, f64::from);
        }
        Ok(tally)
    }

    /// How many elements of two buffers have other bits.
    pub(crate) fn count_changed(
        &mut self,
        before: &Buffer,
        after: &Buffer,
        dtype: Dtype,
    ) -> Result<u64, CudaError> {
        let mut out = Buffer::new(&self.device, size_of::<u64>(), 0)?;
        out.upload(&[0_u64])?;
        let count = before.bytes.min(after.bytes) / dtype.bytes();
        let arguments = Arguments::new().buffer(before).buffer(after).int(count).buffer(&out);
        let launch = self.launch_over(&Unit::new(&COMPARE, dtype), "count_changed", count, arguments)?;
        launch.enqueue(&self.device)?;
        Ok(out.download()?.as_chunks().0.first().map_or(0, |bytes| u64::from_le_bytes(*bytes)))
    }

    /// Compares two buffers on the device; NaN on either side differs.
    pub(crate) fn compare(
        &mut self,
        got: &Buffer,
        want: &Buffer,
        dtype: Dtype,
        Tolerance { atol, rtol }: Tolerance,
    ) -> Result<Difference, CudaError> {
        let mut out = Buffer::new(&self.device, 24, 0)?;
        out.upload(&[0_u64, u64::MAX, 0])?;
        let count = got.bytes.min(want.bytes) / dtype.bytes();
        let arguments = Arguments::new().buffer(got).buffer(want).int(count);
        let arguments = arguments.float(atol as f32).float(rtol as f32).buffer(&out);
        self.launch_over(&Unit::new(&COMPARE, dtype), "compare", count, arguments)?.enqueue(&self.device)?;
        let words: Vec<u64> =
            out.download()?.as_chunks().0.iter().map(|bytes| u64::from_le_bytes(*bytes)).collect();
        Ok(Difference {
            mismatches: words[0],
            first: (words[1] != u64::MAX).then_some(words[1]),
            max_abs_err: f64::from(f32::from_bits(words[2] as u32)),
        })
    }
}

/// Adds the rows that the blocks of `tally` left, in the kernel's order, of so many values.
fn join_tallies(numbers: &[f64], total: u64) -> Tally {
    let (mut tally, mut first) = (Tally { total, ..Tally::default() }, f64::INFINITY);
    for &[
        mismatches,
        at,
        abs,
        rel,
        count,
        got,
        want,
        got_squared,
        want_squared,
        product,
        error,
        error_squared,
    ] in numbers.as_chunks::<TALLY_NUMBERS>().0
    {
        tally.mismatches += mismatches as u64;
        first = first.min(at);
        tally.max_abs_err = tally.max_abs_err.max(abs);
        tally.max_rel_err = tally.max_rel_err.max(rel);
        let sums = &mut tally.moments;
        for (sum, part) in [
            (&mut sums.count, count),
            (&mut sums.got, got),
            (&mut sums.want, want),
            (&mut sums.got_squared, got_squared),
            (&mut sums.want_squared, want_squared),
            (&mut sums.product, product),
            (&mut sums.error, error),
            (&mut sums.error_squared, error_squared),
        ] {
            *sum += part;
        }
    }
    tally.first = first.is_finite().then_some((first as usize, f64::NAN, f64::NAN));
    tally
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Difference {
    pub mismatches: u64,
    pub first: Option<u64>,
    pub max_abs_err: f64,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_blocks_of_a_tally_add_up() {
        let none = f64::INFINITY;
        let blocks = [
            [0.0, none, 0.5, 0.1, 3.0, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0],
            [2.0, 9.0, 0.25, 4.0, 4.0, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0],
        ];
        let tally = join_tallies(blocks.as_flattened(), 8);
        assert_eq!((tally.total, tally.mismatches, tally.first.map(|first| first.0)), (8, 2, Some(9)));
        assert_eq!((tally.max_abs_err, tally.max_rel_err, tally.moments.count), (0.5, 4.0, 7.0));
        assert_eq!((tally.moments.got, tally.moments.error_squared), (2.0, 14.0));
        assert_eq!(join_tallies(&blocks[0], 3).first, None);
    }
}
