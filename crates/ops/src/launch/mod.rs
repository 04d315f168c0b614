//! `launch`: a kernel that does next to nothing, the least that a launch costs. Only on a device.

use crate::prelude::*;

static LAUNCH: Source = Source { name: "launch", text: include_str!("launch.cu"), headers: &[COMMON] };

/// Written by every block; every element type has it.
const VALUE: f32 = 3.0;

params! {
    pub struct Params {}
}

#[derive(Clone, Copy)]
pub struct Launch {
    blocks: usize,
}

impl Definition for Launch {
    const NAME: &'static str = "launch";
    const SIZES: &'static [&'static str] = &["blocks"];
    const CPU: &'static [Dtype] = &[];
    const CUDA: &'static [Dtype] = ALL;
    const KERNELS: &'static [KernelFile] = &[KernelFile::new(&LAUNCH, &[""])];
    const CASES: Option<Cases> = Some(Cases::new(&[200_000]).builtin_only());
    type Params = Params;

    fn plan(request: &Request, Params {}: Params) -> Result<Self, BuildError> {
        Ok(Self { blocks: request.count("blocks")? })
    }

    fn draw_case(draw: &mut Draw<'_>) -> (Vec<usize>, Value) {
        (vec![draw.count()], json!({}))
    }
}

impl Op for Launch {
    fn describe(&self, dtype: Dtype) -> Description {
        Description {
            inputs: Vec::new(),
            outputs: vec![Output::new("out", &[self.blocks], dtype)],
            work: Work { bytes: 0, flops: 0, items: 1, item: "launches".to_owned() },
            tolerance: Tolerance::EXACT,
            rows: self.blocks,
        }
    }

    fn part(&self, rows: Range<usize>) -> Option<Box<dyn Op>> {
        Some(Box::new(Self { blocks: rows.len() }))
    }

    fn cpu(&self, _: Variant, _: Dtype) -> Box<dyn Cpu> {
        version(|_: &[Tensor], outputs: &mut [Tensor]| outputs[0].f32_mut().fill(VALUE))
    }

    fn check_cuda(&self, request: &Request, _: Dtype) -> Result<(), BuildError> {
        // Blocks are counted in 32 bits.
        u32::try_from(self.blocks).map(drop).map_err(|_| request.shape_error("at most 2^32 - 1 blocks"))
    }

    fn cuda(&self, build: &mut Build<'_>) -> Result<Launches, PrepareError> {
        let chosen = build.choose(&LAUNCH, ["launch"; 2], &[("blocks", self.blocks)]);
        let arguments = build.arguments().float(VALUE);
        let launch = chosen.kernel(build.gpu)?.launch(grid_x(self.blocks), 32, arguments);
        Ok(Launches::new(chosen, vec![launch], Vec::new()))
    }
}
