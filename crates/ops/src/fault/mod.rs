//! `fault`: deliberate failures, to show that they are detected. Only on a device.

use crate::copy::COPY;
use crate::prelude::*;

static FAULT: Source = Source { name: "fault", text: include_str!("fault.cu"), headers: &[COMMON] };

params! {
    pub struct Params {
        kind: Kind = Kind::Address,
    }
}

#[derive(Clone, Copy, Debug, Deserialize, PartialEq)]
#[serde(rename_all = "snake_case")]
enum Kind {
    /// A write to an address that is not there.
    Address,
    /// A kernel that does not end.
    Hang,
    /// More memory than the device has.
    Memory,
    /// Half of the output stays unwritten.
    Unwritten,
    /// One value is wrong.
    Wrong,
}

#[derive(Clone, Copy)]
pub(crate) struct Fault {
    count: usize,
    kind: Kind,
}

impl Definition for Fault {
    const NAME: &'static str = "fault";
    const SIZES: &'static [&'static str] = &["elements"];
    const CPU: &'static [Dtype] = &[];
    const CUDA: &'static [Dtype] = ALL;
    const KERNELS: &'static [KernelFile] = &[KernelFile::new(&FAULT, &[""]).in_dtypes(&[Dtype::F32])];
    type Params = Params;

    fn plan(request: &Request, Params { kind }: Params) -> Result<Self, BuildError> {
        Ok(Self { count: request.count("N")?, kind })
    }
}

impl Op for Fault {
    fn describe(&self, dtype: Dtype) -> Description {
        Description {
            inputs: vec![Input::normal("input", &[self.count])],
            outputs: vec![Output::new("out", &[self.count], dtype)],
            work: Work { bytes: 0, flops: 0, items: 1, item: "faults".to_owned() },
            tolerance: Tolerance::EXACT,
            rows: 1,
        }
    }

    fn cpu(&self, _: Variant, _: Dtype) -> Box<dyn Cpu> {
        version(|inputs: &[Tensor], outputs: &mut [Tensor]| outputs[0].set(inputs[0].f32()))
    }

    fn cuda(&self, build: &mut Build<'_>) -> Result<Launches, PrepareError> {
        let (count, input, output) = (self.count, build.input(0), build.output(0));
        if self.kind == Kind::Memory {
            // Half a pebibyte: more than any device has.
            build.scratch(1 << 49)?;
        }
        let name = if self.kind == Kind::Hang { "fault_hang" } else { "fault_address" };
        let chosen = match self.kind {
            Kind::Address | Kind::Hang => build.choose(&FAULT, [name; 2], &[]),
            _ => build.choose(&COPY, ["copy_reference"; 2], &[]),
        };
        let kernel = chosen.kernel(build.gpu)?;
        let copy = |to: u64, copied: usize| {
            plain_launch(&kernel, copied, Arguments::new().ptr(input).ptr(to).int(copied))
        };
        let launches = match self.kind {
            Kind::Address | Kind::Hang => vec![kernel.launch(1, 1, Arguments::new().ptr(output))],
            Kind::Unwritten => vec![copy(output, count / 2)],
            // The first value once more, in place of the last.
            Kind::Wrong => {
                vec![copy(output, count), copy(output + ((count - 1) * build.dtype.bytes()) as u64, 1)]
            }
            Kind::Memory => vec![copy(output, count)],
        };
        Ok(Launches::new(chosen, launches, Vec::new()))
    }
}
