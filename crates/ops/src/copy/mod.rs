//! `copy`: the bandwidth ceiling of memory and caches.

use crate::prelude::*;
use std::hint::black_box;

pub(crate) static COPY: Source = Source { name: "copy", text: include_str!("copy.cu"), headers: &[COMMON] };

/// Blocks of 512 threads and 40 registers that a multiprocessor of any architecture runs at once.
const BLOCKS_AT_ONCE: usize = 2;

params! {
    pub struct Params {
        /// Copies made in one call; several show the bandwidth of a device's L2 cache, where all of it fits.
        rounds: usize = 1,
    }
}

#[derive(Clone, Copy)]
pub struct Copy {
    count: usize,
    rounds: usize,
}

impl Definition for Copy {
    const NAME: &'static str = "copy";
    const SIZES: &'static [&'static str] = &["elements"];
    const CUDA: &'static [Dtype] = ALL;
    const KERNELS: &'static [KernelFile] = &[KernelFile::new(&COPY, &["ITEMS=4 THREADS=512"])];
    const CASES: Option<Cases> = Some(Cases::new(&[200_000]).builtin_only());
    const LOAD_PER_ELEMENT: [u64; 2] = [4, 4];
    const IS_REPLACEABLE: bool = true;
    type Params = Params;

    fn plan(request: &Request, Params { rounds }: Params) -> Result<Self, BuildError> {
        if !(1..=1 << 20).contains(&rounds) {
            return Err(request.param_error("rounds", "must be 1 to 2^20"));
        }
        Ok(Self { count: request.count("N")?, rounds })
    }

    fn draw_case(draw: &mut Draw<'_>) -> (Vec<usize>, Value) {
        (vec![draw.count()], json!({}))
    }
}

impl Op for Copy {
    fn describe(&self, dtype: Dtype) -> Description {
        Description {
            inputs: vec![Input::normal("input", &[self.count])],
            outputs: vec![Output::new("out", &[self.count], dtype)],
            work: Work {
                bytes: 2 * (self.rounds * self.count * dtype.bytes()) as u64,
                flops: 0,
                items: self.count as u64,
                item: "elements".to_owned(),
            },
            // A copy leaves nothing to rounding.
            tolerance: Tolerance::EXACT,
            rows: self.count,
        }
    }

    fn part(&self, rows: Range<usize>) -> Option<Box<dyn Op>> {
        Some(Box::new(Self { count: rows.len(), ..*self }))
    }

    fn cpu(&self, variant: Variant, _: Dtype) -> Box<dyn Cpu> {
        // The plain version copies once.
        let rounds = if variant == Variant::Fast { self.rounds } else { 1 };
        version(move |inputs: &[Tensor], outputs: &mut [Tensor]| {
            let (input, out) = (inputs[0].f32(), outputs[0].f32_mut());
            if variant == Variant::Fast {
                (0..rounds).for_each(|_| black_box(&mut *out).copy_from_slice(input));
                return;
            }
            for (out, x) in out.iter_mut().zip(input) {
                *out = *x;
            }
        })
    }

    fn cuda(&self, build: &mut Build<'_>) -> Result<Launches, PrepareError> {
        let (count, is_fast) = (self.count, build.request.variant == Variant::Fast);
        let rounds = if is_fast { self.rounds } else { 1 };
        let fast = if rounds > 1 { "copy_rounds" } else { "copy_fast" };
        let chosen = build.choose(&COPY, [fast, "copy_reference"], &[("elements", count)]);
        let chosen = chosen.with(&[("THREADS", 512), ("ITEMS", 4)]);
        let kernel = chosen.kernel(build.gpu)?;
        let arguments = build.arguments().int(count);
        let arguments = if rounds > 1 { arguments.int(rounds) } else { arguments };
        let launch = if is_fast {
            let (threads, items) = (chosen.constant("THREADS"), chosen.constant("ITEMS"));
            let packs = count.div_ceil(16 / build.dtype.bytes());
            let blocks = packs.div_ceil(threads * items);
            let at_once = BLOCKS_AT_ONCE * build.gpu.device.multiprocessors as usize;
            let blocks = if rounds > 1 { blocks.min(at_once) } else { blocks };
            kernel.launch(grid_x(blocks), threads as u32, arguments)
        } else {
            plain_launch(&kernel, count, arguments)
        };
        Ok(Launches::new(chosen, vec![launch], Vec::new()))
    }
}
