//! Stand-ins for Nsight Compute, compute-sanitizer and a worker on a device: shell scripts that replay what the real ones said
//! on an H200, and misbehave on demand.

use crate::common::{Here, data};
use crate::program::write_program;

/// A worker that has one workload, `w`. How it answers `verify`, the variable WORKER says.
const WORKER: &str = r#"#!/bin/sh
say() { printf '{"id":%s,%s\n' "$id" "${1#?}"; }
while read -r line; do
    id=${line#*\"id\":}; id=${id%%[,\}]*}
    case "$line" in
    *hello*) say '{"type":"hello","protocol":2,"name":"fake","version":"1","timer":"cuda_graph","clock_resolution_ns":500,"device":{"ordinal":0,"name":"NVIDIA H200","versions":{"driver":"580.1","cuda":"13.0"}}}' ;;
    *prepare*)
        if [ "$WORKER" = skipped ]; then
            say '{"type":"skipped","workload":"w","reason":"cuda_unavailable"}'
        else
            say '{"type":"prepared","workload":"w","kernel":{"op_name":"x","kernel_name":"ff","shape_bucket":"","selection_source":"heuristic","launches_per_call":4,"functions":["ff_begin_fast","ff_refine_fast"]}}'
        fi ;;
    *verify*)
        case "$WORKER" in
        crash) kill -9 $$ ;;
        wrong) say '{"type":"verified","workload":"w","answer":{"passed":false,"values_count":1,"max_abs_err":null,"max_rel_err":null,"first_bad":"out[7]"}}' ;;
        garbage) echo 'hello?' ;;
        hang) exec sleep 600 ;;
        *) say '{"type":"verified","workload":"w","answer":{"passed":true,"values_count":1,"max_abs_err":0.0,"max_rel_err":0.0}}' ;;
        esac ;;
    *bye*) say '{"type":"bye"}' ; exit 0 ;;
    esac
done
"#;

/// The profiler. FAKE says how it behaves, PAGE which table it has, ARGS is where its words go.
const NCU: &str = r#"#!/bin/sh
case "$*" in
--version)
    [ "$FAKE" = no_version ] && { echo 'Segmentation fault'; exit 139; }
    echo 'NVIDIA (R) Nsight Compute Command Line Profiler'
    echo 'Version 2025.3.1.0 (build 36398880) (public-release)'
    exit 0 ;;
*--import*)
    case "$FAKE" in
    flood) exec yes '"0","x"' ;;
    garbage) head -c 4096 /dev/zero | tr '\0' '\377'; exit 0 ;;
    nan) sed 's/"[0-9][0-9.,]*"/"nan"/g' "$PAGE"; exit 0 ;;
    cut) head -c 15000 "$PAGE"; exit 0 ;;
    import_fails) echo '==ERROR== Could not open report file'; exit 1 ;;
    hang_import) exec sleep 600 ;;
    esac
    cat "$PAGE"; exit 0 ;;
esac
echo "$*" >> "$ARGS"
metrics=
while [ $# -gt 0 ]; do
    case "$1" in
    --log-file) log=$2; shift 2 ;;
    --export) report=$2; shift 2 ;;
    --metrics) metrics=$2; shift 2 ;;
    --force-overwrite) shift ;;
    --*) shift 2 ;;
    *) break ;;
    esac
done
case "$FAKE" in
permission)
    "$@"
    echo '==ERROR== ERR_NVGPUCTRPERM - The user does not have permission to access NVIDIA GPU Performance Counters on the target device 0.' > "$log"
    exit 1 ;;
gvisor) echo '==ERROR== Failed to initialize the profiler: LibraryNotLoaded' > "$log"; exit 1 ;;
no_kernel)
    "$@"
    printf '==WARNING== No kernels were profiled.\nAvailable Kernels:\n1. copy_fast\n2. draw_normal\n' > "$log"
    exit 0 ;;
no_report) "$@"; : > "$log"; exit 0 ;;
hang) sleep 600 & wait ;;
refuses_metric)
    case "$metrics" in
    *lts__t_bytes.sum*) echo '==ERROR== Failed to find metric lts__t_bytes.sum' > "$log"; exit 1 ;;
    esac ;;
app_fails) WORKER=crash; export WORKER ;;
esac
echo '==PROF== Disconnected' > "$log"
: > "$report"
exec "$@"
"#;

/// The sanitizer. FAKE is the log that it replays for a workload; an error that was planted it finds, unless it is blind.
const SANITIZER: &str = r#"#!/bin/sh
case "$*" in
--version) printf 'NVIDIA (R) Compute Sanitizer\nVersion 2025.3.1.0 (build 36400806) (public-release)\n'; exit 0 ;;
esac
echo "$*" >> "$ARGS"
while [ $# -gt 0 ]; do
    case "$1" in
    --log-file) log=$2; shift 2 ;;
    --*) shift 2 ;;
    *) break ;;
    esac
done
case "$*" in
*planted.toml*)
    [ "$FAKE" = unsupported ] && { echo '========= Error: Device not supported. Please refer to the documentation' > "$log"; exit 1; }
    echo '{"id":1,"type":"hello","protocol":2,"name":"cuda","version":"1","timer":"cuda_graph","clock_resolution_ns":500}'
    echo '{"id":2,"type":"prepared","workload":"planted"}'
    [ "$FAKE" = blind ] && { cat "$LOGS-clean.txt" > "$log"; echo '{"id":3,"type":"verified","workload":"planted","answer":null}'; exit 0; }
    echo '{"id":3,"type":"error","message":"a kernel faulted","cause":"device_fault","fatal":true}'
    cat "$LOGS-memcheck.txt" > "$log"
    exit 86 ;;
esac
case "$FAKE" in
no_summary) echo '========= COMPUTE-SANITIZER' > "$log"; exec "$@" ;;
odd_exit) cat "$LOGS-clean.txt" > "$log"; "$@"; exit 86 ;;
esac
cat "$LOGS-$FAKE.txt" > "$log"
"$@"
code=$?
case "$FAKE" in *clean) exit $code ;; *) exit 86 ;; esac
"#;

const SUITE: &str = "
schema_version = 1
name = \"fake\"
[workers.fake]
command = [\"./worker.sh\"]
[[workload]]
name = \"w\"
op = \"x\"
worker = \"fake\"
";

/// A folder with the stand-ins, and a suite of one workload `w`.
pub fn here() -> Here {
    let here = Here::new();
    here.write("fake.toml", SUITE);
    for (name, text) in [("worker.sh", WORKER), ("ncu", NCU), ("compute-sanitizer", SANITIZER)] {
        write_program(&here.path(name), text);
    }
    here
}

/// The variables by which the stand-ins take the place of the tools, and learn how to behave.
pub fn variables(here: &Here, fake: &str, worker: &str) -> [(&'static str, String); 7] {
    let path = |name: &str| here.path(name).display().to_string();
    [
        ("HOLDPOINT_NCU", path("ncu")),
        ("HOLDPOINT_SANITIZER", path("compute-sanitizer")),
        ("FAKE", fake.to_owned()),
        ("WORKER", worker.to_owned()),
        ("PAGE", data("tools/ncu-ff.csv")),
        ("LOGS", data("tools/sanitizer")),
        ("ARGS", path("args.txt")),
    ]
}

/// The binary with the stand-ins in place of the tools.
pub fn command(here: &Here, fake: &str, worker: &str, arguments: &[&str]) -> assert_cmd::Command {
    let mut command = here.command(arguments);
    command.envs(variables(here, fake, worker));
    command
}
