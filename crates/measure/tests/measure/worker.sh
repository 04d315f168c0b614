# A worker in plain sh. It behaves, until the script put in its middle redefines a function: `ok_<request>` for
# all workloads, `bad_<request>` for the workload "bad" alone. $1 is the file for its process id.

echo $$ >> "$1"
say() { printf '{"id":%s,%s\n' "$id" "${1#?}"; }
text() { value=${line#*\"$1\":\"}; value=${value%%\"*}; }
number() { value=${line#*\"$1\":}; value=${value%%[,\}]*}; }
listed() { printf '{"name":"%s","op":"copy","shape":[2,3],"dtype":"f32"}' "$1"; }

ok_hello() { say '{"type":"hello","protocol":2,"name":"sh","version":"1","timer":"host_monotonic","clock_resolution_ns":1}'; }
ok_list() { say "{\"type\":\"workloads\",\"workloads\":[$(listed bad),$(listed other),$(listed good)]}"; }
ok_prepare() { say "{\"type\":\"prepared\",\"workload\":\"$workload\",\"work\":null}"; }
# 2 µs a sample: more than a thousand steps of a clock of 1 ns, less than any real request takes.
ok_run() { say "{\"type\":\"samples\",\"workload\":\"$workload\",\"calls_per_sample\":$calls,\"elapsed_ns\":[$(durations "$samples")]}"; }
durations() { n=$1; list=2000; while [ "$n" -gt 1 ]; do list=$list,2000; n=$((n - 1)); done; printf '%s' "$list"; }
answer() { say "{\"type\":\"verified\",\"workload\":\"$workload\",\"answer\":{\"passed\":$1,\"values_count\":6,\"max_abs_err\":0,\"max_rel_err\":0,\"first_bad\":$2}}"; }
ok_verify() { answer true null; }
ok_release() { say "{\"type\":\"released\",\"workload\":\"$workload\"}"; }
ok_bye() { say '{"type":"bye"}'; exit 0; }
bad_prepare() { ok_prepare; }
bad_run() { ok_run; }
bad_verify() { ok_verify; }
bad_release() { ok_release; }

@SCRIPT@

prepared=
while IFS= read -r line; do
    text type; request=$value
    text workload; workload=$value
    number id; id=$value
    case $request in
        hello | list | bye) "ok_$request" ;;
        run) number samples_count; samples=$value; number calls_per_sample; calls=$value ;;
    esac
    case $request$prepared in
        hello* | list* | bye*) ;;
        prepare*) prepared="$prepared <$workload>"; if [ "$workload" = bad ]; then bad_prepare; else ok_prepare; fi ;;
        *"<$workload>"*) if [ "$workload" = bad ]; then "bad_$request"; else "ok_$request"; fi ;;
        *) say '{"type":"error","message":"not prepared"}' ;;
    esac
done
