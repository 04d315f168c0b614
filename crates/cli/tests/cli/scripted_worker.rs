//! A worker that reports fixed times instead of measuring, so that every unit of a comparison is exact.

use crate::common::{Here, Ran};
use serde_json::Value;

/// `sh scripted.sh NS NAME[=SHAPE]...` reports NS for the first sample of a request and NS + 1 for the others, since times that are all
/// the same are no evidence; `NS` may be `skip`. It appends its
/// process id to `pids`, sleeps `$PAUSE` seconds in each run if that is set, and reports wrong answers if `$WRONG` is.
const WORKER: &str = r#"
echo $$ >> pids
ns=$1; shift
say() { printf '{"id":%s,%s\n' "$id" "${1#?}"; }
text() { value=${line#*\"$1\":\"}; value=${value%%\"*}; }
number() { value=${line#*\"$1\":}; value=${value%%[,\}]*}; }
listed() {
    comma=
    for each; do
        case $each in *=*) shape=${each#*=} ;; *) shape=2 ;; esac
        printf '%s{"name":"%s","op":"copy","shape":[%s],"dtype":"f32"}' "$comma" "${each%%=*}" "$shape"
        comma=,
    done
}
while IFS= read -r line; do
    text type; request=$value
    text workload; workload=$value
    number id; id=$value
    case $request in
        hello) say '{"type":"hello","protocol":2,"name":"scripted","version":"1","timer":"host_monotonic","clock_resolution_ns":1}' ;;
        list) say "{\"type\":\"workloads\",\"workloads\":[$(listed "$@")]}" ;;
        prepare)
            if [ "$ns" = skip ]; then say "{\"type\":\"skipped\",\"workload\":\"$workload\",\"reason\":\"no device\"}"
            else say "{\"type\":\"prepared\",\"workload\":\"$workload\",\"work\":null}"; fi ;;
        run)
            number samples_count; samples=$value; number calls_per_sample; calls=$value
            if [ -n "$PAUSE" ]; then sleep "$PAUSE"; fi
            list=$ns; while [ "$samples" -gt 1 ]; do list=$list,$((ns + 1)); samples=$((samples - 1)); done
            say "{\"type\":\"samples\",\"workload\":\"$workload\",\"calls_per_sample\":$calls,\"elapsed_ns\":[$list]}" ;;
        verify)
            answer=null
            if [ -n "$WRONG" ]; then answer='{"passed":false,"values_count":1,"max_abs_err":1,"max_rel_err":1,"first_bad":null}'; fi
            say "{\"type\":\"verified\",\"workload\":\"$workload\",\"answer\":$answer}" ;;
        release) say "{\"type\":\"released\",\"workload\":\"$workload\"}" ;;
        bye) say '{"type":"bye"}'; exit 0 ;;
    esac
done
"#;

impl Here {
    /// A folder with the worker and a suite that runs the workloads `a` and `b` on it.
    pub fn with_scripted_worker() -> Self {
        let here = Self::new();
        here.write("scripted.sh", WORKER);
        here.write("suite.toml", &suite(&["a", "b"]));
        here
    }

    /// Runs `ab` on two scripted workers, each given as `NS NAME...`.
    pub fn compare_scripted(&self, base: &str, head: &str, arguments: &[&str]) -> Ran {
        self.run(&[&compare_arguments(base, head).each_ref().map(String::as_str), arguments].concat())
    }

    /// `artifacts/ab.json`, with the verdicts of `comparison.json` merged in.
    pub fn ab(&self) -> Value {
        let mut report = self.json("artifacts/ab.json");
        // An interrupted comparison has samples but no verdicts.
        if !self.path("artifacts/comparison.json").exists() {
            return report;
        }
        let judgement = self.json("artifacts/comparison.json");
        for key in ["verdict", "policy"] {
            report[key] = judgement[key].clone();
        }
        for check in judgement["checks"].as_array().unwrap() {
            let workload = report["workloads"][check["workload"].as_str().unwrap()].as_object_mut().unwrap();
            for key in ["verdict", "reason", "waiver"] {
                workload.extend(check.get(key).map(|value| (key.to_owned(), value.clone())));
            }
            workload.extend(check["paired"].as_object().unwrap().clone());
        }
        report
    }
}

/// The arguments of `ab` for two scripted workers, each given as `NS NAME...`.
pub fn compare_arguments(base: &str, head: &str) -> [String; 7] {
    let worker = |arguments: &str| format!("sh scripted.sh {arguments}");
    let words = ["ab", "--suite", "suite.toml", "--base-worker"].map(str::to_owned);
    let [ab, flag, suite, of_base] = words;
    [ab, flag, suite, of_base, worker(base), "--head-worker".to_owned(), worker(head)]
}

/// A suite named `scripted` with these workloads.
pub fn suite(names: &[&str]) -> String {
    let mut text = "schema_version = 1\nname = \"scripted\"\n[measure]\nrounds_min = 6\nrounds_max = 6\n\
        [workers.scripted]\ncommand = [\"sh\", \"scripted.sh\", \"2000\", \"a\", \"b\"]\n"
        .to_owned();
    for name in names {
        text +=
            &format!("[[workload]]\nname = \"{name}\"\nworker = \"scripted\"\nop = \"copy\"\nshape = [2]\n");
    }
    text
}

pub fn units<'v>(report: &'v Value, workload: &str) -> &'v Vec<Value> {
    report["workloads"][workload]["units"].as_array().unwrap()
}

/// A workload's verdict, why measuring ended, and the reason.
pub fn outcome<'v>(report: &'v Value, workload: &str) -> [&'v str; 3] {
    ["verdict", "ended", "reason"].map(|key| report["workloads"][workload][key].as_str().unwrap())
}
