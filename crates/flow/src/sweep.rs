//! `holdpoint sweep`: measure a model at several input shapes.

use crate::Watch;
use crate::done::Done;
use crate::error::FlowError;
use crate::options::SweepArgs;
use crate::run;
use crate::support::engines;
use crate::support::sealing::{self, Sealing};
use holdpoint_gate::HasExitCode;
use holdpoint_interop::apex::ApexSweepReport;
use holdpoint_model::Report;
use holdpoint_render::markdown;

pub fn run(args: &SweepArgs, watch: &dyn Watch) -> Result<Done<Report>, FlowError> {
    let key = sealing::read_key(&args.seal)?;
    let Some(model) = &args.engine.engine else {
        return Err(FlowError::Input("give the model with --engine".to_owned()));
    };
    let suite = engines::suite(model, &args.engine, &args.shape_case)?;
    let _lock = run::begin(&args.output, watch)?;
    for path in [&args.output, &args.output_json, &args.output_md] {
        holdpoint_store::check_writable(path)?;
    }
    let report = run::measure(&suite, watch);
    let sealing = Sealing::new(key, &args.output);
    let unsealed = run::save_sealed(sealing, &args.output, "sweep", &suite, &report)?;
    // The same numbers in another form, made of the report: the seal over that covers them.
    let sweep = ApexSweepReport::new(&report, &model.to_string_lossy());
    holdpoint_store::write_json(&args.output_json, &sweep)?;
    holdpoint_store::write_text(&args.output_md, &markdown::apex_sweep(&sweep))?;
    let note = format!(
        "report: {}{unsealed}\nsweep: {}, {}",
        args.output.display(),
        args.output_json.display(),
        args.output_md.display()
    );
    let exit = report.exit_code();
    Ok(Done::new(report, exit).with_note(note))
}
