//! The types of documents and their kinds.

use super::{Document, Kind};
use crate::attest::SignOff;
use crate::caps::RuntimeCaps;
use crate::notice::Notice;
use crate::{
    AbReport, Attestation, Bisection, Calibration, Changes, CheckDocument, FuzzFile, FuzzReport, Profile,
    ProfileComparison, ReplayManifest, ReplayVerification, Roofline, SanitizeReport, Seal, Stated, Trend,
    Tuning,
};

macro_rules! documents {
    ($($type:ty: $kind:ident,)*) => {
        $(impl Document for $type { const KIND: Kind = Kind::$kind; })*
    };
}

documents! {
    AbReport: Ab,
    Attestation: Attestation,
    Bisection: Bisection,
    Calibration: Calibration,
    Changes: Changes,
    CheckDocument: Check,
    FuzzFile: FuzzCase,
    FuzzReport: Fuzz,
    Stated: Comparison,
    Notice: Notice,
    Profile: Profile,
    ProfileComparison: ProfileComparison,
    ReplayManifest: ReplayManifest,
    ReplayVerification: ReplayVerification,
    Roofline: Roofline,
    RuntimeCaps: RuntimeCaps,
    SanitizeReport: Sanitize,
    Seal: Seal,
    SignOff: SignOff,
    Trend: Trend,
    Tuning: Tuning,
}
