//! The oracle behind a checked answer.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The oracle that an answer was compared with, and which rows of it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct CheckedBy {
    pub oracle: OracleKind,
    /// The rows that it computed, from the first to before the last; absent where it computed all. All others were then compared with
    /// the plain kernel's answer on the device.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rows: Option<[u64; 2]>,
    /// Independent parts of the answer, such as heads or samples.
    pub rows_count: u64,
    /// Machine code of an oracle on the device, as it was proven against the CPU's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub code_sha256: Option<String>,
}

impl CheckedBy {
    /// `rows 3 to 9 of 256 by the CPU's oracle, all by the plain kernel`; absent where the CPU's oracle computed everything, as usual.
    pub fn describe(&self) -> Option<String> {
        match (self.oracle, self.rows) {
            (OracleKind::Cpu, None) => None,
            (OracleKind::Cpu, Some([first, end])) => Some(format!(
                "rows {first} to {} of {} by the CPU's oracle, all by the plain kernel",
                end.saturating_sub(1),
                self.rows_count
            )),
            (OracleKind::Device, _) => {
                let code = self.code_sha256.as_deref().unwrap_or_default();
                let code = code.get(..12).unwrap_or(code);
                Some(format!(
                    "all {} rows by the device's oracle in 64-bit floats (machine code {code}, proven here against the CPU's)",
                    self.rows_count
                ))
            }
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum OracleKind {
    /// On the CPU.
    Cpu,
    /// On the device, in 64-bit floats, by a kernel that gave the CPU oracle's answers on small and odd shapes.
    Device,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_not_the_usual_is_told() {
        let by = |oracle, rows, code: Option<&str>| CheckedBy {
            oracle,
            rows,
            rows_count: 256,
            code_sha256: code.map(str::to_owned),
        };
        assert_eq!(by(OracleKind::Cpu, None, None).describe(), None);
        let sampled = by(OracleKind::Cpu, Some([3, 9]), None).describe().unwrap();
        assert_eq!(sampled, "rows 3 to 8 of 256 by the CPU's oracle, all by the plain kernel");
        let device = by(OracleKind::Device, None, Some("0123456789abcdef")).describe().unwrap();
        assert!(device.contains("all 256 rows") && device.contains("machine code 0123456789ab,"), "{device}");
    }
}
