//! Resource usage of compiled kernels, from the compiler's report.

/// Resources that one kernel uses.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Usage {
    pub kernel: String,
    pub registers: u32,
    /// Spilled bytes per thread: stores and loads.
    pub spill_bytes: u32,
    /// Bytes of local memory per thread.
    pub stack_bytes: u32,
}

/// Reads the report that `--ptxas-options=-v` leaves in the log.
pub(crate) fn parse_usage(log: &str) -> Vec<Usage> {
    let mut kernels: Vec<Usage> = Vec::new();
    for line in log.lines() {
        if let Some(rest) = line.split("Compiling entry function '").nth(1) {
            let kernel = rest.split('\'').next().unwrap_or_default().to_owned();
            kernels.push(Usage { kernel, ..Usage::default() });
        } else if let Some(usage) = kernels.last_mut() {
            if line.contains("bytes stack frame") {
                usage.stack_bytes = number_before(line, " bytes stack frame");
                usage.spill_bytes =
                    number_before(line, " bytes spill stores") + number_before(line, " bytes spill loads");
            } else if line.contains("Used ") {
                usage.registers = number_before(line, " registers");
            }
        }
    }
    kernels
}

/// The number before these words.
fn number_before(line: &str, words: &str) -> u32 {
    let number = line.split(words).next().and_then(|head| head.split_whitespace().last());
    number.and_then(|number| number.parse().ok()).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_report_of_two_kernels_is_read() {
        let log = "ptxas info    : 0 bytes gmem\n\
            ptxas info    : Compiling entry function 'a_fast' for 'sm_90a'\n\
            ptxas info    : Function properties for a_fast\n\
            ptxas         .     24 bytes stack frame, 20 bytes spill stores, 16 bytes spill loads\n\
            ptxas info    : Used 255 registers, used 1 barriers\n\
            ptxas info    : Compiling entry function 'b' for 'sm_90a'\n\
            ptxas         .     0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads\n\
            ptxas info    : Used 8 registers, used 0 barriers, 360 bytes cmem[0]\n";
        let usage = |kernel: &str, registers, spill_bytes, stack_bytes| Usage {
            kernel: kernel.to_owned(),
            registers,
            spill_bytes,
            stack_bytes,
        };
        assert_eq!(parse_usage(log), [usage("a_fast", 255, 36, 24), usage("b", 8, 0, 0)]);
        assert!(parse_usage("").is_empty());
    }
}
