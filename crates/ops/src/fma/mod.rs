//! `fma`: multiply-adds in registers, the ceiling of plain arithmetic.

pub mod cpu;

use crate::prelude::*;

static FMA: Source = Source { name: "fma", text: include_str!("fma.cu"), headers: &[COMMON] };

params! {
    pub struct Params {
        /// Multiply-adds of each value.
        pub(crate) rounds: usize = 4096,
    }
}

impl Params {
    /// Also used by `mma`.
    pub(crate) fn check(&self, request: &Request) -> Result<usize, BuildError> {
        match self.rounds {
            1..=0x0100_0000 => Ok(self.rounds),
            _ => Err(request.param_error("rounds", "must be 1 to 2^24")),
        }
    }
}

#[derive(Clone, Copy)]
pub(crate) struct Fma {
    count: usize,
    rounds: usize,
}

impl Definition for Fma {
    const NAME: &'static str = "fma";
    const SIZES: &'static [&'static str] = &["elements"];
    const CUDA: &'static [Dtype] = &[Dtype::F32];
    const KERNELS: &'static [KernelFile] =
        &[KernelFile::new(&FMA, &["CHAINS=8 THREADS=256"]).in_dtypes(&[Dtype::F32])];
    const CASES: Option<Cases> = Some(Cases::new(&[200_000]).builtin_only());
    type Params = Params;

    fn plan(request: &Request, params: Params) -> Result<Self, BuildError> {
        Ok(Self { count: request.count("N")?, rounds: params.check(request)? })
    }

    fn load(shape: &[usize], params: &Params) -> Load {
        let main = product(shape);
        Load { elements: main.saturating_mul(4), operations: main.saturating_mul(params.rounds as u64) }
    }

    fn draw_case(draw: &mut Draw<'_>) -> (Vec<usize>, Value) {
        let rounds = draw.pick(&[1, 7, 100]);
        (vec![draw.count()], json!({ "rounds": rounds }))
    }
}

impl Op for Fma {
    fn describe(&self, dtype: Dtype) -> Description {
        let elements = self.count as u64;
        Description {
            inputs: vec![Input::unit("input", &[self.count])],
            outputs: vec![Output::new("out", &[self.count], dtype)],
            // Items are elements; the operations, two per step, count the steps.
            work: Work {
                bytes: 2 * dtype.bytes() as u64 * elements,
                flops: 2 * elements * self.rounds as u64,
                items: elements,
                item: "elements".to_owned(),
            },
            // A multiply-add rounds once, the same everywhere.
            tolerance: Tolerance::EXACT,
            rows: self.count,
        }
    }

    fn part(&self, rows: Range<usize>) -> Option<Box<dyn Op>> {
        Some(Box::new(Self { count: rows.len(), ..*self }))
    }

    fn cpu(&self, variant: Variant, _: Dtype) -> Box<dyn Cpu> {
        let rounds = self.rounds;
        version(move |inputs: &[Tensor], outputs: &mut [Tensor]| {
            let (input, out) = (inputs[0].f32(), outputs[0].f32_mut());
            match variant {
                Variant::Fast => cpu::fast(rounds, input, out),
                Variant::Reference => cpu::oracle(rounds, input, out),
            }
        })
    }

    fn check_cuda(&self, request: &Request, _: Dtype) -> Result<(), BuildError> {
        // Blocks are counted in 32 bits.
        u32::try_from(self.count).map(drop).map_err(|_| request.shape_error("at most 2^32 - 1 values"))
    }

    fn cuda(&self, build: &mut Build<'_>) -> Result<Launches, PrepareError> {
        let chosen = build.choose(&FMA, ["fma_fast", "fma_reference"], &[("elements", self.count)]);
        let chosen = chosen.with(&[("THREADS", 256), ("CHAINS", 8)]);
        let kernel = chosen.kernel(build.gpu)?;
        let arguments =
            build.arguments().int(self.count).int(self.rounds).float(cpu::FACTOR).float(cpu::ADDEND);
        let launch = match build.request.variant {
            Variant::Reference => plain_launch(&kernel, self.count, arguments),
            Variant::Fast => {
                let (threads, chains) = (chosen.constant("THREADS"), chosen.constant("CHAINS"));
                kernel.launch(grid_x(self.count.div_ceil(threads * chains)), threads as u32, arguments)
            }
        };
        Ok(Launches::new(chosen, vec![launch], Vec::new()))
    }
}
